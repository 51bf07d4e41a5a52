// Package cue holds what we make against tools that are not ours: the cue command, its language server, and a validator of JSON Schema.
package cue

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/recipes"
	"github.com/dynamograph/dynamo/specs/mod"
)

// tool is the cue command, of the version that go.mod names; tests/run.sh builds it.
func tool(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("DYNAMO_TEST_CUE")
	if bin == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_CUE to the cue command")
	}
	return bin
}

// offline is an environment in which cue can reach nobody.
func offline(dir string) []string {
	return []string{"CUE_REGISTRY=none", "CUE_CACHE_DIR=" + filepath.Join(dir, "cache"), "CUE_CONFIG_DIR=" + filepath.Join(dir, "config"), "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
}

// runCue runs cue in dir and returns what it says, and whether it ended well.
func runCue(t *testing.T, dir string, env []string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t), args...)
	cmd.Dir, cmd.Env = dir, env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), err == nil
}

// project makes a project as `dynamo graph init` does; of a recipe, or of the usual start where that is "".
func project(t *testing.T, recipe string) string {
	t.Helper()
	p := mod.Project{Name: "mine", Module: "example.com/mine@v0"}
	if recipe != "" {
		var err error
		if p.Recipe, err = recipes.Module(recipe); err != nil {
			t.Fatal(err)
		}
	}
	files, err := p.Files(kind.Default)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "mine")
	if err := mod.Write(dir, files, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit replaces text in a file, where it must be.
func edit(t *testing.T, file, old, new string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s: no %q", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
