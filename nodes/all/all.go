// Package all is the standard set: importing it makes every kind of node and every engine of ours known.
package all

import (
	_ "github.com/dynamograph/dynamo/nodes/decode"        // kind "decode"
	_ "github.com/dynamograph/dynamo/nodes/encode"        // kind "encode"
	_ "github.com/dynamograph/dynamo/nodes/engine/mock"   // engine "mock"
	_ "github.com/dynamograph/dynamo/nodes/engine/native" // engine "native"
	_ "github.com/dynamograph/dynamo/nodes/external"      // kind "external"
	_ "github.com/dynamograph/dynamo/nodes/frontend"      // kind "frontend"
	_ "github.com/dynamograph/dynamo/nodes/kvtier"        // kind "kvtier"
	_ "github.com/dynamograph/dynamo/nodes/migrate"       // kind "migrate"
	_ "github.com/dynamograph/dynamo/nodes/planner"       // kind "planner"
	_ "github.com/dynamograph/dynamo/nodes/prefill"       // kind "prefill"
	_ "github.com/dynamograph/dynamo/nodes/preprocess"    // kind "preprocess"
	_ "github.com/dynamograph/dynamo/nodes/profiler"      // kind "profiler"
	_ "github.com/dynamograph/dynamo/nodes/router"        // kind "router"
	_ "github.com/dynamograph/dynamo/nodes/worker"        // kind "worker"
)
