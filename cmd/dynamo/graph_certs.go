package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/target/k8s"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/certs"
)

const (
	caKeyFile  = "ca.key" // of the authority; it signs, hence it stays where graph certs ran
	secretFile = "secrets.yaml"
)

func (p *program) certs() *cli.Command {
	return &cli.Command{
		Name:  "certs",
		Usage: "make the certificates by which the processes of a graph know each other",
		Description: "FOLDER gets the authority (ca.crt, ca.key), a folder with ca.crt, tls.crt and tls.key for each process group and the store, and\n" +
			"secrets.yaml with the same as Kubernetes Secrets. Where there is an authority already it is kept; certificates that are valid for more\n" +
			"than half of their time are kept too, unless --renew is given. ca.key signs new certificates: keep it secret and away from the machines.",
		ArgsUsage: "SPEC",
		Flags: append(specFlags(), outputFlag("text or json"),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Value: "certs", Usage: "`FOLDER` to write to"},
			&cli.DurationFlag{Name: "valid", Value: 90 * 24 * time.Hour, Usage: "`TIME` that a certificate is valid"},
			&cli.DurationFlag{Name: "ca-valid", Value: 5 * 365 * 24 * time.Hour, Usage: "`TIME` that a new authority is valid"},
			&cli.BoolFlag{Name: "renew", Usage: "make all certificates anew"}),
		Action: p.makeCerts,
	}
}

// made is what graph certs says of one certificate.
type made struct {
	Group   string    `json:"group"` // "ca" for the authority
	Folder  string    `json:"folder"`
	Expires time.Time `json:"expires"`
	Kept    bool      `json:"kept"` // it was there and is still good
}

func (p *program) makeCerts(c *cli.Context) error {
	if v := c.Duration("valid"); v < time.Hour {
		return cli.Fail(cli.Usage, "--valid %v: want an hour or more", v)
	}
	f, _, err := p.mustBuild(c, compiler.Options{})
	if err != nil {
		return err
	}
	out := c.String("out")
	if err := os.MkdirAll(out, 0o700); err != nil {
		return cli.Fail(cli.Unreachable, "%v", err)
	}
	ca, kept, err := authority(out, f.plan.Graph, c.Duration("ca-valid"))
	if err != nil {
		return err
	}
	all := []made{{"ca", out, ca.Expires(), kept}}
	var secrets []byte
	for _, g := range certGroups(f.plan) {
		dir := filepath.Join(out, g)
		pair, kept, err := certificate(dir, g, ca, c.Duration("valid"), c.Bool("renew") || !kept)
		if err != nil {
			return err
		}
		end, err := certs.Expires(pair.Cert)
		if err != nil {
			return cli.Fail(cli.Unreachable, "%s: %v", dir, err)
		}
		secret, err := k8s.TLSSecret(f.plan.Graph, g, ca.Cert, pair.Cert, pair.Key)
		if err != nil {
			return err
		}
		if secrets != nil {
			secrets = append(secrets, "---\n"...)
		}
		secrets = append(secrets, secret...)
		all = append(all, made{g, dir, end, kept})
	}
	if err := writeFile(filepath.Join(out, secretFile), secrets, 0o600); err != nil {
		return err
	}
	if c.String("output") == "json" {
		return json.NewEncoder(p.Stdout).Encode(all)
	}
	for _, m := range all {
		word := "made"
		if m.Kept {
			word = "kept"
		}
		fmt.Fprintf(p.Stdout, "%s  %-12s valid until %s  %s\n", word, m.Group, m.Expires.UTC().Format(time.DateOnly), m.Folder)
	}
	fmt.Fprintf(p.Stdout, "Kubernetes: kubectl apply --server-side -f %s\n", filepath.Join(out, secretFile))
	return nil
}

// certGroups are the process groups that need a certificate, and the store where there is one.
func certGroups(pl *plan.Plan) []string {
	var out []string
	for _, g := range pl.Groups {
		out = append(out, g.Name)
	}
	if pl.Store.Kind == "embedded" {
		out = append(out, k8s.StoreName(pl))
	}
	slices.Sort(out)
	return out
}

// authority reads the one in dir, or makes one.
func authority(dir, graph string, valid time.Duration) (a *certs.Authority, kept bool, err error) {
	cert, err := os.ReadFile(filepath.Join(dir, certs.CAFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, caKeyFile)); err == nil {
			return nil, false, cli.Fail(cli.Unreachable, "%s: there is a key without %s; remove it, or use another folder", filepath.Join(dir, caKeyFile), certs.CAFile)
		}
		a, err := certs.NewAuthority(graph, valid)
		if err != nil {
			return nil, false, cli.Fail(cli.Unreachable, "%v", err)
		}
		if err := writeFile(filepath.Join(dir, caKeyFile), a.Key, 0o600); err != nil {
			return nil, false, err
		}
		return a, false, writeFile(filepath.Join(dir, certs.CAFile), a.Cert, 0o644)
	}
	if err != nil {
		return nil, false, cli.Fail(cli.Unreachable, "%v", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, false, cli.Fail(cli.Unreachable, "%v; the authority's key is needed to sign", err)
	}
	if a, err = certs.ReadAuthority(certs.Pair{Cert: cert, Key: key}); err != nil {
		return nil, false, cli.Fail(cli.Unreachable, "%s: %v; use another folder", filepath.Join(dir, certs.CAFile), err)
	}
	if !a.Serves(graph) {
		return nil, false, cli.Fail(cli.Unreachable, "%s: the authority is another graph's; use another folder than %q for %q", filepath.Join(dir, certs.CAFile), dir, graph)
	}
	if time.Now().After(a.Expires()) {
		return nil, false, cli.Fail(cli.Unreachable, "%s: the authority expired at %s; remove the folder, or use another", filepath.Join(dir, certs.CAFile), a.Expires().UTC().Format(time.DateOnly))
	}
	return a, true, nil
}

// certificate keeps the one in dir while more than half of its time is left, or makes one.
func certificate(dir, group string, ca *certs.Authority, valid time.Duration, renew bool) (p certs.Pair, kept bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, false, cli.Fail(cli.Unreachable, "%v", err)
	}
	cert, err := os.ReadFile(filepath.Join(dir, certs.CertFile))
	key, kerr := os.ReadFile(filepath.Join(dir, certs.KeyFile))
	if err == nil && kerr == nil && !renew {
		if end, err := certs.Expires(cert); err == nil && time.Until(end) > valid/2 {
			return certs.Pair{Cert: cert, Key: key}, true, nil
		}
	}
	if p, err = ca.Sign(group, valid); err != nil {
		return p, false, cli.Fail(cli.Unreachable, "%v", err)
	}
	// Who reads between two of these finds a key that does not fit, and keeps what it has until it looks again.
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{{certs.CAFile, ca.Cert, 0o644}, {certs.KeyFile, p.Key, 0o600}, {certs.CertFile, p.Cert, 0o644}} {
		if err := writeFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return p, false, err
		}
	}
	return p, false, nil
}
