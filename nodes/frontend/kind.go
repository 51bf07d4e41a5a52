package frontend

import (
	"net"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

const schema = `
// #Frontend answers OpenAI's HTTP API.
#Frontend: {
	kind: "frontend"

	// listen is the address "HOST:PORT"; port 0 takes a free one. Default: "127.0.0.1:8000": this machine only.
	listen?: =~"^[^ ]*:[0-9]+$"

	// body is the longest request body, in bytes; above 0. All requests in progress hold 4 times that at most, beyond it they are refused
	// with status 429. Default: 33554432 (32 MiB).
	body?: int & >0

	// requests is how many requests may be in progress; beyond it they are refused with status 429; above 0. Default: 1024.
	requests?: int & >0

	// keepAlive is the pause after which a silent stream gets a comment, so that proxies do not cut it; "0s" sends none. Default: "15s".
	keepAlive?: #Duration

	// slowClient is how long a client may take to accept what we write before it is cut off. Default: "30s".
	slowClient?: #Duration

	// timeout is the longest that a request may take; "0s" is no limit. Default: "0s".
	timeout?: #Duration

	// keys names the API keys that clients may use: one a line, "[NAME] KEY", the key itself or "sha256:" and its hash. They are read anew
	// when they change. Default: requests need no key.
	keys?: #Ref

	// tls makes it speak HTTPS. Certificates are read anew when they change. Default: plain HTTP.
	tls?: {
		// cert is the path of the certificate and those of its authorities, in PEM.
		cert!: string & !=""

		// key is the certificate's key, in PEM.
		key!: #Ref

		// clients is the path of the authorities whose certificates clients must show, in PEM. Default: clients show none.
		clients?: string & !=""
	}

	// insecure says that whoever reaches the address may use it: without keys and without clients' certificates, a listener beyond this
	// machine is refused unless this is true. Default: false.
	insecure?: bool

	// tenants says how clients are told apart: "key" makes each name of a key in keys a tenant of its own, whose KV nobody else is given;
	// "none" makes all of them one. Default: "none".
	tenants?: "none" | "key"

	// reasoningField is what answers call the model's reasoning: "reasoning_content" or "reasoning". Requests may use either.
	// Default: "reasoning_content".
	reasoningField?: "reasoning_content" | "reasoning"

	// routes say which models' requests go where; the first that fits counts. They are checked, but not run yet. Default: each request goes
	// where its model is served.
	routes?: [...#Route]
}

// #Route sends the requests for some models to one node.
#Route: {
	// model is a name that clients use, or a pattern where * stands for any characters.
	model!: string & !=""

	// to is the node that takes the requests: an edge of the frontend leads to it.
	to!: #Name

	// fallbacks are the nodes that take them, in order, when the one before cannot. Default: none.
	fallbacks?: [...#Name]
}
`

// Config is what a spec may set.
type Config struct {
	Listen     string         `json:"listen"`
	Body       int64          `json:"body"` // bytes
	Requests   int            `json:"requests"`
	KeepAlive  graph.Duration `json:"keepAlive"`
	SlowClient graph.Duration `json:"slowClient"`
	Timeout    graph.Duration `json:"timeout"`
	Keys       string         `json:"keys,omitempty"` // reference; "": requests need no key
	TLS        *TLS           `json:"tls,omitempty"`
	Insecure   bool           `json:"insecure,omitempty"` // the author knows that anybody may come
	Tenants    string         `json:"tenants"`            // "none" or "key"
	Routes     []Route        `json:"routes,omitempty"`

	ReasoningField string `json:"reasoningField"` // of answers: "reasoning_content" or "reasoning"
}

// TLS says what the frontend shows to clients, and what they must show.
type TLS struct {
	Cert    string `json:"cert"`              // path
	Key     string `json:"key"`               // reference
	Clients string `json:"clients,omitempty"` // path of the authorities of clients; "": they show nothing
}

// DefaultConfig is the config where a spec says nothing.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:8000", Body: 32 << 20, Requests: 1024, Tenants: "none", ReasoningField: "reasoning_content",
		KeepAlive: graph.Duration(15 * time.Second), SlowClient: graph.Duration(30 * time.Second),
	}
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:    "frontend",
		Summary: "Answers OpenAI's HTTP API.",
		Schema:  schema,
		Default: DefaultConfig,
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "out", Type: "chat", Dir: kind.Out, Need: true, Many: true},
				{Name: "load", Type: "load", Dir: kind.Out, Many: true, Signals: []string{"ttft", "itl", "requests"}},
			}
		},
		Check:  check,
		Listen: func(c Config) map[string]string { return map[string]string{"listen": c.Listen} },
		Guard:  guard,
		Lacks: func(c Config) []kind.Lack {
			if len(c.Routes) > 0 {
				return []kind.Lack{{Field: "routes", Msg: "routes are not run yet: leave them out, and each request goes where its model is served"}}
			}
			return nil
		},
		Limits: func(c Config) []kind.Limit {
			return []kind.Limit{
				{Bound: kind.Body, Field: "body", Value: c.Body},
				{Bound: kind.Admit, Field: "requests", Value: int64(c.Requests)},
				{Bound: kind.Total, Field: "timeout", Value: int64(c.Timeout)},
			}
		},
		Tenants: func(c Config) (string, string) {
			if c.Tenants == "key" {
				return "tells", "tenants"
			}
			return "", ""
		},
		New: func(c Config, h kind.Host) (kind.Component, error) { return New(c, h) },
	})
}

// guard says what keeps strangers out.
func guard(c Config) string {
	switch {
	case c.TLS != nil && c.TLS.Clients != "":
		return "mtls"
	case c.Keys != "":
		return "keys"
	case c.Insecure:
		return "insecure"
	}
	return ""
}

func check(c Config, s kind.Site) diag.List {
	var l diag.List
	add := func(field, hint, format string, args ...any) {
		l.Add(s.Finding("bad-value", field, hint, format, args...))
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil {
		add("listen", `write "127.0.0.1:8000", or ":8000" for all interfaces`, "%q is not an address", c.Listen)
	} else if _, err := net.LookupPort("tcp", port); err != nil {
		add("listen", "use a number from 0 to 65535", "%q is not a port", port)
	}
	if guarded := guard(c); c.Insecure && guarded != "insecure" {
		l.Add(s.Finding("no-effect", "insecure", "remove it", "has no effect: it asks for %s",
			map[string]string{"keys": "keys", "mtls": "clients' certificates"}[guarded]))
	}
	if c.Tenants == "key" && c.Keys == "" {
		add("tenants", `add keys: "file:PATH"`, `"key" needs keys: without them all clients are alike`)
	}
	l = append(l, routes(c, s)...)
	l = append(l, clashes(c, s)...)
	for _, f := range []struct {
		name string
		d    graph.Duration
	}{{"keepAlive", c.KeepAlive}, {"slowClient", c.SlowClient}, {"timeout", c.Timeout}} {
		if f.d < 0 {
			add(f.name, "", "%q is below zero", f.d.Std())
		}
	}
	return l
}
