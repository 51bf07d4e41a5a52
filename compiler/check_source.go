package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
)

// badSource finds sources that nothing could be fetched from, as they are written. A whole repository is none of them: engines that fetch
// for themselves take it.
func badSource(s *state) diag.List {
	var list diag.List
	for _, key := range slices.Sorted(maps.Keys(s.g.Models)) {
		m := s.g.Models[key]
		path := "models." + key + ".source"
		for i, text := range m.Sources {
			var bad *model.SourceError
			if _, err := model.ParseSource(text); !errors.As(err, &bad) || bad.Whole {
				continue
			}
			if slices.ContainsFunc(secretInSpec(s), func(d diag.Diagnostic) bool { return strings.HasPrefix(d.Path, path) }) {
				continue // that is what is wrong with it, and not to be shown
			}
			pos, ok := s.g.Fields[fmt.Sprintf("%s.%d", path, i)]
			if !ok {
				pos, ok = s.g.Fields[path]
			}
			if !ok {
				pos = m.Pos
			}
			list.Add(diag.Diagnostic{Code: "bad-value", Pos: pos, Path: path, Msg: fmt.Sprintf("%s: %q %s", path, text, bad.Msg), Hint: bad.Hint})
		}
	}
	return list
}
