package models

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestPipConfig(t *testing.T) {
	home, venv, extra := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "p.conf")
	c := newCache(t, nil)
	e := env{"HOME": home, "VIRTUAL_ENV": venv}
	c.o.Getenv = e.get
	check := func(what string, want pipConfig) {
		t.Helper()
		if got := c.pipConfig(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
		}
	}
	check("nothing", pipConfig{indexes: []string{defaultIndex}})
	write(t, filepath.Join(c.root, "etc", "pip.conf"), []byte("[global]\nindex-url = https://a/simple\ncert: ~/ca.pem\n"))
	check("etc", pipConfig{indexes: []string{"https://a/simple"}, cert: filepath.Join(home, "ca.pem")})
	write(t, filepath.Join(home, ".config", "pip", "pip.conf"), []byte(`
; a comment
[global]
index_url = https://b/simple
# another
find-links =
    /one
    # inside
    /two
trusted-host = h1
    h2:8080
[install]
extra-index-url = https://c/simple https://d/simple
[list]
proxy = http://not-for-us
`))
	check("user", pipConfig{indexes: []string{"https://b/simple", "https://c/simple", "https://d/simple"}, findLinks: []string{"/one", "/two"},
		cert: filepath.Join(home, "ca.pem"), trusted: []string{"h1", "h2:8080"}})
	write(t, filepath.Join(venv, "pip.conf"), []byte("[global]\nno-index = yes\nproxy = p:3128\n"))
	check("venv", pipConfig{findLinks: []string{"/one", "/two"}, cert: filepath.Join(home, "ca.pem"), proxy: "p:3128", trusted: []string{"h1", "h2:8080"}})
	write(t, extra, []byte("[global]\nno-index = no\nextra-index-url =\n"))
	e["PIP_CONFIG_FILE"], e["PIP_FIND_LINKS"], e["PIP_CERT"] = extra, "/env", "/env.pem"
	check("env", pipConfig{indexes: []string{"https://b/simple"}, findLinks: []string{"/env"}, cert: "/env.pem", proxy: "p:3128", trusted: []string{"h1", "h2:8080"}})
	e["PIP_CONFIG_FILE"] = "/dev/null"
	check("no files", pipConfig{indexes: []string{defaultIndex}, findLinks: []string{"/env"}, cert: "/env.pem"})
}

func FuzzParseINI(f *testing.F) {
	f.Add("[global]\na = b\n c\n")
	f.Add(" x\n[a]\n y\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, section := range parseINI(text) {
			if section == nil {
				t.Fatal("a section without a map")
			}
		}
	})
}
