package model

import (
	"errors"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Source is where a model's bytes can be had. Which fields are set follows from Scheme.
type Source struct {
	Scheme string // "file", "pypi", "https" or "hf"

	Path string // file: on this machine; as written, maybe relative or with a leading ~/

	Package string // pypi: name as written
	Version string // pypi: exact
	Member  string // pypi: path inside the wheel

	URL string // https: without fragment; http only towards this machine

	Repo     string // hf: "org/repo"
	Revision string // hf: branch, tag or commit; "main" where the source names none
	File     string // hf: path inside the repository

	Token string // https, hf: where the access token is: "env:NAME" or "file:PATH"; never the token

	raw string
}

// String is the source as it was written.
func (s Source) String() string { return s.raw }

// Redacted is the source for messages: without a URL's query, which may hold a signature.
func (s Source) Redacted() string {
	if head, _, ok := strings.Cut(s.raw, "?"); ok && s.Scheme == "https" {
		return head + "?…"
	}
	return s.raw
}

// SourceError is what is wrong with a source as written.
type SourceError struct {
	Source string // as written
	Msg    string
	Hint   string // what to write instead
	Whole  bool   // it is right but for naming a whole repository where a file is needed
}

func (e *SourceError) Error() string {
	return "source " + quote(e.Source) + ": " + e.Msg + " (" + e.Hint + ")"
}

// The forms, for hints.
const (
	formFile  = "write file:PATH"
	formPyPI  = "write pypi:PACKAGE==VERSION/PATH/IN/WHEEL"
	formHTTPS = "write https://HOST/PATH"
	formHub   = "write hf:ORG/REPO/FILE or hf:ORG/REPO@REVISION/FILE"
	formToken = "write #token=env:NAME or #token=file:PATH"
)

var (
	packageName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	versionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.!+_-]*$`)
	hubName     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// ParseSource reads a source: file:PATH, pypi:PACKAGE==VERSION/PATH/IN/WHEEL, https://HOST/PATH, hf:ORG/REPO[@REVISION]/FILE. The last two
// take #token=env:NAME or #token=file:PATH. The error is a *SourceError.
func ParseSource(text string) (Source, error) {
	s := Source{raw: text}
	fail := func(msg, hint string) (Source, error) {
		return Source{}, &SourceError{Source: text, Msg: msg, Hint: hint}
	}
	if text == "" {
		return fail("is empty", "name a source: file:, pypi:, https:// or hf:")
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return fail("holds a control character", "remove it")
	}
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok {
		if strings.Contains(text, "==") {
			return fail("has no scheme", "did you mean "+quote("pypi:"+text)+"?")
		}
		return fail("has no scheme", "did you mean "+quote("file:"+text)+"?")
	}
	s.Scheme = scheme
	if scheme == "https" || scheme == "http" || scheme == "hf" {
		var fragment string
		if rest, fragment, ok = strings.Cut(rest, "#"); ok {
			token, ok := strings.CutPrefix(fragment, "token=")
			where, name, _ := strings.Cut(token, ":")
			if !ok || name == "" || where != "file" && (where != "env" || !envName.MatchString(name)) {
				return fail("its part after # is no token reference", formToken)
			}
			s.Token = token
		}
	}
	switch scheme {
	case "file":
		return s.file(rest, fail)
	case "pypi":
		return s.pypi(rest, fail)
	case "https", "http":
		return s.https(scheme+":"+rest, fail)
	case "hf":
		return s.hub(rest, fail)
	}
	return fail("scheme "+quote(scheme)+" is not known", "known are file:, pypi:, https:// and hf:")
}

type failFunc func(msg, hint string) (Source, error)

func (s Source) file(p string, fail failFunc) (Source, error) {
	if strings.HasPrefix(p, "//") {
		if !strings.HasPrefix(p, "///") {
			return fail("names a host", formFile)
		}
		p = p[2:]
	}
	if p == "" {
		return fail("names no file", formFile)
	}
	if strings.HasSuffix(p, "/") {
		return fail("names a folder", "name the file itself")
	}
	s.Path = p
	return s, nil
}

func (s Source) pypi(rest string, fail failFunc) (Source, error) {
	name, rest, ok := strings.Cut(rest, "==")
	if !ok {
		return fail("names no version", formPyPI)
	}
	if !packageName.MatchString(name) {
		return fail("package "+quote(name)+" is no package name", formPyPI)
	}
	version, member, _ := strings.Cut(rest, "/")
	if !versionForm.MatchString(version) {
		return fail("version "+quote(version)+" is not exact", formPyPI)
	}
	if !inside(member) {
		return fail("path in the wheel "+quote(member)+" is no relative path", formPyPI)
	}
	s.Package, s.Version, s.Member = name, version, member
	return s, nil
}

func (s Source) https(text string, fail failFunc) (Source, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fail("is no URL", formHTTPS)
	case u.Hostname() == "" || u.Opaque != "":
		return fail("names no host", formHTTPS)
	case u.User != nil:
		return fail("holds a user or password", "keep secrets out of the graph: "+formToken)
	case u.Path == "" || strings.HasSuffix(u.Path, "/"):
		return fail("names no file", formHTTPS)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return fail("http is not safe beyond this machine", "write https://"+strings.TrimPrefix(text, "http://"))
	}
	s.Scheme, s.URL = "https", text
	return s, nil
}

func (s Source) hub(rest string, fail failFunc) (Source, error) {
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		_, err := fail("names no file in a repository", formHub)
		if bad := (*SourceError)(nil); len(parts) == 2 && errors.As(err, &bad) {
			name, _, _ := strings.Cut(parts[1], "@")
			bad.Whole = hubName.MatchString(parts[0]) && hubName.MatchString(name)
		}
		return Source{}, err
	}
	repo, revision, ok := strings.Cut(parts[1], "@")
	if !ok {
		revision = "main"
	}
	for _, name := range []string{parts[0], repo} {
		if !hubName.MatchString(name) {
			return fail(quote(name)+" is no name of an organisation or repository", formHub)
		}
	}
	if !versionForm.MatchString(revision) {
		return fail("revision "+quote(revision)+" is no branch, tag or commit", formHub)
	}
	if !inside(parts[2]) {
		return fail("file "+quote(parts[2])+" is no relative path", formHub)
	}
	s.Repo, s.Revision, s.File = parts[0]+"/"+repo, revision, parts[2]
	return s, nil
}

// inside reports whether p is a clean relative path that stays below its root.
func inside(p string) bool {
	return p != "" && path.Clean(p) == p && p != "." && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.Contains(p, `\`)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func quote(s string) string { return `"` + s + `"` }
