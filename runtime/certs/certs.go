// Package certs makes and reads the certificates by which the processes of one graph know each other: one authority a graph, one
// certificate a process group. It is not for clients of the graph: what a frontend shows them is its own.
//
// Every certificate names the graph, not a host, because pods come and go under changing addresses: both sides of a connection present
// one, and both accept any that the graph's authority signed.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The files of a folder of certificates; they are the keys of a Kubernetes Secret too.
const (
	CAFile   = "ca.crt"
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// ServerName is the name in every certificate of a graph.
func ServerName(graph string) string { return graph + ".dynamo.internal" }

// backdate allows for clocks that are behind.
const backdate = 5 * time.Minute

// Pair is a certificate with its key, both PEM.
type Pair struct{ Cert, Key []byte }

// Authority signs the certificates of one graph.
type Authority struct {
	Pair
	graph string
	cert  *x509.Certificate
	key   crypto.Signer
}

// NewAuthority makes an authority that is valid from now.
func NewAuthority(graph string, valid time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "dynamo graph " + graph}, DNSNames: []string{ServerName(graph)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(valid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	p, err := sign(t, t, key, key)
	if err != nil {
		return nil, err
	}
	return ReadAuthority(p)
}

// ReadAuthority reads what NewAuthority made.
func ReadAuthority(p Pair) (*Authority, error) {
	c, err := parseCert(p.Cert)
	if err != nil {
		return nil, err
	}
	if !c.IsCA {
		return nil, errors.New("the certificate is not an authority's")
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	s, ok := k.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key: a %T cannot sign", k)
	}
	if pub, ok := s.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(c.PublicKey) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	if len(c.DNSNames) != 1 {
		return nil, errors.New("the authority's certificate names no graph")
	}
	return &Authority{Pair: p, graph: c.DNSNames[0], cert: c, key: s}, nil
}

// Serves reports whether the authority was made for graph.
func (a *Authority) Serves(graph string) bool { return a.graph == ServerName(graph) }

// Expires is the end of the authority's time.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Sign makes a certificate for a process group. It never outlives the authority.
func (a *Authority) Sign(group string, valid time.Duration) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	now := time.Now()
	end := now.Add(valid)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: group}, DNSNames: []string{a.graph},
		NotBefore: now.Add(-backdate), NotAfter: end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	return sign(t, a.cert, key, a.key)
}

func sign(t, parent *x509.Certificate, key *ecdsa.PrivateKey, by crypto.Signer) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, err
	}
	t.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), by)
	if err != nil {
		return Pair{}, err
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}),
	}, nil
}

func parseCert(b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it is no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// Expires returns the end of a certificate's time.
func Expires(cert []byte) (time.Time, error) {
	c, err := parseCert(cert)
	if err != nil {
		return time.Time{}, err
	}
	return c.NotAfter, nil
}
