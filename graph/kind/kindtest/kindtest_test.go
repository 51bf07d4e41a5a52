package kindtest_test

import (
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

func TestMemoryIsShared(t *testing.T) {
	a, b := kindtest.NewHost(t, "prefill", "prefill-0", nil), kindtest.NewHost(t, "decode", "decode-0", nil)
	m, err := a.Memory("kv", 10000)
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes()[9999] = 7
	n, err := b.OpenMemory(m.Region())
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Bytes()) != 10000 || n.Bytes()[9999] != 7 {
		t.Fatalf("len %d, last %d", len(n.Bytes()), n.Bytes()[9999])
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.OpenMemory(m.Region()); err == nil {
		t.Fatal("a closed region can be opened")
	}
}

func TestPorts(t *testing.T) {
	h := kindtest.NewHost(t, "decode", "decode-0", nil)
	if _, err := h.DialPort("kv", "kv"); err == nil {
		t.Fatal("dialled a port without an edge")
	}
	if err := h.ServePort("tokens", "tokens", 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.ServePort("tokens", "tokens", 1, nil); err == nil {
		t.Fatal("served twice")
	}
}

func ExampleHost() {
	h := kindtest.NewHost(&testing.T{}, "decode", "decode-0", nil)
	h.Metrics().Counter("dynamo_handoffs_total", "", "result")("ok")(1)
	h.Report(kind.Ready, "")
	fmt.Println(h.Instance(), h.State(), h.Metric("dynamo_handoffs_total", "ok"))
	// Output: decode-0 ready 1
}
