package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Config reads a folder with ca.crt, tls.crt and tls.key and returns what both sides of a connection inside of graph use: each shows its
// certificate and accepts those of the graph's authority alone. The files are read again when they change, at most once in a second, so that a
// certificate can be renewed without a restart; a half-written renewal leaves the old one in use. The error names the file.
func Config(dir, graph string) (*tls.Config, error) {
	f := &folder{dir: dir, name: ServerName(graph)}
	if err := f.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: f.name,
		ClientAuth: tls.RequireAnyClientCert, // VerifyConnection judges
		// The authority may be renewed: so the roots are not fixed here, and VerifyConnection verifies on both sides.
		InsecureSkipVerify:   true, //nolint:gosec // see VerifyConnection
		VerifyConnection:     f.verify,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { c, _ := f.current(); return c, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { c, _ := f.current(); return c, nil },
		// A resumed session would outlive the check of its certificate.
		SessionTicketsDisabled: true,
	}, nil
}

// folder holds what was last read of a folder of certificates.
type folder struct {
	dir, name string

	mu    sync.Mutex
	cert  *tls.Certificate
	roots *x509.CertPool
	stamp [3]time.Time
	next  time.Time // when the files are looked at again
}

func (f *folder) stamps() (s [3]time.Time) {
	for i, n := range []string{CAFile, CertFile, KeyFile} {
		if st, err := os.Stat(filepath.Join(f.dir, n)); err == nil {
			s[i] = st.ModTime()
		}
	}
	return s
}

func (f *folder) load() error {
	stamp := f.stamps()
	ca := filepath.Join(f.dir, CAFile)
	b, err := os.ReadFile(ca)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return fmt.Errorf("certificates: %s: it holds no certificate in PEM", ca)
	}
	c, err := tls.LoadX509KeyPair(filepath.Join(f.dir, CertFile), filepath.Join(f.dir, KeyFile))
	if err != nil {
		return fmt.Errorf("certificates: %s: %w", f.dir, err)
	}
	if err := f.check(c.Leaf, nil, roots); err != nil {
		return fmt.Errorf("certificates: %s: %w", filepath.Join(f.dir, CertFile), err)
	}
	f.cert, f.roots, f.stamp = &c, roots, stamp
	return nil
}

// current returns the certificate and the roots of now.
func (f *folder) current() (*tls.Certificate, *x509.CertPool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.After(f.next) {
		f.next = now.Add(time.Second)
		if f.stamps() != f.stamp {
			_ = f.load() // half written, or broken: the old one is used until the next look
		}
	}
	return f.cert, f.roots
}

func (f *folder) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the peer shows no certificate")
	}
	_, roots := f.current()
	return f.check(s.PeerCertificates[0], s.PeerCertificates[1:], roots)
}

func (f *folder) check(leaf *x509.Certificate, chain []*x509.Certificate, roots *x509.CertPool) error {
	pool := x509.NewCertPool()
	for _, c := range chain {
		pool.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: pool, DNSName: f.name,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}
