package frontend

import (
	"fmt"
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
		Listen: "127.0.0.1:8000", Body: 32 << 20, Requests: 1024,
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
			return []kind.Port{{Name: "out", Type: "chat", Dir: kind.Out, Need: true}}
		},
		Check:  check,
		Listen: func(c Config) map[string]string { return map[string]string{"listen": c.Listen} },
		Guard:  guard,
		New:    func(c Config, h kind.Host) (kind.Component, error) { return New(c, h) },
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
	add := func(field, msg, hint string) {
		path := "nodes." + s.Node.Name + "." + field
		l.Add(diag.Diagnostic{Code: "bad-value", Pos: s.Field(field), Len: len(field), Path: path, Msg: path + ": " + msg, Hint: hint})
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil {
		add("listen", fmt.Sprintf("%q is not an address", c.Listen), `write "127.0.0.1:8000", or ":8000" for all interfaces`)
	} else if _, err := net.LookupPort("tcp", port); err != nil {
		add("listen", fmt.Sprintf("%q is not a port", port), "use a number from 0 to 65535")
	}
	for _, f := range []struct {
		name string
		d    graph.Duration
	}{{"keepAlive", c.KeepAlive}, {"slowClient", c.SlowClient}, {"timeout", c.Timeout}} {
		if f.d < 0 {
			add(f.name, fmt.Sprintf("%q is below zero", f.d.Std()), "")
		}
	}
	return l
}
