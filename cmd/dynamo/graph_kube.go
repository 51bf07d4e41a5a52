package main

import (
	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/compiler/target/k8s"
)

// kubeFlags are the options of the targets k8s and helm: what a spec does not say, because it belongs to the cluster.
func kubeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "image", Value: "dynamo:latest", Usage: "k8s, helm: `IMAGE` of the containers, with dynamo in its path"},
		&cli.StringFlag{Name: "models", Usage: "k8s, helm: `WHERE` pods have their models: a volume each (default), shared (one volume that all write), or claim:NAME, mounted at /models for sources such as file:/models/m.gguf"},
		&cli.StringFlag{Name: "model-storage", Value: "20Gi", Usage: "k8s, helm: `SIZE` of each volume made for models"},
		&cli.StringFlag{Name: "storage-class", Usage: "k8s, helm: `CLASS` of the volumes made (default: the cluster's)"},
		&cli.StringSliceFlag{Name: "metrics-from", Usage: "k8s, helm: `NAMESPACE` whose pods may read metrics; may be given again"},
		&cli.StringFlag{Name: "store", Value: "1", Usage: "k8s, helm: `STORE`: 1 or 3 replicas, or HOST:PORT,… of an etcd that exists"},
		&cli.BoolFlag{Name: "mtls", Usage: "k8s, helm: pods show each other certificates, from the Secrets that graph certs makes"},
	}
}

func kubeTarget(c *cli.Context) k8s.Target {
	return k8s.Target{
		Image: c.String("image"), Models: c.String("models"), ModelStorage: c.String("model-storage"), StorageClass: c.String("storage-class"),
		MetricsFrom: c.StringSlice("metrics-from"), MTLS: c.Bool("mtls"), Store: c.String("store"),
	}
}
