package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

const busy = "testdata/busy.cue"

// TestOpenAISDK runs OpenAI's official clients, unmodified, against the disaggregated graph and two that refuse.
func TestOpenAISDK(t *testing.T) {
	urls := []string{start(t, disagg).url + "/v1", start(t, busy).url + "/v1", start(t, busy, "-t", "broken=true").url + "/v1"}
	for name, program := range map[string][]string{
		"python": {need(t, "DYNAMO_TEST_PYTHON"), "sdk.py"},
		"node":   {"node", "sdk.mjs", need(t, "DYNAMO_TEST_NODE_MODULES")},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(program[0], append(program[1:], urls...)...).CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out), "all passed") {
				t.Fatal("the script did not come to its end")
			}
		})
	}
}
