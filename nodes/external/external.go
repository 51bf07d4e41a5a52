// Package external registers the kind of node "external": a server with OpenAI's HTTP API that somebody else runs. It runs in the process of
// its caller and passes chats on as they came: the server has the template and the tokenizer.
package external

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

const schema = `
// #External is a server with OpenAI's HTTP API that this graph does not run. It takes chats as text.
#External: {
	kind: "external"

	// url is where its API begins, as "https://api.example.com/v1": HTTPS, but for this machine.
	url!: =~"^https?://[^ ]+$"

	// key is its API key; it is read anew for each request. Default: none is sent.
	key?: #Ref

	// models maps the names that clients use to the names that the server has; it gets no others. Default: it gets all names that no other
	// node serves, as they are.
	models?: [string]: string & !=""

	// timeout is the longest that it may take for an answer; "0s" is no limit. Default: "5m".
	timeout?: #Duration

	// retries is how often a request is sent again when it could not be taken; 0 or more. Default: 2.
	retries?: int & >=0 & <=10
}
`

// Config is what a spec may set.
type Config struct {
	URL     string            `json:"url"`
	Key     string            `json:"key,omitempty"`    // reference; "": none is sent
	Models  map[string]string `json:"models,omitempty"` // names there, by names here
	Timeout graph.Duration    `json:"timeout"`
	Retries int               `json:"retries"`
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:     "external",
		Summary:  "A server with OpenAI's API that somebody else runs.",
		Schema:   schema,
		Colocate: true,
		Default:  func() Config { return Config{Timeout: graph.Duration(5 * time.Minute), Retries: 2} },
		Ports: func(Config) []kind.Port {
			return []kind.Port{{
				Name: "in", Type: "chat", Dir: kind.In, Need: true, Many: true,
				Doc: "it takes text only, as it has a tokenizer of its own: lead an edge from a frontend to it",
			}}
		},
		Check: check,
		Limits: func(c Config) []kind.Limit {
			return []kind.Limit{{Bound: kind.Total, Field: "timeout", Value: int64(c.Timeout)}}
		},
		Features: func(Config) ([]string, bool) { return nil, false },
		Names:    func(c Config) map[string]string { return c.Models },
		Calls:    func(c Config) []string { return []string{c.URL} },
		New:      func(c Config, h kind.Host) (kind.Component, error) { return New(c, h), nil },
	})
}

func check(c Config, s kind.Site) diag.List {
	var l diag.List
	add := func(code, field, hint, format string, args ...any) {
		l.Add(s.Finding(code, field, hint, format, args...))
	}
	if c.Timeout < 0 {
		add("bad-value", "timeout", "", "%q is below zero", c.Timeout.Std())
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		add("bad-value", "url", `write it as "https://HOST/v1"`, "%q is not the URL of a server", redacted(c.URL))
		return l
	}
	if u.Scheme == "http" && !local(u.Hostname()) {
		add("plain-http", "url", fmt.Sprintf("write %q", "https://"+u.Host+u.Path), "%s is another machine: prompts, answers and the key would be sent in the clear", u.Hostname())
	}
	if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") {
		add("bad-value", "url", "leave out /chat/completions", "%q is one call, not where the API begins", u.Path)
	}
	return l
}

// redacted is a URL without what may be a credential.
func redacted(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "…" + s[i:]
	}
	return s
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
