// Package models brings a model's weights to this machine and keeps them there: sources, download, verification, cache. What is in the
// cache is used without contacting anyone.
//
// A model may list several sources for the same bytes. They are tried in order; one that does not connect within 3 s is passed over. Bytes
// are hashed while they come, compared with the pinned sha256 before they get their name in the cache, and remembered by size and time, so
// that later starts need not hash again. It is not a general downloader, and it does not repack weights: the engine does that.
//
// The cache folder holds:
//
//	models/SHA256.gguf and .json   the bytes, and what is known of them
//	models/known/KEY.json          which bytes an unpinned source, or a file elsewhere, had
//	models/partial/KEY and .json   downloads that are not complete; they are resumed
//	models/locks/KEY               held while a process downloads
package models

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Options says how a Cache works.
type Options struct {
	CacheDir string              // of the user, shared by all graphs; made when needed
	Getenv   func(string) string // HOME, proxies, pip's and the hub's settings, tokens; nil: nothing is set
	HTTP     *http.Client        // nil: one with connect and stall limits
	Progress func(Progress)      // may be nil; called at most every 100 ms, by the goroutine that called Get
	Log      *slog.Logger        // nil: nothing is logged
	HubURL   string              // of the hub behind hf: sources; "": HF_ENDPOINT, or https://huggingface.co
}

// Progress is how far a step of Get is.
type Progress struct {
	Source string // as written, without secrets
	Step   string // "wait" (another process does it), "connect", "download", "verify" or "extract"
	Done   int64  // bytes
	Total  int64  // bytes; 0 where it is not known
	Start  int64  // bytes that were there when the step began: a resumed download
}

// File is a model on this machine.
type File struct {
	Path   string
	SHA256 string // hex
	Size   int64  // bytes
	Facts  model.Facts
}

// Cache finds and fetches models. It is safe for concurrent use, by several processes too.
type Cache struct {
	o    Options
	root string // of the system's configuration files; "/" but in tests
	lim  limits

	mu   sync.Mutex
	seen map[string]record // by path: what this process hashed, for a cache folder that cannot be written
}

type limits struct {
	connect time.Duration // to be connected, TLS included
	stall   time.Duration // without a byte
	backoff time.Duration // before a second attempt; doubles
	tries   int           // attempts at one URL that bring nothing new
}

// New makes a Cache. It touches nothing until it is asked for a model.
func New(o Options) *Cache {
	if abs, err := filepath.Abs(o.CacheDir); err == nil {
		o.CacheDir = abs // paths in File are good in any folder
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Cache{o: o, seen: map[string]record{}, root: "/", lim: limits{connect: 3 * time.Second, stall: 30 * time.Second, backoff: 500 * time.Millisecond, tries: 4}}
}

// Find returns m if its bytes are on this machine: in the cache, at a file: source, or in the hub's own cache. It contacts no one. It may
// read the whole file where that was not seen before or has changed since.
func (c *Cache) Find(m plan.Model) (File, bool) {
	j, err := c.job(m)
	if err != nil {
		return File{}, false
	}
	f, err := j.local(context.Background())
	return f, err == nil
}

// Get returns m, fetching it if it is not on this machine. The error is an *Error, or ctx's.
func (c *Cache) Get(ctx context.Context, m plan.Model) (File, error) {
	j, err := c.job(m)
	if err != nil {
		return File{}, err
	}
	f, err := j.local(ctx)
	if err == nil || !errors.Is(err, errAbsent) {
		return f, j.explain(ctx, err)
	}
	f, err = j.fetch(ctx)
	return f, j.explain(ctx, err)
}

// job is one call for one model.
type job struct {
	*Cache
	name    string
	pin     string // lower case; "" where the graph pins none
	sources []model.Source
	key     string // of the lock that one process at a time holds while it fetches
	tries   []Try
}

func (c *Cache) job(m plan.Model) (*job, error) {
	j := &job{Cache: c, pin: strings.ToLower(m.SHA256)}
	if len(m.Names) > 0 {
		j.name = m.Names[0]
	}
	if j.pin != "" && !isSHA256(j.pin) {
		return nil, &Error{Model: j.name, Msg: "sha256 " + m.SHA256 + " is not 64 hex digits", Hint: "copy it from the model's publisher"}
	}
	if len(m.Sources) == 0 {
		return nil, &Error{Model: j.name, Msg: "no source is named", Hint: "add one to the model: file:, pypi:, https:// or hf:"}
	}
	for _, text := range m.Sources {
		s, err := model.ParseSource(text)
		if err != nil {
			return nil, &Error{Model: j.name, Msg: "cannot be fetched", Tries: []Try{{Source: text, Err: err}}, Hint: "mend the source"}
		}
		j.sources = append(j.sources, s)
	}
	if j.key = j.pin; j.key == "" {
		j.key = keyOf(j.sources[0].String())
	}
	return j, nil
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// errAbsent says that the bytes are not on this machine, which is no fault.
var errAbsent = errors.New("not on this machine")

// local looks for the bytes on this machine. errAbsent means that fetching may help; any other error that it cannot.
func (j *job) local(ctx context.Context) (File, error) {
	if j.pin != "" {
		if f, err := j.cached(ctx, j.pin); !errors.Is(err, errAbsent) {
			return f, err
		}
	}
	var tries []Try
	for _, s := range j.sources {
		var f File
		err := errAbsent
		switch s.Scheme {
		case "file":
			if f, err = j.inPlace(ctx, s, j.expand(s.Path)); err != nil {
				tries = append(tries, Try{Source: s.Redacted(), Err: err})
			}
		case "hf":
			if path := j.hubCached(s); path != "" {
				f, err = j.inPlace(ctx, s, path)
			}
		}
		if err != nil && s.Scheme != "file" && j.pin == "" {
			if sum := j.known(s.String()); sum != "" {
				f, err = j.cached(ctx, sum)
			}
		}
		if err == nil || ctx.Err() != nil {
			return f, err
		}
	}
	j.tries = tries
	return File{}, errAbsent
}

// fetch tries the sources that are not files.
func (j *job) fetch(ctx context.Context) (File, error) {
	remote := false
	for _, s := range j.sources {
		remote = remote || s.Scheme != "file"
	}
	if !remote {
		return File{}, errAbsent
	}
	if err := j.makeDirs(); err != nil {
		return File{}, err
	}
	unlock, err := j.lock(ctx, "model-"+j.key, j.sources[0])
	if err != nil {
		return File{}, err
	}
	defer unlock()
	if f, err := j.local(ctx); err == nil || !errors.Is(err, errAbsent) {
		return f, err // another process brought it
	}
	for _, s := range j.sources {
		if s.Scheme == "file" {
			continue // local has looked at it
		}
		t := &try{job: j, src: s, where: s.Redacted()}
		f, err := t.run(ctx)
		if err == nil {
			j.o.Log.Info("model fetched", "model", j.name, "source", s.Redacted(), "sha256", f.SHA256, "bytes", f.Size)
			return f, nil
		}
		if ctx.Err() != nil {
			return File{}, ctx.Err()
		}
		j.tries = append(j.tries, Try{Source: s.Redacted(), Where: t.where, Err: err})
		j.o.Log.Info("model source failed", "model", j.name, "source", s.Redacted(), "err", err)
		if final(err) {
			break
		}
	}
	return File{}, errAbsent
}

// try is one attempt at one source.
type try struct {
	*job
	src   model.Source
	where string // what is being contacted, for messages
}

func (t *try) run(ctx context.Context) (File, error) {
	switch t.src.Scheme {
	case "pypi":
		return t.pypi(ctx)
	case "hf":
		return t.hub(ctx)
	}
	return t.https(ctx)
}

// expand makes a path of a file: source usable: ~/ is the home folder.
func (c *Cache) expand(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home := c.o.Getenv("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	return p
}
