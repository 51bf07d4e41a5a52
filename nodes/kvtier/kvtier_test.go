package kvtier

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
)

func TestCheck(t *testing.T) {
	dram, nvme := Tier{Medium: "dram", Size: "64Gi"}, Tier{Medium: "nvme", Size: "1Ti"}
	object := Tier{Medium: "object", Size: "8Ti", URL: "s3://bucket/kv"}
	at := diag.Pos{File: "s", Line: 5, Col: 2}
	for _, tt := range []struct {
		name  string
		tiers []Tier
		want  string
	}{
		{"three", []Tier{dram, nvme, object}, ""},
		{"one of disk", []Tier{{Medium: "nvme", Size: "1Ti", Path: "/kv"}}, ""},
		{"two of one medium", []Tier{dram, dram}, ""},
		{"smaller", []Tier{dram, {Medium: "nvme", Size: "32Gi"}}, "tier-order nodes.cache.tiers.1.size: 32Gi, but the tier above it has 64Gi"},
		{"faster below", []Tier{nvme, {Medium: "dram", Size: "2Ti"}}, `tier-order nodes.cache.tiers.1.medium: "dram" is faster than "nvme"`},
		{"empty", []Tier{{Medium: "dram", Size: "0Gi"}}, `bad-value nodes.cache.tiers.0.size: "0Gi" keeps nothing`},
		{"size", []Tier{{Medium: "dram", Size: "64GB"}}, "bad-size"},
		{"no url", []Tier{{Medium: "object", Size: "1Ti"}}, "missing-field nodes.cache.tiers.0.url"},
		{"url of a disk", []Tier{{Medium: "nvme", Size: "1Ti", URL: "s3://b"}}, "no-effect nodes.cache.tiers.0.url"},
		{"path of memory", []Tier{{Medium: "dram", Size: "1Ti", Path: "/kv"}}, "no-effect nodes.cache.tiers.0.path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &graph.Node{Name: "cache", Fields: map[string]diag.Pos{"tiers.0": at}}
			l := check(Config{Tiers: tt.tiers}, kind.Site{Graph: &graph.Graph{}, Node: n})
			if tt.want == "" && len(l) > 0 || tt.want != "" && (len(l) != 1 || !strings.HasPrefix(l[0].Code+" "+l[0].Msg, tt.want)) {
				t.Fatalf("got %v, want %q", l, tt.want)
			}
			if strings.HasPrefix(tt.want, "tier-order") && (len(l[0].Related) != 1 || l[0].Related[0].Pos != at) {
				t.Errorf("the tier above is not shown: %+v", l[0])
			}
		})
	}
}

func TestSize(t *testing.T) {
	n := size(Config{Tiers: []Tier{{Medium: "dram", Size: "1Gi"}, {Medium: "nvme", Size: "4Gi"}, {Medium: "object", Size: "8Gi"}}}, model.Facts{})
	if n.MemoryBytes <= 1<<30 || n.MemoryBytes > 2<<30 || n.DiskBytes != 4<<30 {
		t.Errorf("%+v", n)
	}
}
