package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pki is the authority of one cluster; its files are NAME.crt and NAME.key in dir.
type pki struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newPKI(t *testing.T, dir string) *pki {
	t.Helper()
	p := &pki{t: t, dir: dir}
	p.cert, p.key = p.make("ca", pkix.Name{CommonName: "test-ca"}, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return p
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// make writes a certificate and its key, and a public key beside them.
func (p *pki) make(name string, subject pkix.Name, change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(p.t, err)
	p.next++
	c := &x509.Certificate{SerialNumber: big.NewInt(p.next), Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(c)
	}
	parent, by := p.cert, p.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	must(p.t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(p.t, err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	must(p.t, err)
	for file, b := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "EC PRIVATE KEY", Bytes: private},
		name + ".pub": {Type: "PUBLIC KEY", Bytes: public},
	} {
		must(p.t, os.WriteFile(p.file(file), pem.EncodeToMemory(b), 0o600))
	}
	out, err := x509.ParseCertificate(der)
	must(p.t, err)
	return out, key
}

// server makes the API server's certificate.
func (p *pki) server(ips ...string) {
	p.make("apiserver", pkix.Name{CommonName: "kube-apiserver"}, func(c *x509.Certificate) {
		c.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		for _, ip := range ips {
			c.IPAddresses = append(c.IPAddresses, net.ParseIP(ip))
		}
	})
}

// client makes a certificate of a user, and a kubeconfig with it; it returns the kubeconfig's path.
func (p *pki) client(name, user, url string, groups ...string) string {
	p.t.Helper()
	p.make(name, pkix.Name{CommonName: user, Organization: groups}, nil)
	path := p.file(name + ".kubeconfig")
	must(p.t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {client-certificate: %q, client-key: %q}}]
`, url, p.file("ca.crt"), p.file(name+".crt"), p.file(name+".key")), 0o600))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pkixName(cn string) pkix.Name { return pkix.Name{CommonName: cn} }
