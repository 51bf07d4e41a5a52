package llama

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
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
}

// TestRealReference forces the reference's own continuation of every prompt through the model and compares logits and best tokens.
func TestRealReference(t *testing.T) {
	dir := os.Getenv("DYNAMO_TEST_REFERENCE")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_REFERENCE to the output folder of scripts/reference/reference.py")
	}
	b, err := os.ReadFile(filepath.Join(dir, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ref reference
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	full, err := os.ReadFile(filepath.Join(dir, "reference.f32"))
	if err != nil {
		t.Fatal(err)
	}
	m := openReal(t, Options{})
	vocab := m.Info().Vocab
	if ref.Vocabulary != vocab || len(ref.Sequences) < minPrompts || len(full) != len(ref.Rows)*vocab*4 {
		t.Fatalf("reference of %d sequences, vocabulary %d, %d bytes of rows", len(ref.Sequences), ref.Vocabulary, len(full))
	}
	rows := map[[2]int][]float32{}
	for i, at := range ref.Rows {
		rows[at] = floats(full[i*vocab*4 : (i+1)*vocab*4])
	}
	kv := alignedBytes(16 * m.Info().BlockBytes)
	blocks := make([]int32, 16)
	for i := range blocks {
		blocks[i] = int32(i)
	}
	logits := make([][]float32, minTokens)
	for i := range logits {
		logits[i] = make([]float32, vocab)
	}
	var positions, same, ties int
	var sum, largest float64
	for j, s := range ref.Sequences {
		if len(s.Top) != minTokens {
			t.Fatalf("sequence %d has %d positions", j, len(s.Top))
		}
		if err := m.Forward(kv, []Seq{{Tokens: s.Tokens, Blocks: blocks, Logits: logits}}); err != nil {
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
			want, ok := rows[[2]int{j, n}]
			if !ok {
				continue
			}
			for i, v := range want {
				d := math.Abs(float64(v) - float64(row[i]))
				sum += d * d
				largest = max(largest, d)
			}
		}
	}
	rms := math.Sqrt(sum / float64(len(ref.Rows)*vocab))
	t.Logf("%d positions: best token the reference's in %d, tied within %v in %d; logits of %d rows: rms %.5f, largest difference %.4f",
		positions, same, argmaxLimit, ties, len(ref.Rows), rms, largest)
	if rms > rmsLimit {
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
