// Package hf reads what a repository of the Hugging Face layout says about its model: config.json, the headers of safetensors files and
// the index of several. It is handed bytes and does no I/O but through the io.ReaderAt that it is given; it never reads tensors.
//
// What a model's type does not tell for sure stays zero: a hybrid of attention and state-space layers has no KV in its facts, because a
// wrong figure would refuse what runs.
package hf

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/graph/model"
)

// maxConfig bounds a config.json; real ones stay below 100 KiB.
const maxConfig = 4 << 20

// config is config.json, as far as it is about sizes. The names are those of the file.
type config struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`
	DType         string   `json:"dtype"`
	TorchDType    string   `json:"torch_dtype"`
	Text          *config  `json:"text_config"` // of a model that takes more than text

	Layers       count    `json:"num_hidden_layers"`
	Hidden       count    `json:"hidden_size"`
	Inner        count    `json:"intermediate_size"`
	Heads        count    `json:"num_attention_heads"`
	KVHeads      count    `json:"num_key_value_heads"`
	HeadDim      count    `json:"head_dim"`
	Vocabulary   count    `json:"vocab_size"`
	Positions    count    `json:"max_position_embeddings"`
	Rope         *rope    `json:"rope_scaling"`
	RopeNew      *rope    `json:"rope_parameters"` // the same, by newer tools
	Tied         *bool    `json:"tie_word_embeddings"`
	AttnBias     bool     `json:"attention_bias"`
	MLPBias      bool     `json:"mlp_bias"`
	Window       count    `json:"sliding_window"`
	UseWindow    *bool    `json:"use_sliding_window"`
	MaxWindow    count    `json:"max_window_layers"`
	Pattern      count    `json:"sliding_window_pattern"`
	LayerTypes   []string `json:"layer_types"`
	Quantization *struct {
		Method string `json:"quant_method"`
	} `json:"quantization_config"`

	// Experts: three families of names.
	LocalExperts  count `json:"num_local_experts"`
	NumExperts    count `json:"num_experts"`
	RoutedExperts count `json:"n_routed_experts"`
	SharedExperts count `json:"n_shared_experts"`
	ExpertInner   count `json:"moe_intermediate_size"`
	SharedInner   count `json:"shared_expert_intermediate_size"`
	SparseStep    count `json:"decoder_sparse_step"`
	DenseOnly     []int `json:"mlp_only_layers"`
	FirstDense    count `json:"first_k_dense_replace"`
	MoEFrequency  count `json:"moe_layer_freq"`

	// Compressed keys and values (MLA).
	KVRank count `json:"kv_lora_rank"`
	QRank  count `json:"q_lora_rank"`
	QKRope count `json:"qk_rope_head_dim"`
	QKNope count `json:"qk_nope_head_dim"`
	VHead  count `json:"v_head_dim"`
}

// rope says how positions are stretched.
type rope struct {
	Type     string  `json:"rope_type"`
	TypeOld  string  `json:"type"`
	Factor   float64 `json:"factor"`
	Original count   `json:"original_max_position_embeddings"`
}

// context is the longest sequence: the positions, or those that are stretched where max_position_embeddings does not count that in already.
func (c *config) context() int {
	r := c.Rope
	if r == nil {
		r = c.RopeNew
	}
	if r == nil || !(r.Factor > 1 && r.Factor <= 1024) {
		return int(c.Positions)
	}
	switch firstOf(r.Type, r.TypeOld) {
	case "yarn", "linear", "dynamic":
		from := r.Original
		if from == 0 {
			from = c.Positions
		}
		return max(int(c.Positions), int(min(float64(from)*r.Factor, maxCount)))
	}
	return int(c.Positions) // "llama3", "longrope": they do
}

// count is a number that a file may leave out, set to null, or give as a fraction; it is never negative and bounded so that no product
// of those that are multiplied here overflows.
type count int64

const maxCount = 1 << 31

func (c *count) UnmarshalJSON(b []byte) error {
	var f *float64
	if err := json.Unmarshal(b, &f); err != nil || f == nil {
		return nil //nolint:nilerr // a list or a word: not said in a way that is understood
	}
	if *f < 0 || *f > maxCount {
		return fmt.Errorf("%v is not a size that a model has", *f)
	}
	*c = count(*f)
	return nil
}

// Config sums up a config.json. Parameters and KV are there where the model's type says how they follow from the other fields; FileBytes
// is not: see Weigh.
func Config(b []byte) (model.Facts, error) {
	f := model.Facts{Format: "config"}
	if len(b) > maxConfig {
		return f, fmt.Errorf("config.json: %d bytes: at most %d are read", len(b), maxConfig)
	}
	var c config
	if err := json.Unmarshal(b, &c); err != nil {
		return f, fmt.Errorf("config.json: %w", err)
	}
	whole := c
	if c.Text != nil {
		c = *c.Text
		c.inherit(whole)
	}
	if c.ModelType == "" {
		return f, fmt.Errorf("config.json: no model_type: it does not say what model this is")
	}
	if err := c.believe(); err != nil {
		return f, err
	}
	f.Architecture = c.ModelType
	f.Layers, f.Embedding, f.FeedForward = int(c.Layers), int(c.Hidden), int(c.Inner)
	f.Heads, f.KVHeads, f.HeadDim = int(c.Heads), int(c.KVHeads), int(c.HeadDim)
	f.Vocabulary, f.Context, f.Experts = int(c.Vocabulary), c.context(), c.experts()
	if f.KVHeads == 0 {
		f.KVHeads = f.Heads
	}
	if f.HeadDim == 0 && f.Heads > 0 {
		f.HeadDim = f.Embedding / f.Heads
	}
	if c.KVRank > 0 { // the size of a head is not one number
		f.HeadDim, f.KVHeads = int(c.QKNope+c.QKRope), f.Heads
	}
	f.DType = shortType(firstOf(c.DType, c.TorchDType))
	if whole.Quantization != nil {
		f.Quantization = firstOf(whole.Quantization.Method, "unknown")
	} else if c.Quantization != nil {
		f.Quantization = firstOf(c.Quantization.Method, "unknown")
	}
	fam, known := families[c.ModelType]
	f.Tied = fam.tied
	if c.Tied != nil {
		f.Tied = *c.Tied
	}
	if !known || f.Layers == 0 || f.Embedding == 0 || f.Heads == 0 {
		return f, nil
	}
	f.KV = c.kv(fam, f)
	if mla := c.QKRope > 0 && c.QKNope > 0 && c.VHead > 0; whole.Text == nil && f.Vocabulary > 0 && (c.KVRank == 0 || mla) { // with a text_config there are parts that are not counted here
		f.Parameters, f.ExpertParameters = c.parameters(fam, f)
	}
	return f, nil
}

// believe refuses sizes that no model has, so that what is computed from the others cannot overflow.
func (c *config) believe() error {
	for _, s := range []struct {
		name  string
		v     count
		limit count
	}{
		{"num_hidden_layers", c.Layers, 1 << 12}, {"hidden_size", c.Hidden, 1 << 18}, {"intermediate_size", c.Inner, 1 << 20},
		{"num_attention_heads", c.Heads, 1 << 12}, {"num_key_value_heads", c.KVHeads, 1 << 12}, {"head_dim", c.HeadDim, 1 << 14},
		{"vocab_size", c.Vocabulary, 1 << 26}, {"the number of experts", count(c.experts()), 1 << 14}, {"n_shared_experts", c.SharedExperts, 1 << 8},
		{"moe_intermediate_size", c.ExpertInner, 1 << 16}, {"shared_expert_intermediate_size", c.SharedInner, 1 << 20},
		{"kv_lora_rank", c.KVRank, 1 << 16}, {"q_lora_rank", c.QRank, 1 << 16}, {"qk_rope_head_dim", c.QKRope, 1 << 14},
		{"qk_nope_head_dim", c.QKNope, 1 << 14}, {"v_head_dim", c.VHead, 1 << 14},
	} {
		if s.v > s.limit {
			return fmt.Errorf("config.json: %s is %d: at most %d is believed", s.name, s.v, s.limit)
		}
	}
	if each := max(c.Inner, c.ExpertInner); float64(c.Layers)*float64(max(c.experts(), 1))*float64(c.Hidden)*float64(each) > 1<<58 {
		return fmt.Errorf("config.json: %d layers of %d experts of %d by %d: no model has so many parameters", c.Layers, c.experts(), c.Hidden, each)
	}
	return nil
}

// inherit takes what the outer file says for its text part too.
func (c *config) inherit(o config) {
	if c.Tied == nil {
		c.Tied = o.Tied
	}
	c.DType = firstOf(c.DType, c.TorchDType, o.DType, o.TorchDType)
	if c.Vocabulary == 0 {
		c.Vocabulary = o.Vocabulary
	}
	if c.Hidden == 0 {
		c.Hidden = o.Hidden
	}
}

func (c *config) experts() int { return int(max(c.LocalExperts, c.NumExperts, c.RoutedExperts)) }

func firstOf(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}

// shortType writes a type as this program does: "bf16" for "torch.bfloat16" and "BF16".
func shortType(s string) string {
	s = strings.ToLower(strings.TrimPrefix(s, "torch."))
	switch {
	case s == "bfloat16" || s == "bf16":
		return "bf16"
	case s == "float16" || s == "half" || s == "f16":
		return "f16"
	case s == "float32" || s == "float" || s == "f32":
		return "f32"
	case strings.HasPrefix(s, "float8") || strings.HasPrefix(s, "f8"):
		return "f8"
	}
	return s
}
