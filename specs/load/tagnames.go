package load

import "context"

// Tags lists the names of the tags that a spec declares, sorted. It is for completion: of a spec that cannot be read or parsed it knows none.
func Tags(ctx context.Context, path string, o Options) []string {
	in, list, err := o.read(path)
	if err != nil || list.Failed() {
		return nil
	}
	l := newLoader(path, in)
	var names []string
	_, err = watch(ctx, path, o.Limits, func() result {
		l.parseAll(in)
		if !l.list.Failed() {
			names = tagNames(l.findTags(in.files))
		}
		return result{}
	})
	if err != nil || l.list.Failed() { // given up, or no spec
		return nil
	}
	return names
}
