package store

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/dynamograph/dynamo/runtime/certs"
)

// alone makes cfg a cluster of one.
func alone(cfg *embed.Config) {
	// One member talks to no peer: the address is only a name, and nothing listens.
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	// A store that lost its data is another cluster: clients see it by the cluster's id, which is made of this.
	cfg.InitialClusterToken = rand.Text()
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 20, 200 // one member waits for nobody: it may lead soon
}

// join makes cfg one of several members. They form their cluster at their first start; a member that lost its data afterwards is refused by
// the others.
func join(cfg *embed.Config, o Options) error {
	own, ok := o.Members[o.Member]
	if !ok {
		return fmt.Errorf("store: member %q: not among the members %s", o.Member, strings.Join(slices.Sorted(maps.Keys(o.Members)), ", "))
	}
	if cfg.ListenClientUrls[0].Scheme == "unix" {
		return errors.New("store: several members need an address for clients, not a socket")
	}
	scheme := "http"
	if o.TLS != "" {
		scheme = "https"
		cfg.PeerTLSInfo = certsOf(o.TLS)
		// Certificates name the graph, not a host: any that the graph's authority signed will do.
		cfg.PeerTLSInfo.SkipClientSANVerify = true
		name, err := serverName(o.TLS)
		if err != nil {
			return err
		}
		cfg.PeerTLSInfo.ServerName = name
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.Members)) {
		if _, _, err := net.SplitHostPort(o.Members[name]); err != nil {
			return fmt.Errorf("store: member %q: %w", name, err)
		}
		all = append(all, name+"="+scheme+"://"+o.Members[name])
	}
	host, port, _ := net.SplitHostPort(own)
	listen := "0.0.0.0"
	if ip := net.ParseIP(host); ip != nil {
		listen = host
	}
	_, clients, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	cfg.Name = o.Member
	cfg.ListenPeerUrls = []url.URL{{Scheme: scheme, Host: net.JoinHostPort(listen, port)}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: scheme, Host: own}}
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: cfg.ListenClientUrls[0].Scheme, Host: net.JoinHostPort(host, clients)}}
	cfg.InitialCluster = strings.Join(all, ",")
	cfg.InitialClusterToken = cfg.InitialCluster
	return nil
}

// serverName returns what the certificate of a folder of package certs names.
func serverName(dir string) (string, error) {
	path := filepath.Join(dir, certs.CertFile)
	c, err := tls.LoadX509KeyPair(path, filepath.Join(dir, certs.KeyFile))
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	if len(c.Leaf.DNSNames) == 0 {
		return "", fmt.Errorf("store: %s: names no graph", path)
	}
	return c.Leaf.DNSNames[0], nil
}
