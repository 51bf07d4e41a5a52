package node

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret bounds a file that a reference names, in bytes.
const maxSecret = 1 << 20

// readSecret is kind.Host.Secret. getenv may be nil: then there is no environment.
func readSecret(ref string, getenv func(string) string) ([]byte, error) {
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		if getenv != nil {
			if v := getenv(name); v != "" {
				return []byte(v), nil
			}
		}
		return nil, fmt.Errorf("%q: the environment variable is not set", ref)
	}
	path, ok := strings.CutPrefix(ref, "file:")
	if !ok {
		return nil, fmt.Errorf("a reference is env:NAME or file:PATH") // what it is instead may be the secret itself
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", ref, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", ref, err)
	}
	if len(b) > maxSecret {
		return nil, fmt.Errorf("%q: the file is longer than %d bytes", ref, maxSecret)
	}
	return b, nil
}
