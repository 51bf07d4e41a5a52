package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// In a folder without certificates there are Mozilla's; elsewhere the system's own.
func TestFallbackRoots(t *testing.T) {
	const mark = "DYNAMO_TEST_ROOTS"
	if os.Getenv(mark) != "" {
		fallbackRoots()
		pool, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("empty:", pool.Equal(x509.NewCertPool()))
		return
	}
	for _, dir := range []string{t.TempDir(), "/etc/ssl/certs"} {
		if _, err := os.Stat(dir); err != nil {
			t.Logf("NOT RUN: %v", err)
			continue
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestFallbackRoots$", "-test.v")
		cmd.Env = append(os.Environ(), mark+"=1", "SSL_CERT_FILE="+dir+"/none", "SSL_CERT_DIR="+dir)
		if b, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(b), "empty: false") {
			t.Errorf("%s: %v\n%s", dir, err, b)
		}
	}
}
