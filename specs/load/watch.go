package load

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/dynamograph/dynamo/graph/diag"
)

// maxBytes bounds all files of a spec together.
const maxBytes = 1 << 20

// Limits bound one evaluation. Zero fields are 10 s and 1 GiB: a graph of a thousand nodes takes about two seconds.
type Limits struct {
	Time   time.Duration
	Memory int64 // growth of the heap, in bytes
}

// usual fills in what l leaves out.
func (l Limits) usual() Limits {
	if l.Time <= 0 {
		l.Time = 10 * time.Second
	}
	if l.Memory <= 0 {
		l.Memory = 1 << 30
	}
	return l
}

// watch runs f in a goroutine and returns its result, or a finding where f panics or passes a limit, or ctx's error.
func watch(ctx context.Context, path string, max Limits, f func() result) (result, error) {
	max = max.usual()
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{list: diag.List{{
					Code: "internal", Pos: diag.Pos{File: path}, Msg: fmt.Sprintf("the loader failed: %v", p),
					Hint: "this is a fault of dynamo: please report it with the spec", Notes: []string{panicPlace(debug.Stack())},
				}}}
			}
		}()
		done <- f()
	}()
	limit := time.NewTimer(max.Time)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	before := heap()
	slow := func(why string) (result, error) {
		return result{list: diag.List{tooSlow(path, why)}}, nil
	}
	for {
		select {
		case r := <-done:
			return r, nil
		case <-ctx.Done():
			return result{}, context.Cause(ctx)
		case <-limit.C:
			return slow(fmt.Sprintf("took more than %v", max.Time))
		case <-tick.C:
			if now := heap(); now > before+uint64(max.Memory) {
				return slow(fmt.Sprintf("took more than %d MiB of memory", max.Memory>>20))
			}
		}
	}
}

// heap returns the bytes of live and not yet swept objects.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// tooSlow is the finding of an evaluation that passed its limits.
func tooSlow(path, why string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "too-slow", Pos: diag.Pos{File: path}, Msg: "evaluation " + why, Hint: "look for comprehensions and choices that multiply",
		Notes: []string{"a spec that needs more: --limits time=30s,memory=2Gi"},
	}
}

// String writes limits for people: "10s and 1024 MiB".
func (l Limits) String() string { return fmt.Sprintf("%v and %d MiB", l.Time, l.Memory>>20) }
