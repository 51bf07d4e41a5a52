package k8s

import (
	"encoding/base64"

	"github.com/dynamograph/dynamo/graph/plan"
)

// StoreName returns what a plan's embedded store is called beside its groups: "store", or another name where a group has that.
func StoreName(p *plan.Plan) string { return free(p, "store") }

// TLSSecretName returns the name of the Secret with the certificate of a process group, or of the store.
func TLSSecretName(graph, group string) string { return graph + "-" + group + "-tls" }

// TLSSecret returns a Secret of type kubernetes.io/tls with the keys ca.crt, tls.crt and tls.key; all three are PEM.
func TLSSecret(graph, group string, ca, cert, key []byte) ([]byte, error) {
	b64 := base64.StdEncoding.EncodeToString
	return encode([]obj{{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata": obj{"name": TLSSecretName(graph, group), "labels": obj{
			"app.kubernetes.io/name": "dynamo", "app.kubernetes.io/instance": graph, "app.kubernetes.io/component": group,
		}},
		"data": obj{"ca.crt": b64(ca), "tls.crt": b64(cert), "tls.key": b64(key)},
	}})
}
