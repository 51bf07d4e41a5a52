package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/native"
	"github.com/dynamograph/dynamo/runtime/telemetry"
)

// host is the little of a kind.Host that an engine alone needs.
type host struct {
	kind.Host // nil: what is not below is not called
	metrics   kind.Metrics
	cache     string
}

func (h *host) Graph() string             { return "bench" }
func (h *host) Node() string              { return "engine" }
func (h *host) Instance() string          { return "engine-0" }
func (h *host) Log() *slog.Logger         { return slog.New(slog.DiscardHandler) }
func (h *host) Metrics() kind.Metrics     { return h.metrics }
func (h *host) CacheDir() string          { return h.cache }
func (h *host) Report(kind.State, string) {}
func (h *host) Memory(_ string, n int64) (kind.Memory, error) {
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	return memory(b), err
}

type memory []byte

func (m memory) Region() string { return "" }
func (m memory) Bytes() []byte  { return m }
func (m memory) Close() error   { return syscall.Munmap(m) }

// serveEngine is the child that has the native engine: MODEL THREADS SEQUENCES.
func serveEngine(args []string) error {
	if len(args) != 3 {
		return errors.New("want MODEL THREADS SEQUENCES")
	}
	threads, err1 := strconv.Atoi(args[1])
	seqs, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "dynamo-test", "engine")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	conf := engine.DefaultConfig()
	conf.Threads, conf.Batch.Seqs = threads, seqs
	e, err := native.Open(engine.Options{
		Config: conf, Model: &kind.Model{Name: "default", Path: args[0]},
		Host: &host{metrics: telemetry.NewMetrics(), cache: cache},
	})
	if err != nil {
		return err
	}
	defer e.Close()
	out := json.NewEncoder(os.Stdout)
	in := e.Info()
	if err := out.Encode(answer{About: fmt.Sprintf("numerics %s, %s; %d tokens a step", in.Contract.Numerics, runtime.Version(), conf.Batch.Tokens)}); err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the parent has no more
		}
		var j job
		if err := json.Unmarshal(line, &j); err != nil {
			return err
		}
		var a answer
		if a.Streams, err = generate(e, j); err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// generate does a job with the engine itself.
func generate(e engine.Engine, j job) ([]stream, error) {
	streams := make([]stream, len(j.Prompts))
	errs := make([]error, len(j.Prompts))
	var wg sync.WaitGroup
	start := time.Now()
	for i, p := range j.Prompts {
		wg.Go(func() {
			s := &streams[i]
			r := &llm.TokensRequest{ID: strconv.Itoa(i), Tokens: p, Logprobs: -1, Stop: llm.Stop{MaxTokens: j.Output, IgnoreEOS: true}}
			for d, err := range e.Generate(context.Background(), r) {
				if err != nil {
					errs[i] = err
					return
				}
				now := time.Since(start).Seconds()
				for range d.Tokens {
					s.At = append(s.At, now)
				}
				s.Tokens = append(s.Tokens, d.Tokens...)
			}
		})
	}
	wg.Wait()
	return streams, errors.Join(errs...)
}
