package hf_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/model/hf"
)

// What is not sure has no figure: hybrids, chunked attention, types that are not known.
func TestUnknown(t *testing.T) {
	const sizes = `"num_hidden_layers":4,"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100`
	for name, c := range map[string]string{
		"another type":    `{"model_type":"jamba",` + sizes + `}`,
		"linear layers":   `{"model_type":"qwen3",` + sizes + `,"layer_types":["linear_attention","linear_attention","linear_attention","full_attention"]}`,
		"chunked layers":  `{"model_type":"llama",` + sizes + `,"layer_types":["chunked_attention","full_attention","full_attention","full_attention"]}`,
		"too few types":   `{"model_type":"llama",` + sizes + `,"layer_types":["full_attention"]}`,
		"a window of 0":   `{"model_type":"gemma2",` + sizes + `}`,
		"no rope of MLA":  `{"model_type":"deepseek_v3",` + sizes + `,"kv_lora_rank":512}`,
		"layers by a map": `{"model_type":"qwen3_next",` + sizes + `}`,
	} {
		f, err := hf.Config([]byte(c))
		if err != nil || f.KV != nil || f.KVBytesPerToken(2) != 0 {
			t.Errorf("%s: %v, KV %v", name, err, f.KV)
		}
		if f.Layers != 4 || f.Heads != 4 || !strings.Contains(c, "lora") && (f.KVHeads != 2 || f.HeadDim != 16) {
			t.Errorf("%s: what it says is lost: %+v", name, f)
		}
	}
}

// A model that takes images says its text part apart; how large the rest is, it does not say.
func TestNested(t *testing.T) {
	f, err := hf.Config([]byte(`{"model_type":"gemma3","torch_dtype":"bfloat16","text_config":{"model_type":"gemma3_text","num_hidden_layers":62,"hidden_size":5376,
		"intermediate_size":21504,"num_attention_heads":32,"num_key_value_heads":16,"head_dim":128,"sliding_window":1024,"vocab_size":262208},"vision_config":{"hidden_size":1152}}`))
	if err != nil {
		t.Fatal(err)
	}
	if f.Parameters != 0 || f.DType != "bf16" || f.Layers != 62 || f.Vocabulary != 262208 {
		t.Errorf("got %+v", f)
	}
	want := []model.KVLayers{{Layers: 10, Heads: 16, Elems: 256}, {Layers: 52, Heads: 16, Elems: 256, Window: 1024}}
	if fmt.Sprint(f.KV) != fmt.Sprint(want) {
		t.Errorf("KV is %v, want %v", f.KV, want)
	}
}

func TestBadConfig(t *testing.T) {
	for in, want := range map[string]string{
		`{`:  "unexpected end",
		`[]`: "cannot unmarshal",
		`{}`: "no model_type",
		`{"model_type":"llama","num_hidden_layers":-1}`:   "-1 is not a size",
		`{"model_type":"llama","num_hidden_layers":1e30}`: "not a size",
		`{"model_type":"llama","num_hidden_layers":5000}`: "num_hidden_layers is 5000: at most 4096",
		`{"model_type":"qwen3_moe","num_hidden_layers":4096,"hidden_size":262144,"moe_intermediate_size":65536,"num_experts":16384}`: "no model has so many parameters",
		`{"model_type":"llama","x":"` + strings.Repeat("a", 5<<20) + `"}`:                                                            "at most 4194304",
		`{"model_type":"llama","text_config":{"model_type":"llama","num_attention_heads":100000}}`:                                   "num_attention_heads",
	} {
		if _, err := hf.Config([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", in, err, want)
		}
	}
}

func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestHeader(t *testing.T) {
	b := file(`{"__metadata__":{"format":"pt"},"model.norm.weight":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},`+
		`"model.layers.0.mlp.experts.1.up_proj.weight":{"dtype":"BF16","shape":[4,2],"data_offsets":[16,32]}}`, 32)
	ts, err := hf.Header(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(ts) != 2 || ts[0].Bytes != 16 || ts[0].Elements() != 8 {
		t.Fatalf("%v, %v", ts, err)
	}
	var f model.Facts
	hf.Weigh(&f, ts)
	if f.FileBytes != 32 || f.ExpertBytes != 16 || f.Parameters != 12 || f.ExpertParameters != 8 || f.DType != "bf16" || f.WeightBytes() != 32 {
		t.Errorf("got %+v", f)
	}
	// Several parameters in one element: their number is the config's to say.
	f = model.Facts{Quantization: "gptq"}
	hf.Weigh(&f, []hf.Tensor{{Name: "a.qweight", DType: "I32", Shape: []int64{8, 8}, Bytes: 256}})
	if f.Parameters != 0 || f.FileBytes != 256 {
		t.Errorf("packed: %+v", f)
	}
}

func TestBadHeader(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<60)
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":       {nil, "unexpected EOF"},
		"no length":   {[]byte{1, 2}, "unexpected EOF"},
		"huge":        {append(huge, '{'), "not a safetensors file"},
		"cut off":     {file(`{}`, 0)[:9], "not a safetensors file, or cut off"},
		"no JSON":     {file(`{"a"`, 0), "unexpected end"},
		"no offsets":  {file(`{"a":{"dtype":"F32","shape":[1]}}`, 4), `tensor "a": offsets [] do not lie in the file`},
		"beyond":      {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}}`, 4), `offsets [0 5]`},
		"backwards":   {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4), `offsets [4 0]`},
		"shape":       {file(`{"a":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}}`, 4), "is not believed"},
		"minus":       {file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), "is not believed"},
		"gguf":        {[]byte("GGUF\x03\x00\x00\x00\x00\x00\x00\x00"), "not a safetensors file"},
		"wrong types": {file(`{"a":{"dtype":1}}`, 0), `tensor "a"`},
	} {
		if _, err := hf.Header(bytes.NewReader(tt.b), int64(len(tt.b))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestIndex(t *testing.T) {
	x, err := hf.ReadIndex([]byte(`{"metadata":{"total_size":141107412992},"weight_map":{"a":"model-00002-of-00002.safetensors","b":"model-00001-of-00002.safetensors","c":"model-00001-of-00002.safetensors"}}`))
	if err != nil || x.Bytes != 141107412992 || strings.Join(x.Files, " ") != "model-00001-of-00002.safetensors model-00002-of-00002.safetensors" {
		t.Errorf("%+v, %v", x, err)
	}
	for _, bad := range []string{`{}`, `{"weight_map":{}}`, `{"weight_map":{"a":"../x"}}`, `{"weight_map":{"a":"/etc/passwd"}}`, `{"weight_map":{"a":".."}}`, `{"weight_map":{"a":"a\\b"}}`, `{"weight_map":{"a":""}}`, `[`} {
		if _, err := hf.ReadIndex([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, m := range real {
		f.Add([]byte(m.config))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := hf.Config(b)
		if err == nil && (m.Parameters < 0 || m.ExpertParameters < 0 || m.ExpertParameters > m.Parameters || m.KVBytes(1<<31, 64, 1, 1) < 0 || m.WeightBytes() < 0) {
			t.Fatalf("%+v", m)
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Add(file(`{"__metadata__":{}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		ts, err := hf.Header(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		var m model.Facts
		hf.Weigh(&m, ts)
		if m.FileBytes < 0 || m.Parameters < 0 || m.ExpertBytes > m.FileBytes {
			t.Fatalf("%+v", m)
		}
	})
}

func ExampleConfig() {
	f, err := hf.Config([]byte(`{"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672,
		"num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.1f GB of weights, %d bytes of KV a token\n", float64(f.WeightBytes())/1e9, f.KVBytesPerToken(2))
	fmt.Printf("on one of 4 devices: %.1f GB for a sequence of 128 Ki tokens\n", float64(f.KVBytes(131072, 16, 4, 1))/1e9)
	// Output:
	// 141.1 GB of weights, 327680 bytes of KV a token
	// on one of 4 devices: 10.7 GB for a sequence of 128 Ki tokens
}

// Positions that are stretched count, once.
func TestContext(t *testing.T) {
	for in, want := range map[string]int{
		`"max_position_embeddings":32768`: 32768,
		`"max_position_embeddings":32768,"rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768}`:        131072,
		`"max_position_embeddings":163840,"rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096}`:         163840,
		`"max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3","factor":8.0,"original_max_position_embeddings":8192}`: 131072,
		`"max_position_embeddings":4096,"rope_scaling":{"type":"linear","factor":2.0}`:                                                8192,
		`"max_position_embeddings":4096,"rope_parameters":{"rope_type":"dynamic","factor":2.0}`:                                       8192,
		`"max_position_embeddings":131072,"rope_scaling":{"type":"longrope","factor":32}`:                                             131072,
		`"max_position_embeddings":4096,"rope_scaling":null`:                                                                          4096,
		`"max_position_embeddings":4096,"rope_scaling":{"type":"linear","factor":-3}`:                                                 4096,
	} {
		f, err := hf.Config([]byte(`{"model_type":"llama",` + in + `}`))
		if err != nil || f.Context != want {
			t.Errorf("%s: %d, %v; want %d", in, f.Context, err, want)
		}
	}
}
