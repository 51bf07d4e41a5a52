// Package store is the embedded etcd. One member, for one graph on one machine, outlives nothing of value: its data can be rebuilt from the
// live instances at any time, hence it does not wait for the disk. One of several members does: it must not forget what they agreed on.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/dynamograph/dynamo/runtime/certs"
	"github.com/dynamograph/dynamo/runtime/discovery/internal/zapslog"
)

// Options say where a store lives.
type Options struct {
	Dir    string // data; made with mode 0700 where missing
	Listen string // "unix:/path" or "host:port"
	TLS    string // folder of package certs: clients must show a certificate of the same authority; "": plain text
	// Member and Members make this store one of several: all members' names with the addresses ("host:port") at which they reach each
	// other, the same for all. Each listens at the port of its own address. Both empty: it is alone.
	Member  string
	Members map[string]string
	Status  string       // "host:port" that answers GET /livez and /readyz over HTTP without TLS, readyz while a majority agrees; "": none
	Log     *slog.Logger // warnings and errors of etcd; nil: none
	Ready   func()       // called once when clients are served; may be nil
}

// segment makes the write-ahead log take 2 MB at once, not 64: the run folder may be memory.
var segment = sync.OnceFunc(func() { wal.SegmentSizeBytes = 2_000_000 })

// maxSocket is the longest path of a unix socket that the kernel takes.
const maxSocket = 107

// Run serves until ctx ends, then stops cleanly and returns nil. Clients use Listen as the endpoint of package etcd.
func Run(ctx context.Context, o Options) error {
	// etcd warns of what is meant to be so when it starts, and calls its own stop an error.
	var level slog.LevelVar
	level.Set(slog.LevelError)
	cfg, err := config(o, &level)
	if err != nil {
		return err
	}
	segment()
	unlock, err := lock(o.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := start(cfg)
	if err != nil {
		return fmt.Errorf("store at %s: %w", o.Listen, err)
	}
	defer func() {
		level.Set(slog.LevelError + 100)
		e.Close()
	}()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return fmt.Errorf("store at %s: %w", o.Listen, err)
	case <-ctx.Done():
		return nil
	}
	level.Set(slog.LevelWarn)
	if o.Ready != nil {
		o.Ready()
	}
	select {
	case err := <-e.Err():
		return fmt.Errorf("store at %s: %w", o.Listen, err)
	case <-e.Server.StopNotify():
		return fmt.Errorf("store at %s: stopped by itself", o.Listen)
	case <-ctx.Done():
		return nil
	}
}

// start starts etcd. It panics on damaged data, partly from a goroutine of its own: so we look first.
func start(cfg *embed.Config) (e *embed.Etcd, err error) {
	damaged := func(why any) error {
		return fmt.Errorf("the data in %q cannot be used (%v): it may be removed, the live instances register anew", cfg.Dir, why)
	}
	db := filepath.Join(cfg.Dir, "member", "snap", "db")
	if _, err := os.Stat(db); err == nil {
		b, err := bbolt.Open(db, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		if err != nil {
			return nil, damaged(err)
		}
		if err := b.Close(); err != nil {
			return nil, damaged(err)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = damaged(p)
		}
	}()
	return embed.StartEtcd(cfg)
}

// quiet drops what etcd logs as an error where all is well: a store that has just been made does not know its schema's version yet.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "Failed to detect schema version" || r.Message == "failed to update storage version" {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// lock makes dir ours: etcd itself would wait for another store without a word.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("store: %q is in use by another store: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// certsOf names the files of a folder of package certs.
func certsOf(dir string) transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: filepath.Join(dir, certs.CertFile), KeyFile: filepath.Join(dir, certs.KeyFile), TrustedCAFile: filepath.Join(dir, certs.CAFile),
		ClientCertAuth: true,
	}
}

func config(o Options, level slog.Leveler) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name = "store"
	cfg.Dir = o.Dir
	client := url.URL{Scheme: "http", Host: o.Listen}
	if path, ok := strings.CutPrefix(o.Listen, "unix:"); ok {
		if !filepath.IsAbs(path) || len(path) > maxSocket {
			return nil, fmt.Errorf("store: socket %q: must be an absolute path of at most %d bytes", path, maxSocket)
		}
		client = url.URL{Scheme: "unix", Path: path}
	}
	if o.TLS != "" {
		if client.Scheme == "unix" {
			return nil, fmt.Errorf("store: TLS on the socket %q: a socket needs none", o.Listen)
		}
		client.Scheme = "https"
		cfg.ClientTLSInfo = certsOf(o.TLS) // etcd reads the files anew for each connection
	}
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	if len(o.Members) > 0 {
		if err := join(cfg, o); err != nil {
			return nil, err
		}
	} else {
		alone(cfg)
	}
	if o.Status != "" {
		cfg.ListenMetricsUrls = []url.URL{{Scheme: "http", Host: o.Status}}
	}
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 100
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	cfg.QuotaBackendBytes = 64 << 20
	cfg.GRPCKeepAliveMinTime = time.Second
	cfg.EnableGRPCGateway = false
	var h slog.Handler = slog.DiscardHandler
	if o.Log != nil {
		h = quiet{o.Log.Handler()}
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapslog.New(h, level))
	return cfg, nil
}
