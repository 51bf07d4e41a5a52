package main

import (
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dynamograph/dynamo/specs/mod/modtest"
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": exitStatus, "taken": taken, "nothing-left": nothingLeft, "registry": registry,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("SPECS", specs)
			e.Setenv("RECIPES", filepath.Join(specs, "..", "recipes"))
			e.Setenv("CUE_REGISTRY", "none")
			e.Setenv("CUE_CACHE_DIR", filepath.Join(e.WorkDir, "modules"))
			e.Setenv("DYNAMO_CACHE_DIR", filepath.Join(e.WorkDir, "cache"))
			tmp, err := os.MkdirTemp("/tmp", "dynts") // short: sockets lie there
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(tmp) })
			e.Setenv("TMPDIR", tmp)
			e.Setenv("HOME", e.WorkDir)
			// No index answers there: nothing may be fetched.
			e.Setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
			e.Setenv("PIP_NO_INDEX", "")
			return nil
		},
	})
}

// status N COMMAND…: the command ends with exit status N.
func exitStatus(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// taken ADDRESS: it is bound until the script ends; $TAKEN is the address with its port.
func taken(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", args[0])
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv("TAKEN", l.Addr().String())
}

// nothing-left: no folder, socket or process of a run is left.
func nothingLeft(ts *testscript.TestScript, _ bool, _ []string) {
	tmp := ts.Getenv("TMPDIR")
	left, err := filepath.Glob(filepath.Join(tmp, "*"))
	ts.Check(err)
	if len(left) > 0 {
		ts.Fatalf("left: %v", left)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, f := range lines {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), tmp+"/") {
			ts.Fatalf("left: %s %q", f, b)
		}
	}
}

// registry: an empty registry of modules runs until the script ends; $REGISTRY is its address, and CUE_REGISTRY leads to it.
func registry(ts *testscript.TestScript, _ bool, _ []string) {
	host, stop := modtest.Registry(nil)
	ts.Defer(stop)
	ts.Setenv("REGISTRY", host)
	ts.Setenv("CUE_REGISTRY", host+"+insecure")
}
