package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A run's folder goes with its last process: not while one that it started lives, and at the next run when all were killed.
func TestSweep(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "dsw") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Setenv("TMPDIR", base)
	there := func(dir string) bool { _, err := os.Stat(dir); return err == nil }

	stranger := filepath.Join(base, "dynamo-notes") // not made by a run
	if err := os.Mkdir(stranger, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "dynamo-g-1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fd); err != nil { // as if this process were killed
		t.Fatal(err)
	}
	sweep(base)
	if !there(dir) {
		t.Error("the folder is gone while a child lives")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	next, remove, err := runDir("g")
	if err != nil {
		t.Fatal(err)
	}
	if there(dir) {
		t.Error("the folder is left when all are gone")
	}
	if !there(stranger) || !there(next) {
		t.Error("sweep took what it should not")
	}
	remove()
	if there(next) {
		t.Error("the run's own folder is left")
	}
}
