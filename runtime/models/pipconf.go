package models

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pipConfig is the part of the user's pip configuration that says where packages are. Later files override earlier ones and PIP_*
// variables override files, as for pip itself.
type pipConfig struct {
	indexes    []string // index-url, then extra-index-url; none with no-index
	findLinks  []string
	cert       string // PEM file
	clientCert string // PEM file with certificate and key
	proxy      string
	trusted    []string // host or host:port
}

const defaultIndex = "https://pypi.org/simple"

// pipConfig reads configuration files and the environment.
func (c *Cache) pipConfig() pipConfig {
	values := map[string]string{}
	for _, path := range c.pipFiles() {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // most of them are not there
		}
		sections := parseINI(string(b))
		for _, name := range []string{"global", "install", "download"} {
			for k, v := range sections[name] {
				values[k] = v
			}
		}
	}
	for _, k := range []string{"index-url", "extra-index-url", "find-links", "no-index", "cert", "client-cert", "proxy", "trusted-host"} {
		if v := c.o.Getenv("PIP_" + strings.ToUpper(strings.ReplaceAll(k, "-", "_"))); v != "" {
			values[k] = v
		}
	}
	p := pipConfig{
		findLinks:  strings.Fields(values["find-links"]),
		cert:       c.expand(values["cert"]),
		clientCert: c.expand(values["client-cert"]),
		proxy:      values["proxy"],
		trusted:    strings.Fields(values["trusted-host"]),
	}
	switch strings.ToLower(values["no-index"]) {
	case "1", "true", "yes", "on", "y", "t":
		return p
	}
	p.indexes = []string{defaultIndex}
	if v := values["index-url"]; v != "" {
		p.indexes[0] = v
	}
	p.indexes = append(p.indexes, strings.Fields(values["extra-index-url"])...)
	return p
}

// pipFiles lists pip's configuration files, least important first.
func (c *Cache) pipFiles() []string {
	extra := c.o.Getenv("PIP_CONFIG_FILE")
	if extra == os.DevNull {
		return nil
	}
	var out []string
	dirs := c.o.Getenv("XDG_CONFIG_DIRS")
	if dirs == "" {
		dirs = "/etc/xdg"
	}
	all := filepath.SplitList(dirs)
	slices.Reverse(all) // the first is the most important one
	for _, d := range all {
		out = append(out, filepath.Join(c.root, d, "pip", "pip.conf"))
	}
	out = append(out, filepath.Join(c.root, "Library", "Application Support", "pip", "pip.conf"), filepath.Join(c.root, "etc", "pip.conf"))
	if home := c.o.Getenv("HOME"); home != "" {
		out = append(out, filepath.Join(home, ".pip", "pip.conf"), filepath.Join(home, "Library", "Application Support", "pip", "pip.conf"))
		if c.o.Getenv("XDG_CONFIG_HOME") == "" {
			out = append(out, filepath.Join(home, ".config", "pip", "pip.conf"))
		}
	}
	if v := c.o.Getenv("XDG_CONFIG_HOME"); v != "" {
		out = append(out, filepath.Join(v, "pip", "pip.conf"))
	}
	if v := c.o.Getenv("VIRTUAL_ENV"); v != "" {
		out = append(out, filepath.Join(v, "pip.conf"))
	}
	if extra != "" {
		out = append(out, c.expand(extra))
	}
	return out
}

// parseINI reads the form of Python's configparser without interpolation: sections, "key = value" or "key: value", indented lines go on.
func parseINI(text string) map[string]map[string]string {
	out := map[string]map[string]string{}
	var section map[string]string
	key := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case (line[0] == ' ' || line[0] == '\t') && key != "":
			section[key] += "\n" + trimmed
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			name := trimmed[1 : len(trimmed)-1]
			if out[name] == nil {
				out[name] = map[string]string{}
			}
			section, key = out[name], ""
		default:
			i := strings.IndexAny(trimmed, "=:")
			if section == nil || i < 0 {
				key = ""
				continue
			}
			key = strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:i])), "_", "-"), "--")
			section[key] = strings.TrimSpace(trimmed[i+1:])
		}
	}
	return out
}

// trusts reports whether the user told pip not to verify u's host.
func (p pipConfig) trusts(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return slices.Contains(p.trusted, u.Hostname()) || slices.Contains(p.trusted, net.JoinHostPort(u.Hostname(), port))
}

// transport is how pip would connect to u.
func (p pipConfig) transport(u *url.URL) (t transport, err error) {
	if p.cert != "" || p.clientCert != "" || p.trusts(u) {
		t.tls = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: p.trusts(u)} //nolint:gosec // as the user's trusted-host asks
	}
	if p.cert != "" {
		pem, err := os.ReadFile(p.cert)
		if err != nil {
			return t, fmt.Errorf("pip's cert: %w", err)
		}
		t.tls.RootCAs = x509.NewCertPool()
		if !t.tls.RootCAs.AppendCertsFromPEM(pem) {
			return t, fmt.Errorf("pip's cert: %s holds no PEM certificate", p.cert)
		}
	}
	if p.clientCert != "" {
		pair, err := tls.LoadX509KeyPair(p.clientCert, p.clientCert)
		if err != nil {
			return t, fmt.Errorf("pip's client-cert: %w", err)
		}
		t.tls.Certificates = []tls.Certificate{pair}
	}
	if p.proxy != "" {
		text := p.proxy
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if t.proxy, err = url.Parse(text); err != nil || t.proxy.Host == "" {
			return t, fmt.Errorf("pip's proxy is no URL")
		}
	}
	return t, nil
}
