package main

import (
	"crypto/x509"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// fallbackRoots lets a process that has no certificates of authorities on its system, as in an image of nothing but this binary, verify
// servers by those that Mozilla trusts. A system's own come first. It takes a millisecond, hence it is not done at every start.
var fallbackRoots = sync.OnceFunc(func() {
	p := x509.NewCertPool()
	for c := range bundle.Roots() {
		cert, err := x509.ParseCertificate(c.Certificate)
		switch {
		case err != nil: // the others are good
		case c.Constraint == nil:
			p.AddCert(cert)
		default:
			p.AddCertWithConstraint(cert, c.Constraint)
		}
	}
	x509.SetFallbackRoots(p)
})
