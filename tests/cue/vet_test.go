package cue

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/recipes"
)

// TestVetOffline checks projects with plain cue and no network: they pass, are tidy and formatted, and a mistake is found.
func TestVetOffline(t *testing.T) {
	for _, r := range append([]string{""}, recipes.Names()...) {
		t.Run("recipe "+r, func(t *testing.T) {
			dir := project(t, r)
			env := offline(dir)
			for _, args := range [][]string{{"vet", "-c", "./..."}, {"mod", "tidy", "--check"}, {"fmt", "--check", "./..."}} {
				if out, ok := runCue(t, dir, env, args...); !ok {
					t.Errorf("cue %s: %s", strings.Join(args, " "), out)
				}
			}
		})
	}
	for _, c := range []struct{ old, new, want string }{
		{"policy:", "polcy:", "polcy: field not allowed"},
		{"name: \"mine\"", "name: \"mine\"\n\tnmae: 1", "nmae: field not allowed"},
		{"\"api -> route\"", "\"api => route\"", "field not allowed"},
		{"\"least-loaded\"", "\"least\"", "policy"},
		{"spec.#Router", "spec.#Ruoter", "#Ruoter"},
	} {
		dir := project(t, "")
		edit(t, filepath.Join(dir, "graph.cue"), c.old, c.new)
		if out, ok := runCue(t, dir, offline(dir), "vet", "-c", "."); ok || !strings.Contains(out, c.want) {
			t.Errorf("%s: ends well: %v, says %s, want %q", c.new, ok, out, c.want)
		}
	}
}
