package models

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynamograph/dynamo/graph/model"
)

// hub fetches from a hub with the layout BASE/ORG/REPO/resolve/REVISION/FILE.
func (t *try) hub(ctx context.Context) (File, error) {
	token, err := t.hubToken()
	if err != nil {
		return File{}, err
	}
	u := t.hubURL(t.src.File)
	client, done := t.client(transport{})
	defer done()
	var linked string // the hub tells the hash of large files before it redirects to their store
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if v := strings.Trim(r.Response.Header.Get("X-Linked-Etag"), `"`); isSHA256(v) {
			linked = v
		}
		return redirect(r, via)
	}
	r := request{client: client, url: u, want: t.pin, by: "the graph", header: http.Header{}}
	r.answered = func(r *request, _ *http.Response) {
		if r.want == "" && linked != "" {
			r.want, r.by = linked, "the hub"
		}
	}
	if token != "" {
		r.header.Set("Authorization", "Bearer "+token)
	}
	return t.download(ctx, r, t.publish)
}

// hubURL is where the hub has a file of the source's repository; with "" it is the folder, with a final slash.
func (t *try) hubURL(file string) string {
	base := t.o.HubURL
	if base == "" {
		base = t.o.Getenv("HF_ENDPOINT")
	}
	if base == "" {
		base = "https://huggingface.co"
	}
	return strings.TrimRight(base, "/") + "/" + t.src.Repo + "/resolve/" + url.PathEscape(t.src.Revision) + "/" + escape(file)
}

// hubToken is the source's token, or the one that the user's hub tools use.
func (t *try) hubToken() (string, error) {
	if t.src.Token != "" {
		return t.token(t.src.Token)
	}
	if v := strings.TrimSpace(t.o.Getenv("HF_TOKEN")); v != "" {
		return v, nil
	}
	path := t.o.Getenv("HF_TOKEN_PATH")
	if path == "" {
		if home := t.hubHome(); home != "" {
			path = filepath.Join(home, "token")
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", nil //nolint:nilerr // most files are public
	}
	return strings.TrimSpace(string(b)), nil
}

func (c *Cache) hubHome() string {
	if v := c.o.Getenv("HF_HOME"); v != "" {
		return v
	}
	if v := c.o.Getenv("XDG_CACHE_HOME"); v != "" {
		return filepath.Join(v, "huggingface")
	}
	if v := c.o.Getenv("HOME"); v != "" {
		return filepath.Join(v, ".cache", "huggingface")
	}
	return ""
}

// hubCached is the path of a file that the user's hub tools have fetched, or "".
func (c *Cache) hubCached(s model.Source) string {
	root := c.o.Getenv("HF_HUB_CACHE")
	if root == "" {
		home := c.hubHome()
		if home == "" {
			return ""
		}
		root = filepath.Join(home, "hub")
	}
	repo := filepath.Join(root, "models--"+strings.ReplaceAll(s.Repo, "/", "--"))
	commit := s.Revision
	if b, err := os.ReadFile(filepath.Join(repo, "refs", s.Revision)); err == nil {
		commit = strings.TrimSpace(string(b))
	}
	if commit == "" || strings.ContainsAny(commit, `/\`) || commit == ".." {
		return ""
	}
	path := filepath.Join(repo, "snapshots", commit, filepath.FromSlash(s.File))
	if st, err := os.Stat(path); err != nil || st.IsDir() {
		return ""
	}
	return path
}
