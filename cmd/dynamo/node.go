package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/certs"
	"github.com/dynamograph/dynamo/runtime/discovery/etcd"
	"github.com/dynamograph/dynamo/runtime/models"
	"github.com/dynamograph/dynamo/runtime/node"
	"github.com/dynamograph/dynamo/runtime/supervise"
	"github.com/dynamograph/dynamo/runtime/telemetry"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/grpc"
)

func (p *program) node() *cli.Command {
	return &cli.Command{
		Name:      "node",
		Usage:     "run one group of a plan in this process (what graph run and containers start)",
		ArgsUsage: "GROUP",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "plan", Usage: "`FILE` that graph compile --target local wrote"},
			&cli.IntFlag{Name: "replica", Usage: "`NUMBER` of the replica"},
			&cli.StringFlag{Name: "run-dir", Usage: "private `FOLDER` of this run"},
			&cli.StringFlag{Name: "store", Usage: "`ADDRESS` of the store: unix:/path or host:port, comma-separated"},
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` for the other processes of the graph: unix:/path or host:port"},
			&cli.StringFlag{Name: "advertise", Usage: "`ADDRESS` that they are told (default: the listener's)"},
			&cli.StringFlag{Name: "tls", Usage: "`FOLDER` with ca.crt, tls.crt and tls.key, as graph certs makes them: processes and store then speak mutual TLS (default: plain text)"},
			&cli.StringFlag{Name: "status", Usage: "`ADDRESS` that answers /live, /ready and /metrics over HTTP: unix:/path or host:port (default: none)"},
			&cli.StringFlag{Name: "models", Usage: "`FILE` that says where the models lie; without it they are obtained"},
			&cli.DurationFlag{Name: "drain", Value: 30 * time.Second, Usage: "`TIME` to finish what is in flight"},
			&cli.StringFlag{Name: "log-level", Value: "info", Usage: "`LEVEL`: debug, info, warn or error"},
			&cli.BoolFlag{Name: "lifeline", Usage: "a supervisor holds descriptors 3 and 4"},
			cacheFlag(),
		},
		Action: p.runNode,
	}
}

func (p *program) runNode(c *cli.Context) (err error) {
	if c.NArg() != 1 {
		return cli.Fail(cli.Usage, "want one GROUP, got %d arguments; graph run starts nodes by itself", c.NArg())
	}
	if c.String("plan") == "" {
		return cli.Fail(cli.Usage, "want --plan FILE; make one by: dynamo graph compile SPEC -o FOLDER")
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	tell, code := func(supervise.Status) {}, cli.Findings
	if c.Bool("lifeline") {
		var line *supervise.Lifeline
		ctx, line = supervise.OpenLifeline(ctx)
		defer line.Close()
		tell, code = line.Tell, supervise.ExitConfig
	}
	fail := func(format string, args ...any) error { // nothing that a restart could mend
		msg := fmt.Sprintf(format, args...)
		if c.Bool("lifeline") {
			tell(supervise.Status{Node: c.Args().First(), State: string(kind.Failed), Reason: msg})
			msg = "" // the supervisor says it
		}
		return &cli.Error{Code: code, Msg: msg}
	}
	b, err := os.ReadFile(c.String("plan"))
	if err != nil {
		return fail("plan: %v; make one by: dynamo graph compile SPEC -o FOLDER", err)
	}
	pl, err := plan.Decode(b)
	if err != nil {
		return fail("%s: %v; make it again by: dynamo graph compile SPEC -o FOLDER", c.String("plan"), err)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return fail("log level %q: want debug, info, warn or error", c.String("log-level"))
	}
	log := telemetry.NewLog(p.Stderr, telemetry.LogOptions{Level: level})
	fallbackRoots()
	cacheDir, err := p.cacheDir(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return fail("cache folder: %v; set --cache-dir or DYNAMO_CACHE_DIR", err)
	}
	ms, err := p.nodeModels(ctx, c, pl)
	if err != nil {
		return fail("%v", err)
	}
	host, _ := os.Hostname()
	var failed atomic.Bool // a node has said so
	o := node.Options{
		Plan: pl, Group: c.Args().First(), Replica: c.Int("replica"), Kinds: kind.Default, Models: ms,
		RunDir: c.String("run-dir"), CacheDir: cacheDir, Machine: host, DrainTimeout: c.Duration("drain"),
		Getenv: p.Getenv, Log: log, Metrics: telemetry.NewMetrics(),
		Tell: func(n string, s kind.State, reason, addr string) {
			if s == kind.Failed {
				failed.Store(true)
			}
			tell(supervise.Status{Node: n, State: string(s), Reason: reason, Addr: addr})
		},
	}
	tracer, err := p.tracer(ctx, log, pl.Graph, fmt.Sprintf("%s-%d", o.Group, o.Replica))
	if err != nil {
		return fail("%v", err)
	}
	if tracer != nil {
		defer closeTracer(tracer, log)
		o.Tracer = tracer
	}
	if a := c.String("status"); a != "" {
		if o.Status, _, err = listen(a); err != nil {
			return fail("status: %v", err)
		}
		defer o.Status.Close()
	}
	if c.String("store") != "" {
		if c.String("listen") == "" {
			return fail("--store needs --listen")
		}
		var secure *tls.Config
		if dir := c.String("tls"); dir != "" {
			if secure, err = certs.Config(dir, pl.Graph); err != nil {
				return fail("%v", err)
			}
		}
		reg, err := etcd.New(etcd.Options{Endpoints: strings.Split(c.String("store"), ","), Graph: pl.Graph, TLS: secure, Log: log})
		if err != nil {
			return fail("store: %v", err)
		}
		defer reg.Close()
		l, addr, err := listen(c.String("listen"))
		if err != nil {
			return fail("%v", err)
		}
		if a := c.String("advertise"); a != "" {
			addr = a
		}
		srv := grpc.NewServer(grpc.Options{Log: log, TLS: secure})
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		defer func() {
			_ = srv.Close()
			if serr := <-served; serr != nil && err == nil {
				err = serr
			}
		}()
		o.Discovery, o.Server, o.Addr = reg, srv, addr
		o.Dial = func(a, instance string) transport.Conn {
			return grpc.Dial(a, grpc.Options{Log: log, Instance: instance, TLS: secure})
		}
	}
	// The engine's threads stay in assembly for long: without one more, sockets wait for them.
	runtime.GOMAXPROCS(runtime.NumCPU() + 1)
	err = node.Run(ctx, o)
	if errors.Is(context.Cause(ctx), supervise.ErrOrphan) {
		log.Warn("drained, because the supervisor is gone")
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		code = cli.Findings // it was asked to end
	}
	if failed.Load() && c.Bool("lifeline") {
		return cli.Silent(code) // the supervisor says it
	}
	return &cli.Error{Code: code, Msg: err.Error()}
}

// nodeModels reads --models, or obtains the plan's models.
func (p *program) nodeModels(ctx context.Context, c *cli.Context, pl *plan.Plan) ([]*kind.Model, error) {
	if f := c.String("models"); f != "" {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("models: %w", err)
		}
		var ms []*kind.Model
		if err := json.Unmarshal(b, &ms); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		return ms, nil
	}
	cache, err := p.cache(c)
	if err != nil {
		return nil, err
	}
	return obtain(ctx, cache, pl)
}

// obtain makes sure that the plan's models are on this machine; several are fetched at once.
func obtain(ctx context.Context, cache *models.Cache, pl *plan.Plan) ([]*kind.Model, error) {
	names := sortedKeys(pl.Models)
	out := make([]*kind.Model, len(names))
	p := pool.New().WithMaxGoroutines(4).WithContext(ctx).WithCancelOnError().WithFirstError()
	for i, name := range names {
		p.Go(func(ctx context.Context) error {
			m := pl.Models[name]
			f, err := cache.Get(ctx, *m)
			if err != nil {
				return err // begins with the model
			}
			km := &kind.Model{Name: name, Names: m.Names, Path: f.Path, SHA256: f.SHA256, Context: m.Context, Facts: f.Facts, Family: m.Family, Tools: m.Tools, Reasoning: m.Reasoning}
			if km.Context == 0 || f.Facts.Context > 0 && km.Context > f.Facts.Context {
				km.Context = f.Facts.Context
			}
			out[i] = km
			return nil
		})
	}
	return out, p.Wait()
}

// listen opens addr, taking the place of a socket that a dead process left.
func listen(addr string) (net.Listener, string, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, "", err
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, "", err
		}
		l, err := net.Listen("unix", abs)
		return l, "unix:" + abs, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, "", err
	}
	return l, l.Addr().String(), nil
}
