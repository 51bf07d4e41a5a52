package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	file, big := filepath.Join(dir, "key"), filepath.Join(dir, "big")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, make([]byte, maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"KEY": "from the environment"}[name] }
	for ref, want := range map[string]string{"env:KEY": "from the environment", "file:" + file: "from a file"} {
		if b, err := readSecret(ref, env); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", ref, b, err)
		}
	}
	for ref, want := range map[string]string{
		"env:NONE": "not set", "file:" + dir + "/none": "no such file", "file:" + big: "longer", "sk-1234567890": "env:NAME or file:PATH",
	} {
		_, err := readSecret(ref, env)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q: %v", ref, want, err)
		}
		if err != nil && strings.Contains(err.Error(), "sk-1234567890") {
			t.Errorf("the secret is in the error: %v", err)
		}
	}
	if _, err := readSecret("env:KEY", nil); err == nil {
		t.Error("an environment that is not there gave a value")
	}
}
