package frontend

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

const okBody = `{"model":"tiny","messages":[{"role":"user","content":"hi"}]}`

// with makes serve's frontend read refs of these secrets.
func with(secrets map[string]string, set func(*Config)) func(*Frontend) {
	return func(f *Frontend) {
		f.host.(*kindtest.Host).Secrets = secrets
		set(&f.c)
	}
}

func TestKeys(t *testing.T) {
	sum := sha256.Sum256([]byte("another-long-key-of-bob"))
	s := serve(t, words("hello"), with(map[string]string{
		"env:KEYS": "# ours\nalice a-long-key-of-alice\n\nsha256:" + hex.EncodeToString(sum[:]) + "\n",
	}, func(c *Config) { c.Keys = "env:KEYS" }))
	for _, c := range []struct {
		name, path, header, value string
		want                      int
	}{
		{"no key", pathChat, "X-None", "", 401},
		{"a wrong key", pathChat, "Authorization", "Bearer a-long-key-of-alicf", 401},
		{"its hash", pathChat, "Authorization", "Bearer sha256:" + hex.EncodeToString(sum[:]), 401},
		{"not a bearer", pathChat, "Authorization", "Basic a-long-key-of-alice", 401},
		{"a key", pathChat, "Authorization", "Bearer a-long-key-of-alice", 200},
		{"a hashed key", pathChat, "authorization", "bearer  another-long-key-of-bob", 200},
		{"Anthropic's header", pathChat, "x-api-key", "a-long-key-of-alice", 200},
		{"models without a key", pathModels, "X-None", "", 401},
		{"metrics without a key", "/metrics", "X-None", "", 401},
		{"models", pathModels, "Authorization", "Bearer a-long-key-of-alice", 200},
		{"a probe", "/ready", "X-None", "", 200},
		{"a probe", "/live", "X-None", "", 200},
	} {
		method, body := "GET", ""
		if c.path == pathChat {
			method, body = "POST", okBody
		}
		status, header, text := s.get(method, c.path, body, c.header, c.value)
		if status != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, status, c.want, text)
		}
		if status == 401 && (!strings.Contains(text, `"code":"invalid_api_key"`) || header.Get("WWW-Authenticate") != "Bearer") {
			t.Errorf("%s: %v %s", c.name, header, text)
		}
	}
}

func TestKeysRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "holds no key",
		"short":                         "line 1: a key has at least 16 characters",
		"a b c":                         "line 1: want [NAME] KEY",
		"\nbob sha256:12":               "line 2: a hash has 64",
		"bob not-so-secret-key\nx\n# c": "line 2: a key",
	} {
		h := kindtest.NewHost(t, "api", "api-0", nil)
		h.Secrets = map[string]string{"env:K": text}
		_, err := newKeys(h, "env:K")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q: %v", text, want, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the key is in the error: %v", err)
		}
	}
	h := kindtest.NewHost(t, "api", "api-0", nil)
	if _, err := newKeys(h, "env:NONE"); err == nil || !strings.Contains(err.Error(), "env:NONE") {
		t.Errorf("%v", err)
	}
}

// A key that is taken out of the file is refused soon; a file that cannot be read leaves the keys as they were.
func TestKeysReread(t *testing.T) {
	h := kindtest.NewHost(t, "api", "api-0", nil)
	h.Secrets = map[string]string{"file:k": "the-first-long-key"}
	k, err := newKeys(h, "file:k")
	if err != nil {
		t.Fatal(err)
	}
	good := func(key string) bool {
		k.next = time.Time{} // time to look again
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-api-key", key)
		_, ok := k.name(r)
		return ok
	}
	h.Secrets = map[string]string{}
	if !good("the-first-long-key") {
		t.Error("an unreadable file took the keys away")
	}
	h.Secrets = map[string]string{"file:k": "the-second-long-key"}
	if good("the-first-long-key") || !good("the-second-long-key") {
		t.Error("the new file is not in force")
	}
}

// signed makes a certificate, signed by parent or by itself.
func signed(t *testing.T, name string, parent *tls.Certificate) (cert tls.Certificate, certPEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: parent == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	by, signer := c, any(key)
	if parent != nil {
		by, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}))
	if cert, err = tls.X509KeyPair([]byte(certPEM), []byte(keyPEM)); err != nil {
		t.Fatal(err)
	}
	return cert, certPEM, keyPEM
}

func TestTLS(t *testing.T) {
	_, cert, key := signed(t, "one.test", nil)
	ca, caPEM, _ := signed(t, "ca.test", nil)
	client, _, _ := signed(t, "client.test", &ca)
	stranger, _, _ := signed(t, "client.test", nil)
	s := serve(t, words("hello"), with(map[string]string{"file:c": cert, "env:K": key, "file:ca": caPEM}, func(c *Config) {
		c.TLS = &TLS{Cert: "c", Key: "env:K", Clients: "ca"}
	}))
	get := func(name, proto string, certs ...tls.Certificate) (string, error) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(cert))
		tr := &http.Transport{ForceAttemptHTTP2: proto == "HTTP/2.0", TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name, Certificates: certs, MinVersion: tls.VersionTLS12}}
		defer tr.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+s.f.Addr()+pathChat, strings.NewReader(okBody))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: tr}).Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if resp.Proto != proto {
			t.Errorf("%s, want %s", resp.Proto, proto)
		}
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		if text, err := get("one.test", proto, client); err != nil || !strings.Contains(text, "hello") {
			t.Errorf("%s: %q, %v", proto, text, err)
		}
	}
	if _, err := get("one.test", "HTTP/1.1"); err == nil {
		t.Error("a client without a certificate was let in")
	}
	if _, err := get("one.test", "HTTP/1.1", stranger); err == nil {
		t.Error("a client with another authority's certificate was let in")
	}
	resp, err := http.Get("http://" + s.f.Addr() + "/live")
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("plain HTTP was answered")
		}
	}

	// Renewed: what cannot be read leaves the old certificate; the new one is shown without a restart.
	_, cert2, key2 := signed(t, "two.test", nil)
	look := func(secrets map[string]string) {
		s.host.Secrets = secrets
		s.f.shown.mu.Lock()
		s.f.shown.next = time.Time{}
		s.f.shown.mu.Unlock()
	}
	look(map[string]string{"file:c": cert2, "env:K": key, "file:ca": caPEM})
	if _, err := get("one.test", "HTTP/1.1", client); err != nil {
		t.Errorf("half a renewal: %v", err)
	}
	look(map[string]string{"file:c": cert2, "env:K": key2, "file:ca": caPEM})
	cert = cert2
	if text, err := get("two.test", "HTTP/1.1", client); err != nil || !strings.Contains(text, "hello") {
		t.Errorf("after the renewal: %q, %v", text, err)
	}
}
