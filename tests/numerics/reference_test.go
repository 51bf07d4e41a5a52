package numerics

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// Limits of the comparison with the float32 reference (scripts/reference).
const (
	rmsLimit    = 0.005 // root mean square of the difference of logits
	argmaxLimit = 0.02  // the reference's margin up to which another best token counts as a tie
	minPrompts  = 50
	minTokens   = 64
)

type reference struct {
	Vocabulary int `json:"vocabulary"`
	Sequences  []struct {
		Prompt int            `json:"prompt"`
		Tokens []uint32       `json:"tokens"`
		Top    [][][2]float64 `json:"top"` // by output position: token and logit, best first
	} `json:"sequences"`
	Rows [][2]int `json:"rows"` // sequence and output position of each whole row

	full []byte // the rows, float32
}

// runReference runs the script, which takes about a minute of processor time, or reads what it left in DYNAMO_TEST_REFERENCE.
func runReference(t *testing.T) *reference {
	t.Helper()
	dir := os.Getenv("DYNAMO_TEST_REFERENCE")
	if dir == "" {
		python := os.Getenv("DYNAMO_TEST_PYTHON")
		if python == "" {
			t.Skip("NOT RUN: set DYNAMO_TEST_PYTHON to a Python interpreter with numpy")
		}
		dir = t.TempDir()
		cmd := exec.CommandContext(t.Context(), python, filepath.Join("..", "..", "scripts", "reference", "reference.py"), model(t), dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	var ref reference
	b, err := os.ReadFile(filepath.Join(dir, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	if ref.full, err = os.ReadFile(filepath.Join(dir, "reference.f32")); err != nil {
		t.Fatal(err)
	}
	return &ref
}

// TestReference forces the reference's own continuation of every prompt through the model and compares logits and best tokens.
func TestReference(t *testing.T) {
	model(t)
	ref := runReference(t)
	m := open(t, llama.Options{})
	vocab := m.Info().Vocab
	if ref.Vocabulary != vocab || len(ref.Sequences) < minPrompts || len(ref.Rows) < minPrompts || len(ref.full) != len(ref.Rows)*vocab*4 {
		t.Fatalf("reference of %d sequences, vocabulary %d, %d bytes of rows", len(ref.Sequences), ref.Vocabulary, len(ref.full))
	}
	whole := map[[2]int][]float32{}
	for i, at := range ref.Rows {
		whole[at] = unsafe.Slice((*float32)(unsafe.Pointer(&ref.full[i*vocab*4])), vocab)
	}
	kv, logits := slab(m, 16), rows(m, minTokens)
	blocks := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	var positions, same, ties int
	var sum, largest float64
	for j, s := range ref.Sequences {
		if len(s.Top) != minTokens {
			t.Fatalf("sequence %d has %d positions", j, len(s.Top))
		}
		if err := m.Forward(kv, []llama.Seq{{Tokens: s.Tokens, Blocks: blocks, Logits: logits}}); err != nil {
			t.Fatal(err)
		}
		for n, row := range logits {
			positions++
			best := argmax(row)
			switch {
			case best == uint32(s.Top[n][0][0]):
				same++
			case tied(s.Top[n], best):
				ties++
			default:
				t.Errorf("sequence %d, position %d: best token is %d, the reference's %v", j, n, best, s.Top[n][:2])
			}
			for i, v := range whole[[2]int{j, n}] {
				d := math.Abs(float64(v) - float64(row[i]))
				sum += d * d
				largest = max(largest, d)
			}
		}
	}
	rms := math.Sqrt(sum / float64(len(ref.Rows)*vocab))
	t.Logf("%d positions of %d prompts: best token the reference's in %d, tied within %v in %d; logits of %d rows: rms %.5f, largest difference %.4f",
		positions, len(ref.Sequences), same, argmaxLimit, ties, len(ref.Rows), rms, largest)
	if !(rms <= rmsLimit) {
		t.Errorf("rms %.5f is over %v", rms, rmsLimit)
	}
}

// tied reports whether token is within the limit of the reference's best.
func tied(top [][2]float64, token uint32) bool {
	for _, c := range top {
		if uint32(c[0]) == token {
			return top[0][1]-c[1] <= argmaxLimit
		}
	}
	return false
}
