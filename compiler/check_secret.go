package compiler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
)

// tokens are what the credentials of well-known services look like.
var tokens = []struct {
	what string
	is   *regexp.Regexp
}{
	{"a key of OpenAI's form", token(`sk-[A-Za-z0-9_-]{16,}`)},
	{"a token of Hugging Face", token(`hf_[A-Za-z0-9]{16,}`)},
	{"a token of GitHub", token(`(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"a token of GitLab", token(`glpat-[A-Za-z0-9_-]{16,}`)},
	{"a key of AWS", token(`(AKIA|ASIA)[A-Z0-9]{16}`)},
	{"a key of Google", token(`AIza[A-Za-z0-9_-]{30,}`)},
	{"a token of Slack", token(`xox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"a key of NVIDIA", token(`nvapi-[A-Za-z0-9_-]{16,}`)},
	{"a token of npm", token(`npm_[A-Za-z0-9]{30,}`)},
	{"a token of PyPI", token(`pypi-[A-Za-z0-9_-]{30,}`)},
	{"a JSON Web Token", token(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{"a private key", token(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
}

// token makes a pattern whose group is a word of its own: not a part of a path or of a longer name.
func token(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9/_.-])(` + pattern + `)`)
}

var (
	inURL = regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://[^/\s@:]*:([^/\s@]+)@`)
	// secretName is how the name of a field or flag ends that holds a secret: "apiKey", "hf-token", "db_password". Other keys and tokens are
	// none: "routing-key", "eos-token".
	secretName = regexp.MustCompile(`(?i)(^|[-_.])((api|secret|access|private|auth)[-_]?key|password|passwd|` +
		`((hf|hub|auth|access|api|bearer|github|gitlab|refresh|session)[-_]?)token|(client[-_]?)secret)$|^(token|secret)$`)
	camelWord = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	reference = regexp.MustCompile(`^(env:[A-Za-z_][A-Za-z0-9_]*|file:\S+|\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\$\([A-Za-z_][A-Za-z0-9_]*\))$`)
)

// secretInSpec finds credentials that everybody who reads the graph would know. A finding shows how a secret begins, never all of it.
func secretInSpec(s *state) diag.List {
	var list diag.List
	add := func(pos diag.Pos, path, value, what string) {
		list.Add(diag.Diagnostic{Code: "secret-in-spec", Pos: pos, Path: path, Secret: value,
			Msg:  fmt.Sprintf("%s: %s looks like %s, which everybody who reads the graph would know", path, hidden(value), what),
			Hint: `keep it outside and write where it is, as "env:NAME" or "file:PATH"; and withdraw it: it has been written down`})
	}
	for _, name := range s.names() {
		n := s.g.Nodes[name]
		var v any
		if n.Inserted || len(n.Config) == 0 || json.Unmarshal(n.Config, &v) != nil {
			continue
		}
		walk(v, "", func(path, value string) {
			what, secret := looksLike(path, value)
			if what == "" {
				return
			}
			pos := n.Pos
			for at := path; at != ""; at = at[:max(strings.LastIndexByte(at, '.'), 0)] { // the nearest that has a place
				if p, ok := n.Fields[at]; ok {
					pos = p
					break
				}
			}
			add(pos, "nodes."+name+"."+path, secret, what)
		})
	}
	sources := func(path string, pos diag.Pos, all []string) {
		for _, src := range all {
			if what, secret := looksLike("", src); what != "" {
				if p, ok := s.g.Fields[path]; ok {
					pos = p
				}
				add(pos, path, secret, what)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.g.Models)) {
		m := s.g.Models[name]
		sources("models."+name+".source", m.Pos, m.Sources)
		for _, a := range slices.Sorted(maps.Keys(m.Adapters)) {
			sources("models."+name+".adapters."+a+".source", m.Adapters[a].Pos, m.Adapters[a].Sources)
		}
	}
	return list
}

// walk calls f with each text in v and its path; texts in a list have the number of their place.
func walk(v any, path string, f func(path, value string)) {
	at := func(k string) string { return strings.TrimPrefix(path+"."+k, ".") }
	switch v := v.(type) {
	case string:
		f(path, v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walk(v[k], at(k), f)
		}
	case []any:
		for i, x := range v {
			walk(x, at(strconv.Itoa(i)), f)
		}
	}
}

// looksLike says which credential is in a value, and where it begins; "" for none. path is that of its field.
func looksLike(path, value string) (what, secret string) {
	if reference.MatchString(value) {
		return "", ""
	}
	for _, t := range tokens {
		if m := t.is.FindStringSubmatch(value); m != nil {
			return t.what, m[1]
		}
	}
	if m := inURL.FindStringSubmatch(value); m != nil && !reference.MatchString(m[1]) {
		return "a password in a URL", m[1]
	}
	if u, err := url.Parse(value); err == nil && u.RawQuery != "" {
		for k, vs := range u.Query() {
			for _, x := range vs {
				if isSecret(k) && plausible(x) && !reference.MatchString(x) {
					return fmt.Sprintf("a credential in a URL, as its parameter %q says", k), x
				}
			}
		}
	}
	if last := path[strings.LastIndexByte(path, '.')+1:]; isSecret(last) && plausible(value) {
		return fmt.Sprintf("a credential, as its name %q says", last), value
	}
	return "", ""
}

// isSecret reports whether a field of that name holds a secret.
func isSecret(name string) bool {
	return secretName.MatchString(camelWord.ReplaceAllString(name, "${1}-${2}"))
}

// plausible reports whether a text may be a secret: a path, a name of a file and a number are none.
func plausible(value string) bool {
	if len(value) < 6 || strings.ContainsAny(value, " /\\") {
		return false
	}
	for _, suffix := range []string{".pem", ".key", ".crt", ".txt", ".json", ".yaml"} {
		if strings.HasSuffix(value, suffix) {
			return false
		}
	}
	_, err := strconv.ParseFloat(value, 64)
	return err != nil
}

// hidden shows how a secret begins.
func hidden(secret string) string {
	r := []rune(secret)
	return strconv.Quote(string(r[:min(3, len(r)/2)]) + "…")
}
