package load_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/specs"
	"github.com/dynamograph/dynamo/specs/load"
	"github.com/dynamograph/dynamo/specs/schema"
)

// vet is what plain `cue vet -c` would say of a spec and the published schema.
func vet(text string) error {
	var bc *build.Context
	pkg := func(path string) (*build.Instance, error) {
		in := bc.NewInstance("", nil)
		in.PkgName, in.ImportPath = schema.Package, path
		for _, f := range schema.Files(testKinds()) {
			file, err := parser.ParseFile(f.Name, f.Text)
			if err != nil {
				return nil, err
			}
			if err := in.AddSyntax(file); err != nil {
				return nil, err
			}
		}
		return in, in.Complete()
	}
	bc = build.NewContext(build.Loader(func(_ token.Pos, path string) *build.Instance {
		if path != schema.ImportPath {
			return nil
		}
		in, err := pkg(path)
		if err != nil {
			panic(err)
		}
		return in
	}))
	file, err := parser.ParseFile("spec.cue", text)
	if err != nil {
		return err
	}
	in := bc.NewInstance("", nil)
	if err := in.AddSyntax(file); err != nil {
		return err
	}
	if err := in.Complete(); err != nil {
		return err
	}
	real, err := pkg(schema.ImportPath + "/x")
	if err != nil {
		return err
	}
	c := cuecontext.New()
	v := c.BuildInstance(real).LookupPath(cue.MakePath(cue.Def("#Graph"))).Unify(c.BuildInstance(in))
	return v.Validate(cue.Concrete(true), cue.Final())
}

// TestAgreesWithCUE holds the loader's verdict against CUE's own on every golden and ready spec in CUE without tags: what cue vet refuses
// is refused, and what it lets pass is refused only for what a schema cannot say.
func TestAgreesWithCUE(t *testing.T) {
	beyond := []string{ // what a schema cannot say
		"node-in-edge", "node-in-edge-to", "model-unknown", "model-twice", "replicas-huge", "attribute", "tag-attribute",
	}
	n := 0
	for _, g := range append(goldens(t, "testdata/bad/*.txtar"), goldens(t, "testdata/ok/*.txtar")...) {
		if len(g.archive.Files) > 2 && g.archive.Files[1].Name == "cue.mod/module.cue" || g.spec != "spec.cue" || len(g.tags)+len(g.set)+len(g.overlay) > 0 {
			continue
		}
		n++
		b, err := g.read(g.spec)
		if err != nil {
			t.Fatal(err)
		}
		_, list, err := load.File(context.Background(), g.spec, load.Options{Registry: testKinds(), Dir: g.dir})
		if err != nil {
			t.Fatal(err)
		}
		switch err := vet(string(b)); {
		case err != nil && !list.Failed():
			t.Errorf("%s: loaded, but cue vet says: %v", g.file, err)
		case err == nil && list.Failed() && !slices.Contains(beyond, strings.TrimSuffix(filepath.Base(g.file), ".txtar")):
			t.Errorf("%s: cue vet lets it pass, but: %v", g.file, list)
		}
	}
	if n < 50 {
		t.Errorf("%d goldens compared, want at least 50", n)
	}
	for _, name := range specs.Names() {
		b, err := specs.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := vet(string(b)); err != nil {
			t.Errorf("%s: cue vet says: %v", name, err)
		}
	}
}

// TestEveryKindIsClosed plants one unknown field in each struct of each kind, and wants exactly that reported.
func TestEveryKindIsClosed(t *testing.T) {
	for _, at := range []string{"", "kv: ", "batch: ", "mock: ", "mock: fail: "} {
		for _, k := range []string{"worker", "prefill", "decode"} {
			wantUnknown(t, fmt.Sprintf("kind: %q, engine: \"mock\", mock: fail: kind: \"hang\", %szzz: 1", k, at))
		}
	}
	wantUnknown(t, `kind: "frontend", zzz: 1`)
	wantUnknown(t, `kind: "router", zzz: 1`)
	wantUnknown(t, `kind: "kvtier", tiers: [{medium: "dram", size: "1Gi", zzz: 1}]`)
}

func wantUnknown(t *testing.T, node string) {
	t.Helper()
	dir := t.TempDir()
	text := "name: \"a\"\nnodes: n: {" + node + "}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.cue"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, list, err := load.File(context.Background(), "a.cue", load.Options{Registry: testKinds(), Dir: dir})
	if err != nil || len(list) != 1 || list[0].Code != "unknown-field" || !strings.HasSuffix(list[0].Path, ".zzz") {
		t.Errorf("%s: %v %v", node, list, err)
	}
	if vet(text) == nil {
		t.Errorf("%s: cue vet lets it pass: the schema is open there", node)
	}
}
