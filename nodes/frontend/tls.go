package frontend

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

// identity is what the frontend shows to clients over TLS. It is read again when the files change, so that a certificate can be renewed under
// load; what cannot be read leaves the old one in use.
type identity struct {
	host kind.Host
	c    TLS

	mu      sync.Mutex
	config  *tls.Config
	raw     [3][]byte // certificate, key, authorities of clients
	next    time.Time
	warning string // the last one, so that it is told once
}

func newIdentity(h kind.Host, c TLS) (*identity, error) {
	s := &identity{host: h, c: c}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.next = time.Now().Add(reread)
	return s, nil
}

// tls is the listener's configuration.
func (s *identity) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current(), nil },
	}
}

func (s *identity) load() error {
	var raw [3][]byte
	for i, ref := range []string{"file:" + s.c.Cert, s.c.Key, "file:" + s.c.Clients} {
		if i == 2 && s.c.Clients == "" {
			continue
		}
		b, err := s.host.Secret(ref)
		if err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		raw[i] = b
	}
	if s.config != nil && bytes.Equal(raw[0], s.raw[0]) && bytes.Equal(raw[1], s.raw[1]) && bytes.Equal(raw[2], s.raw[2]) {
		return nil
	}
	cert, err := tls.X509KeyPair(raw[0], raw[1])
	if err != nil {
		return fmt.Errorf("tls: %s with its key: %w", s.c.Cert, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{cert}}
	if s.c.Clients != "" {
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(raw[2]) {
			return fmt.Errorf("tls: %s: it holds no certificate in PEM", s.c.Clients)
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if s.config != nil {
		s.host.Log().Info("the certificate was renewed", "until", cert.Leaf.NotAfter)
	}
	s.config, s.raw = c, raw
	return nil
}

func (s *identity) current() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.After(s.next) {
		s.next = now.Add(reread)
		warning := ""
		if err := s.load(); err != nil {
			warning = err.Error()
		}
		if warning != "" && warning != s.warning {
			s.host.Log().Warn("the certificate cannot be read again; the old one is used", "error", warning)
		}
		s.warning = warning
	}
	return s.config
}
