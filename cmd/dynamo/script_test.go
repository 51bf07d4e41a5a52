package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"dynamo": main}) }

// TestScripts runs tests/script/*.txtar over the command as a user types it. $SPECS is the folder of the ready specs.
func TestScripts(t *testing.T) {
	specs, err := filepath.Abs("../../specs")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "../../tests/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SPECS", specs)
			e.Setenv("DYNAMO_CACHE_DIR", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("TMPDIR", os.TempDir())
			e.Setenv("HOME", e.WorkDir)
			// No index answers there: nothing may be fetched.
			e.Setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
			e.Setenv("PIP_NO_INDEX", "")
			return nil
		},
	})
}
