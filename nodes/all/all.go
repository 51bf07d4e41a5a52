// Package all is the standard set: importing it makes every kind of node and every engine of ours known.
package all

import (
	_ "github.com/dynamograph/dynamo/nodes/decode"        // kind "decode"
	_ "github.com/dynamograph/dynamo/nodes/engine/mock"   // engine "mock"
	_ "github.com/dynamograph/dynamo/nodes/engine/native" // engine "native"
	_ "github.com/dynamograph/dynamo/nodes/frontend"      // kind "frontend"
	_ "github.com/dynamograph/dynamo/nodes/migrate"       // kind "migrate"
	_ "github.com/dynamograph/dynamo/nodes/prefill"       // kind "prefill"
	_ "github.com/dynamograph/dynamo/nodes/preprocess"    // kind "preprocess"
	_ "github.com/dynamograph/dynamo/nodes/router"        // kind "router"
	_ "github.com/dynamograph/dynamo/nodes/worker"        // kind "worker"
)
