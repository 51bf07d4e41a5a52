package main

import (
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/runtime/discovery/store"
	"github.com/dynamograph/dynamo/runtime/supervise"
	"github.com/dynamograph/dynamo/runtime/telemetry"
)

func (p *program) store() *cli.Command {
	return &cli.Command{
		Name:  "store",
		Usage: "run the store by which the processes of a graph find each other: an embedded etcd",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:2379", Usage: "`ADDRESS`: unix:/path or host:port"},
			&cli.StringFlag{Name: "data-dir", Usage: "`FOLDER` for the store's data"},
			&cli.StringFlag{Name: "tls", Usage: "`FOLDER` with ca.crt, tls.crt and tls.key, as graph certs makes them: only holders of a certificate are served (default: plain text)"},
			&cli.StringFlag{Name: "member", Usage: "`NAME` of this store among --members"},
			&cli.StringFlag{Name: "members", Usage: "`LIST` of all stores that keep the same: NAME=HOST:PORT,… where they reach each other (default: this one is alone)"},
			&cli.StringFlag{Name: "status", Usage: "`ADDRESS` host:port that answers /livez, /readyz and /metrics over HTTP (default: none)"},
			&cli.BoolFlag{Name: "lifeline", Usage: "a supervisor holds descriptors 3 and 4"},
		},
		Action: func(c *cli.Context) error {
			if c.String("data-dir") == "" {
				return cli.Fail(cli.Usage, "want --data-dir FOLDER")
			}
			members, err := parseMembers(c.String("members"))
			if err != nil {
				return cli.Fail(cli.Usage, "--members: %v", err)
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			tell := func(supervise.Status) {}
			if c.Bool("lifeline") {
				var line *supervise.Lifeline
				ctx, line = supervise.OpenLifeline(ctx)
				defer line.Close()
				tell = line.Tell
			}
			err = store.Run(ctx, store.Options{
				Member: c.String("member"), Members: members, Status: c.String("status"),
				Dir: c.String("data-dir"), Listen: c.String("listen"), TLS: c.String("tls"), Log: telemetry.NewLog(p.Stderr, telemetry.LogOptions{Level: slog.LevelError}),
				Ready: func() {
					tell(supervise.Status{Node: "store", State: string(kind.Ready), Addr: c.String("listen")})
				},
			})
			if err != nil && ctx.Err() == nil {
				tell(supervise.Status{Node: "store", State: string(kind.Failed), Reason: err.Error()})
				if c.Bool("lifeline") {
					return cli.Silent(supervise.ExitConfig) // the supervisor says it
				}
				return cli.Fail(cli.Findings, "%v", err)
			}
			return nil
		},
	}
}

// parseMembers reads NAME=HOST:PORT,…
func parseMembers(list string) (map[string]string, error) {
	if list == "" {
		return nil, nil
	}
	out := map[string]string{}
	for _, m := range strings.Split(list, ",") {
		name, addr, ok := strings.Cut(m, "=")
		if !ok || name == "" || addr == "" {
			return nil, fmt.Errorf("%q: want NAME=HOST:PORT", m)
		}
		if out[name] != "" {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		out[name] = addr
	}
	return out, nil
}
