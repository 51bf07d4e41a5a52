package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/runtime/models"
)

// Where no terminal is, a download is told when it begins and when it ends, and what is done at once is not told.
func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	show := (&program{Env: cli.Env{Stderr: &b}}).progress()
	for _, done := range []int64{0, 1 << 20, 50 << 20, 89 << 20} {
		show(models.Progress{Source: "pypi:x", Step: "download", Done: done, Total: 89 << 20})
	}
	for _, done := range []int64{0, 94 << 20} {
		show(models.Progress{Source: "pypi:x", Step: "extract", Done: done, Total: 94 << 20})
	}
	want := "download: pypi:x, 89 MiB\ndownload: pypi:x, 89 MiB done\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	if strings.ContainsAny(b.String(), "\r\x1b") {
		t.Errorf("control characters: %q", b.String())
	}
}
