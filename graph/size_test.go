package graph_test

import (
	"testing"

	"github.com/dynamograph/dynamo/graph"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0Ki": 0, "1Ki": 1024, "512Mi": 512 << 20, "80Gi": 80 << 30, "4Ti": 4 << 40,
		"": -1, "Gi": -1, "80": -1, "80GB": -1, "-1Gi": -1, "1.5Gi": -1, "9999999999Ti": -1, "80gi": -1, " 1Gi": -1,
	} {
		got, err := graph.ParseSize(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d (%v)", in, got, want, err)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0Ki", 1023: "0Ki", 1024: "1Ki", 1536 << 10: "1536Ki", 512 << 20: "512Mi", 80 << 30: "80Gi", 4 << 40: "4Ti", 4096 << 40: "4096Ti",
		1<<20 + 5: "1Mi",
	} {
		if got := graph.FormatSize(in); got != want {
			t.Errorf("%d: %q, want %q", in, got, want)
		}
	}
}
