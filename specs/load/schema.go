package load

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

// compiled is the schema, parsed, in two forms.
type compiled struct {
	defs  []string          // names of all definitions: "#Decode"
	kinds map[string]string // kind by its definition
	names []string          // of the kinds, sorted
	real  []*ast.File
	shape map[string]string // what the open copy says for each definition
}

// compileSchema parses the schema and the kinds of r. The error is a kind's author's mistake.
func compileSchema(r *kind.Registry) (*compiled, error) {
	c := &compiled{kinds: map[string]string{}, shape: map[string]string{}}
	for _, e := range r.All() {
		c.kinds[schema.Definition(e.Name)] = e.Name
		c.names = append(c.names, e.Name)
	}
	for _, f := range schema.Files(r) {
		name := "dynamo.graph/spec/" + f.Name
		file, err := parser.ParseFile(name, f.Text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", flat(err))
		}
		c.real = append(c.real, file)
		for _, d := range file.Decls {
			fd, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			id, ok := fd.Label.(*ast.Ident)
			if !ok || !strings.HasPrefix(id.Name, "#") {
				continue
			}
			if _, ok := c.shape[id.Name]; !ok {
				c.defs = append(c.defs, id.Name)
			}
			_, isStruct := fd.Value.(*ast.StructLit)
			switch k, isKind := c.kinds[id.Name]; {
			case isKind:
				c.shape[id.Name] = fmt.Sprintf("{kind: %q, ...}", k)
			case isStruct:
				c.shape[id.Name] = "{...}"
			default:
				c.shape[id.Name] = "_"
			}
		}
	}
	for def, k := range c.kinds {
		if _, ok := c.shape[def]; !ok {
			return nil, fmt.Errorf("schema: kind %q: its Schema does not define %s", k, def)
		}
	}
	slices.Sort(c.defs)
	return c, nil
}

// instance returns the real schema as a package.
func (c *compiled) instance() (*build.Instance, error) {
	in := build.NewContext(build.Loader(noImports)).NewInstance("", noImports)
	in.PkgName, in.ImportPath = schema.Package, schema.ImportPath+"/real"
	for _, f := range c.real {
		if err := in.AddSyntax(f); err != nil {
			return nil, fmt.Errorf("schema: %w", flat(err))
		}
	}
	if err := in.Complete(); err != nil {
		return nil, fmt.Errorf("schema: %w", flat(err))
	}
	return in, nil
}

// open returns the copy of the schema that a spec is evaluated against: every definition exists and takes everything. A definition in
// missing, which the spec names in vain, stands for the one that it was likely meant to be.
func (c *compiled) open(ctx *build.Context, missing []string) (*build.Instance, error) {
	var b strings.Builder
	b.WriteString("package spec\n")
	for _, d := range c.defs {
		fmt.Fprintf(&b, "%s: %s\n", d, c.shape[d])
	}
	for _, d := range missing {
		shape := "_"
		if n := diag.Nearest(d, c.defs); n != "" {
			shape = c.shape[n]
		}
		fmt.Fprintf(&b, "%s: %s\n", d, shape)
	}
	f, err := parser.ParseFile("dynamo.graph/spec/open.cue", b.String())
	if err != nil {
		return nil, flat(err)
	}
	in := ctx.NewInstance("", noImports)
	in.PkgName, in.ImportPath = schema.Package, schema.ImportPath
	if err := in.AddSyntax(f); err != nil {
		return nil, flat(err)
	}
	if err := in.Complete(); err != nil {
		return nil, flat(err)
	}
	return in, nil
}

// flat makes one line of CUE's errors.
func flat(err error) error {
	var out []string
	for _, e := range errors.Errors(err) {
		out = append(out, e.Position().String()+": "+e.Error())
	}
	return fmt.Errorf("%s", strings.Join(out, "; "))
}
