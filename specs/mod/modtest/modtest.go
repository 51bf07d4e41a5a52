// Package modtest has a registry of modules for tests.
package modtest

import (
	"net/http"
	"net/http/httptest"
	"strings"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelabs.dev/go/oci/ociregistry/ociserver"
)

// Registry starts an empty registry on this machine that keeps everything in memory. wrap, where it is not nil, may change what it answers.
// The host is what CUE_REGISTRY takes with "+insecure" behind it; close ends it.
func Registry(wrap func(http.Handler) http.Handler) (host string, close func()) {
	h := ociserver.New(ocimem.New(), nil)
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	return strings.TrimPrefix(srv.URL, "http://"), srv.Close
}
