package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"cuelang.org/go/cue/ast"

	"github.com/dynamograph/dynamo/graph/diag"
)

// source is one file of a spec.
type source struct {
	name   string // as the user wrote it
	data   []byte
	format string // "cue", "yaml", "json"
	layer  layer
	of     *tree // the module of an imported file
	file   *ast.File
	lines  []int // offsets
}

// layer is where a source stands among those that say something of a graph, the first first.
type layer string

// The layers.
const (
	layerDefault layer = "default" // of the kind, applied by the compiler
	layerSpec    layer = "spec"
	layerImport  layer = "import" // a package that the spec imports
	layerOverlay layer = "overlay"
	layerTag     layer = "tag"
	layerSet     layer = "set"
)

// over reports whether a is a layer above b.
func (a layer) over(b layer) bool {
	order := []layer{layerDefault, layerImport, layerSpec, layerOverlay, layerTag, layerSet}
	return slices.Index(order, a) > slices.Index(order, b)
}

// read reads a spec or an overlay: name is what the user wrote, at is where it lies. What it takes of left is what all files may have.
func read(name, at string, left *int64) ([]*source, diag.List, error) {
	info, err := os.Stat(at)
	if err != nil {
		return nil, nil, fmt.Errorf("spec %s: %w", name, cause(err))
	}
	names := []string{name}
	if info.IsDir() {
		if names, err = folder(name, at); err != nil {
			return nil, nil, fmt.Errorf("spec %s: %w", name, cause(err))
		}
		if len(names) == 0 {
			return nil, diag.List{{Code: "no-graph", Pos: diag.Pos{File: name}, Msg: "the folder has no .cue file"}}, nil
		}
	}
	var out []*source
	for _, n := range names {
		s := &source{name: n, format: format(n)}
		if s.format == "" {
			return nil, diag.List{{Code: "unsupported-file", Pos: diag.Pos{File: n},
				Msg: "not a spec: want .cue, .yaml, .yml or .json"}}, nil
		}
		from := at
		if info.IsDir() {
			from = filepath.Join(at, filepath.Base(n))
		}
		if s.data, err = readFile(from, *left+1); err != nil {
			return nil, nil, fmt.Errorf("spec %s: %w", n, cause(err))
		}
		if *left -= int64(len(s.data)); *left < 0 {
			return nil, diag.List{{Code: "too-large", Pos: diag.Pos{File: n}, Msg: "a spec is at most 1 MiB"}}, nil
		}
		if i := invalid(s.data); i >= 0 {
			return nil, diag.List{{Code: "syntax", Pos: s.pos(i), Len: 1, Msg: fmt.Sprintf("byte 0x%02x is not UTF-8 text", s.data[i]),
				Hint: "save the file as UTF-8"}}, nil
		}
		out = append(out, s)
	}
	return out, nil, nil
}

// folder lists the CUE files of a folder, as the user would name them.
func folder(name, at string) ([]string, error) {
	es, err := os.ReadDir(at)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		n := e.Name()
		if e.Type().IsRegular() && filepath.Ext(n) == ".cue" && !strings.HasPrefix(n, "_") && !strings.HasPrefix(n, ".") {
			out = append(out, filepath.Join(name, n))
		}
	}
	slices.Sort(out)
	return out, nil
}

// pointBelow names the folders below a folder without a graph that may hold one.
func (o Options) pointBelow(path string, list diag.List) {
	i := slices.IndexFunc(list, func(d diag.Diagnostic) bool { return d.Code == "no-graph" })
	if i < 0 {
		return
	}
	es, err := os.ReadDir(o.at(path))
	if err != nil {
		return // a file
	}
	var have []string
	for _, e := range es {
		if !e.IsDir() || e.Name() == "cue.mod" || strings.HasPrefix(e.Name(), "_") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		below := filepath.Join(path, e.Name())
		if files, err := folder(below, o.at(below)); err == nil && len(files) > 0 {
			have = append(have, below)
		}
	}
	if len(have) > 0 && len(have) <= 12 {
		list[i].Hint = "name a folder that holds one; with CUE files below this one: " + strings.Join(have, ", ")
	}
}

func format(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".cue":
		return "cue"
	case ".yaml", ".yml":
		return "yaml"
	case ".json":
		return "json"
	}
	return ""
}

// readFile reads at most n bytes.
func readFile(at string, n int64) ([]byte, error) {
	f, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold us up
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, errors.New("is no plain file")
	}
	return io.ReadAll(io.LimitReader(f, n))
}

// cause drops the path that the caller says already.
func cause(err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// invalid returns the offset of the first byte that is not UTF-8 text, or -1.
func invalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r == 0 {
			return i
		}
		i += n
	}
	return -1
}

// pos returns the place of an offset.
func (s *source) pos(off int) diag.Pos {
	s.index()
	off = max(0, min(off, len(s.data)))
	i, found := slices.BinarySearch(s.lines, off)
	if !found {
		i--
	}
	return diag.Pos{File: s.name, Line: i + 1, Col: off - s.lines[i] + 1}
}

// offset is the inverse of pos; -1 where p lies outside.
func (s *source) offset(p diag.Pos) int {
	s.index()
	if p.Line < 1 || p.Line > len(s.lines) || p.Col < 1 {
		return -1
	}
	if off := s.lines[p.Line-1] + p.Col - 1; off <= len(s.data) {
		return off
	}
	return -1
}

// index notes where lines start.
func (s *source) index() {
	if s.lines != nil {
		return
	}
	s.lines = []int{0}
	for i, c := range s.data {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
}

// width returns how many bytes the label or plain value at p takes: a quoted text with its quotes, else a word.
func (s *source) width(p diag.Pos) int {
	off := s.offset(p)
	if off < 0 || off >= len(s.data) {
		return 1
	}
	line := s.data[off:min(off+4096, len(s.data))]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	rest := string(line)
	if rest == "" {
		return 1
	}
	if q := rest[0]; q == '"' || q == '\'' {
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\\' && q == '"' {
				i++
			} else if rest[i] == q {
				return i + 1
			}
		}
		return len(rest)
	}
	if s.format == "args" {
		if off > 0 && s.data[off-1] == '=' && strings.IndexByte("{[(", rest[0]) < 0 { // the value: all of it
			return len(rest)
		}
		if i := strings.IndexAny(rest, ".="); i > 0 {
			return i
		}
	}
	end := strings.IndexAny(rest, " \t\r,:{}[]()&|")
	if s.format == "yaml" {
		end = plain(rest)
	}
	if end <= 0 {
		end = min(1, len(rest))
		if end < 0 || !strings.ContainsAny(rest, " \t\r,:{}[]()&|") {
			end = len(rest)
		}
	}
	return end
}

// plain returns the length of a YAML plain scalar at the start of line.
func plain(line string) int {
	for i := range len(line) {
		switch c := line[i]; {
		case c == ':' && (i+1 == len(line) || line[i+1] == ' '), c == ',' || c == '}' || c == ']', c == '#' && i > 0 && line[i-1] == ' ':
			return len(strings.TrimRight(line[:i], " "))
		}
	}
	return len(strings.TrimRight(line, " \r"))
}
