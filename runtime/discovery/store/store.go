// Package store is the embedded etcd: one member, for one graph on one machine, that outlives nothing of value. Its data can be rebuilt
// from the live instances at any time, hence it does not wait for the disk.
package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/dynamograph/dynamo/runtime/discovery/internal/zapslog"
)

// Options say where a store lives.
type Options struct {
	Dir    string       // data; made with mode 0700 where missing
	Listen string       // "unix:/path" or "host:port"
	Log    *slog.Logger // warnings and errors of etcd; nil: none
	Ready  func()       // called once when clients are served; may be nil
}

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
	e, err := embed.StartEtcd(cfg)
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
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	// One member talks to no peer: the address is only a name, and nothing listens.
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	// A store that lost its data is another cluster: clients see it by the cluster's id, which is made of this.
	cfg.InitialClusterToken = rand.Text()
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 20, 200 // one member waits for nobody: it may lead soon
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 100
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	cfg.QuotaBackendBytes = 64 << 20
	cfg.GRPCKeepAliveMinTime = time.Second
	cfg.EnableGRPCGateway = false
	h := slog.DiscardHandler
	if o.Log != nil {
		h = o.Log.Handler()
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapslog.New(h, level))
	return cfg, nil
}
