package load_test

import (
	"encoding/json"

	"github.com/dynamograph/dynamo/graph/kind"
)

// anyConfig takes whatever the schema lets pass.
type anyConfig map[string]json.RawMessage

// testKinds is a registry with schemas like those of the standard set. They are a copy, so that these tests change only with the loader.
func testKinds() *kind.Registry {
	r := &kind.Registry{}
	add := func(name, schema string) {
		kind.Add(r, kind.Kind[anyConfig]{
			Name: name, Summary: name, Schema: schema,
			Default: func() anyConfig { return anyConfig{} },
			Ports:   func(anyConfig) []kind.Port { return nil },
			New:     func(anyConfig, kind.Host) (kind.Component, error) { return nil, nil },
		})
	}
	add("frontend", `
// #Frontend answers HTTP.
#Frontend: {
	kind: "frontend"
	// listen is the address. Default: "127.0.0.1:8000".
	listen?: =~"^[^ ]*:[0-9]+$"
}`)
	add("guarded", `
// #Guarded has a secret.
#Guarded: {
	kind: "guarded"
	// keys are the API keys. Default: none.
	keys?: #Ref
}`)
	add("router", `
// #Router picks a worker for each request.
#Router: {
	kind: "router"
	// policy says how.
	policy?: "round-robin" | "least-loaded" | "random" | "kv-aware"
	// overlap weighs cached blocks against load.
	overlap?: number & >=0
}`)
	add("worker", "#Worker: {\n#worker\n#engine\nkind: \"worker\"\n}")
	add("prefill", "#Prefill: {\n#worker\n#engine\nkind: \"prefill\"\n}")
	add("decode", "#Decode: {\n#worker\n#engine\nkind: \"decode\"\n}")
	add("kvtier", `package spec

import "list"

#Tier: {medium!: "dram" | "nvme", size!: #Size, evict?: "lru" | "lfu"}
#Kvtier: {
	kind: "kvtier"
	// tiers are the media, fastest first.
	tiers!: [#Tier, ...#Tier]
	// weights are at most two.
	weights?: [...number] & list.MaxItems(2)
}`)
	return r
}
