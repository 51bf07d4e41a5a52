package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/hf"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Facts returns what m's weights say about themselves, as far as headers on this machine tell: those of a file: source, in the hub's own
// cache, in the cache, or fetched by FetchFacts before. It reads headers, never weights, and contacts no one. See NotHere for the error where
// nothing is here; any other is about a header that cannot be read.
func (c *Cache) Facts(m plan.Model) (*model.Facts, error) {
	j, err := c.job(m)
	if err != nil {
		return nil, err
	}
	if j.pin != "" {
		if f, err := factsIn(local(filepath.Dir(j.blob(j.pin))), filepath.Base(j.blob(j.pin))); !NotHere(err) {
			return f, err
		}
	}
	for _, s := range j.sources {
		var at string
		switch s.Scheme {
		case "file":
			at = j.expand(s.Path)
		case "hf":
			at = j.hubCached(s)
			if at == "" { // the tools that load a model may have fetched its config alone
				config := s
				config.File = path.Join(path.Dir(s.File), "config.json")
				at = j.hubCached(config)
			}
		}
		if sum := j.known(s.String()); at == "" && sum != "" && j.pin == "" {
			at = j.blob(sum)
		}
		if at != "" {
			if f, err := factsIn(local(filepath.Dir(at)), filepath.Base(at)); !NotHere(err) {
				return f, err
			}
		}
		if f := c.savedFacts(s); f != nil {
			return f, nil
		}
	}
	return nil, errAbsent
}

// NotHere reports whether an error of Facts says that nothing of the model is on this machine.
func NotHere(err error) bool { return errors.Is(err, errAbsent) || errors.Is(err, os.ErrNotExist) }

// folder is where a model's files are.
type folder interface {
	// open gives access to a file: its size, or -1 where that is not known. os.ErrNotExist says that it is not there.
	open(name string) (io.ReaderAt, int64, func(), error)
}

// local is a folder of this machine.
type local string

func (l local) open(name string) (io.ReaderAt, int64, func(), error) {
	f, err := os.Open(filepath.Join(string(l), filepath.FromSlash(name)))
	if err != nil {
		return nil, 0, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: is no plain file", f.Name())
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, nil, err
	}
	return f, st.Size(), func() { _ = f.Close() }, nil
}

var (
	shard = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.(safetensors|gguf)$`)
	// The names under which repositories keep an index and a single file.
	indexName, singleName = "model.safetensors.index.json", "model.safetensors"
)

// factsIn reads the facts of the model of which name is one file: weights, an index of them, or the config.
func factsIn(f folder, name string) (*model.Facts, error) {
	dir, base := path.Split(name)
	parts := shard.FindStringSubmatch(base)
	switch {
	case strings.HasSuffix(base, ".safetensors.index.json"):
		return repository(f, dir, base, "")
	case parts != nil && parts[4] == "safetensors":
		return repository(f, dir, indexName, "")
	case strings.HasSuffix(base, ".safetensors"):
		return repository(f, dir, "", base)
	case base == "config.json":
		return repository(f, dir, indexName, singleName)
	case parts != nil:
		return splitGGUF(f, dir, parts)
	}
	return oneGGUF(f, name)
}

// repository reads config.json and the headers of the weights beside it: of one file, or of those that an index names.
func repository(f folder, dir, index, single string) (*model.Facts, error) {
	facts := model.Facts{}
	b, err := small(f, dir+"config.json", 4<<20)
	if err == nil {
		if facts, err = hf.Config(b); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	found := b != nil
	if index != "" {
		ok, err := indexed(f, dir, index, &facts)
		if err != nil {
			return nil, err
		}
		if ok {
			return &facts, nil
		}
	}
	if single != "" {
		ts, err := header(f, dir+single)
		switch {
		case err == nil:
			hf.Weigh(&facts, ts)
			found = true
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
	}
	if !found {
		return nil, errAbsent
	}
	return &facts, nil
}

// indexed reads an index and the files that it names. Where not all are there, the index tells how many bytes they have.
func indexed(f folder, dir, name string, facts *model.Facts) (ok bool, err error) {
	b, err := small(f, dir+name, 64<<20)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	x, err := hf.ReadIndex(b)
	if err != nil {
		return false, err
	}
	var all []hf.Tensor
	for _, file := range x.Files {
		if _, remote := f.(*hubFolder); remote { // a request for each of many files would tell little more than the index does
			all = nil
			break
		}
		ts, err := header(f, dir+file)
		if errors.Is(err, os.ErrNotExist) {
			all = nil
			break
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, ts...)
	}
	if all != nil {
		hf.Weigh(facts, all)
	} else if x.Bytes > 0 {
		facts.Format, facts.FileBytes = "safetensors", x.Bytes
	}
	return true, nil
}

func header(f folder, name string) ([]hf.Tensor, error) {
	r, size, done, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer done()
	return hf.Header(r, size)
}

// small reads a whole file of at most limit bytes.
func small(f folder, name string, limit int64) ([]byte, error) {
	r, size, done, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer done()
	if size > limit {
		return nil, fmt.Errorf("%s: %d bytes: at most %d are read", name, size, limit)
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s: more than %d bytes", name, limit)
	}
	return b, err
}

func oneGGUF(f folder, name string) (*model.Facts, error) {
	r, size, done, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer done()
	known := size >= 0
	if !known {
		size = math.MaxInt64
	}
	g, err := gguf.Read(r, size)
	if err != nil {
		return nil, err
	}
	facts, err := g.Facts()
	if err != nil {
		return nil, err
	}
	if !known {
		facts.FileBytes = 0
	}
	return &facts, nil
}

// splitGGUF adds up a model that lies in several files: "big-00001-of-00003.gguf". Where some are missing, sizes are not known.
func splitGGUF(f folder, dir string, parts []string) (*model.Facts, error) {
	n, _ := strconv.Atoi(parts[3])
	name := func(i int) string { return fmt.Sprintf("%s%s-%05d-of-%s.gguf", dir, parts[1], i, parts[3]) }
	first, err := oneGGUF(f, name(1)) // it has the keys
	if err != nil {
		return nil, err
	}
	for i := 2; i <= min(n, 1000); i++ {
		r, size, done, err := f.open(name(i))
		if err != nil {
			first.FileBytes, first.Parameters, first.ExpertBytes, first.ExpertParameters = 0, 0, 0, 0
			return first, nil //nolint:nilerr // what the first says is still true
		}
		g, err := gguf.Read(r, size)
		done()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name(i), err)
		}
		first.FileBytes += size
		for _, t := range g.Tensors {
			first.Parameters += t.Elements()
			if strings.Contains(t.Name, "_exps.") {
				first.ExpertParameters += t.Elements()
				first.ExpertBytes += t.Size
			}
		}
	}
	return first, nil
}

func (c *Cache) factsFile(s model.Source) string {
	return c.dir("facts", keyOf("source "+s.String())+".json")
}

// savedFacts are those that FetchFacts left, or nil.
func (c *Cache) savedFacts(s model.Source) *model.Facts {
	b, err := os.ReadFile(c.factsFile(s))
	f := &model.Facts{}
	if err != nil || json.Unmarshal(b, f) != nil {
		return nil
	}
	return f
}

// FetchFacts is Facts that asks the source where nothing is on this machine: for config.json and the headers of the weights, some hundred
// kilobytes, never the weights. What it gets is kept in the cache. Only hf: and https: sources can be asked.
func (c *Cache) FetchFacts(ctx context.Context, m plan.Model) (*model.Facts, error) {
	if f, err := c.Facts(m); !NotHere(err) {
		return f, err
	}
	j, err := c.job(m)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, s := range j.sources {
		if s.Scheme != "hf" && s.Scheme != "https" {
			continue
		}
		t := &try{job: j, src: s, where: s.Redacted()}
		f, err := t.facts(ctx)
		if NotHere(err) {
			err = errors.New("it has no such file, and no config.json beside it")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Redacted(), err))
			continue
		}
		if err := os.MkdirAll(c.dir("facts"), 0o755); err == nil {
			if err := writeJSON(c.factsFile(s), f); err != nil {
				c.o.Log.Warn("facts of a model cannot be kept; they will be fetched again", "err", err)
			}
		}
		return f, nil
	}
	if len(errs) == 0 {
		return nil, errAbsent
	}
	return nil, errors.Join(errs...)
}
