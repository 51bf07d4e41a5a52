package hf_test

import (
	"testing"

	"github.com/dynamograph/dynamo/graph/model/hf"
)

// real are models with the sizes that their publishers give: the config as published (the fields that count), the number of parameters
// that the hub shows for their safetensors, and the bytes that a token's keys and values take at 16 bits an element. The figures of
// Qwen2.5 72B, Llama 3.1 405B and DeepSeek V3 are those of "Insights into DeepSeek-V3" (arXiv 2505.09343, table 1: 327.680, 516.096 and
// 70.272 KB a token); those of several others are printed in the vLLM threads that fit_test of package compiler names.
var real = []struct {
	name, config string
	parameters   int64
	token        int64 // bytes, all layers that keep every token or a window
	far          int64 // bytes of 100,000 tokens, where windows matter; 0: not given
}{
	{"SmolLM2 135M", `{"model_type":"llama","num_hidden_layers":30,"hidden_size":576,"intermediate_size":1536,"num_attention_heads":9,"num_key_value_heads":3,"vocab_size":49152,"max_position_embeddings":8192,"tie_word_embeddings":true,"torch_dtype":"bfloat16"}`, 134_515_008, 23040, 0},
	{"Llama 2 7B", `{"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"vocab_size":32000,"tie_word_embeddings":false,"torch_dtype":"float16"}`, 6_738_415_616, 524288, 0},
	{"Llama 3.1 8B", `{"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":131072,"rope_scaling":{"factor":8.0},"torch_dtype":"bfloat16"}`, 8_030_261_248, 131072, 0},
	{"Llama 3.1 70B", `{"model_type":"llama","num_hidden_layers":80,"hidden_size":8192,"intermediate_size":28672,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":128256,"torch_dtype":"bfloat16"}`, 70_553_706_496, 327680, 0},
	{"Llama 3.1 405B", `{"model_type":"llama","num_hidden_layers":126,"hidden_size":16384,"intermediate_size":53248,"num_attention_heads":128,"num_key_value_heads":8,"vocab_size":128256,"torch_dtype":"bfloat16"}`, 405_853_388_800, 516096, 0},
	{"Llama 3.2 1B", `{"model_type":"llama","num_hidden_layers":16,"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"vocab_size":128256,"tie_word_embeddings":true,"torch_dtype":"bfloat16"}`, 1_235_814_400, 32768, 0},
	{"Llama 3.2 3B", `{"model_type":"llama","num_hidden_layers":28,"hidden_size":3072,"intermediate_size":8192,"num_attention_heads":24,"num_key_value_heads":8,"head_dim":128,"vocab_size":128256,"tie_word_embeddings":true,"torch_dtype":"bfloat16"}`, 3_212_749_824, 114688, 0},
	{"Mistral 7B v0.1", `{"model_type":"mistral","num_hidden_layers":32,"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":32000,"sliding_window":4096,"torch_dtype":"bfloat16"}`, 7_241_732_096, 131072, 131072 * 4096},
	{"Mistral Nemo 12B", `{"model_type":"mistral","num_hidden_layers":40,"hidden_size":5120,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":131072,"sliding_window":null,"torch_dtype":"bfloat16"}`, 12_247_782_400, 163840, 163840 * 100_000},
	{"Mixtral 8x7B", `{"model_type":"mixtral","num_hidden_layers":32,"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2,"sliding_window":null,"torch_dtype":"bfloat16"}`, 46_702_792_704, 131072, 0},
	{"Qwen2.5 0.5B", `{"model_type":"qwen2","num_hidden_layers":24,"hidden_size":896,"intermediate_size":4864,"num_attention_heads":14,"num_key_value_heads":2,"vocab_size":151936,"tie_word_embeddings":true,"use_sliding_window":false,"sliding_window":32768,"max_window_layers":21}`, 494_032_768, 12288, 12288 * 100_000},
	{"Qwen2.5 7B", `{"model_type":"qwen2","num_hidden_layers":28,"hidden_size":3584,"intermediate_size":18944,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064,"torch_dtype":"bfloat16"}`, 7_615_616_512, 57344, 0},
	{"Qwen2.5 72B", `{"model_type":"qwen2","num_hidden_layers":80,"hidden_size":8192,"intermediate_size":29568,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":152064,"torch_dtype":"bfloat16"}`, 72_706_203_648, 327680, 0},
	{"Qwen3 0.6B", `{"model_type":"qwen3","num_hidden_layers":28,"hidden_size":1024,"intermediate_size":3072,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":true}`, 596_049_920, 114688, 0},
	{"Qwen3 8B", `{"model_type":"qwen3","num_hidden_layers":36,"hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false}`, 8_190_735_360, 147456, 0},
	{"Qwen3 32B", `{"model_type":"qwen3","num_hidden_layers":64,"hidden_size":5120,"intermediate_size":25600,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false}`, 32_762_123_264, 262144, 0},
	{"Qwen3 30B A3B", `{"model_type":"qwen3_moe","num_hidden_layers":48,"hidden_size":2048,"intermediate_size":6144,"moe_intermediate_size":768,"num_experts":128,"decoder_sparse_step":1,"mlp_only_layers":[],"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false}`, 30_532_122_624, 98304, 0},
	{"Qwen3 235B A22B", `{"model_type":"qwen3_moe","num_hidden_layers":94,"hidden_size":4096,"intermediate_size":12288,"moe_intermediate_size":1536,"num_experts":128,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false}`, 235_093_634_560, 192512, 0},
	{"Qwen1.5 MoE A2.7B", `{"model_type":"qwen2_moe","num_hidden_layers":24,"hidden_size":2048,"intermediate_size":5632,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts":60,"num_attention_heads":16,"num_key_value_heads":16,"vocab_size":151936,"tie_word_embeddings":false}`, 14_315_784_192, 196608, 0},
	{"Gemma 2 2B", `{"model_type":"gemma2","num_hidden_layers":26,"hidden_size":2304,"intermediate_size":9216,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"vocab_size":256000,"sliding_window":4096}`, 2_614_341_888, 106496, 4096 * 13 * (4096 + 100_000)},
	{"Gemma 2 9B", `{"model_type":"gemma2","num_hidden_layers":42,"hidden_size":3584,"intermediate_size":14336,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,"vocab_size":256000,"sliding_window":4096}`, 9_241_705_984, 344064, 0},
	{"Gemma 2 27B", `{"model_type":"gemma2","num_hidden_layers":46,"hidden_size":4608,"intermediate_size":36864,"num_attention_heads":32,"num_key_value_heads":16,"head_dim":128,"vocab_size":256000,"sliding_window":4096}`, 27_227_128_320, 376832, 0},
	{"Gemma 3 270M", `{"model_type":"gemma3_text","num_hidden_layers":18,"hidden_size":640,"intermediate_size":2048,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":256,"vocab_size":262144,"sliding_window":512,"layer_types":["sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"]}`, 268_098_176, 18432, 1024 * (15*512 + 3*100_000)},
	{"Gemma 3 1B", `{"model_type":"gemma3_text","num_hidden_layers":26,"hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":256,"vocab_size":262144,"sliding_window":512,"sliding_window_pattern":6}`, 999_885_952, 26624, 1024 * (22*512 + 4*100_000)},
	{"Phi 2", `{"model_type":"phi","num_hidden_layers":32,"hidden_size":2560,"intermediate_size":10240,"num_attention_heads":32,"num_key_value_heads":null,"vocab_size":51200,"tie_word_embeddings":false,"torch_dtype":"float16"}`, 2_779_683_840, 327680, 0},
	{"Phi 3 mini", `{"model_type":"phi3","num_hidden_layers":32,"hidden_size":3072,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":32064,"sliding_window":2047,"tie_word_embeddings":false}`, 3_821_079_552, 393216, 393216 * 2047},
	{"DeepSeek V2 Lite", `{"model_type":"deepseek_v2","num_hidden_layers":27,"hidden_size":2048,"intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,"first_k_dense_replace":1,"moe_layer_freq":1,"num_attention_heads":16,"num_key_value_heads":16,"kv_lora_rank":512,"q_lora_rank":null,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"vocab_size":102400,"torch_dtype":"bfloat16"}`, 15_706_484_224, 31104, 0},
	{"DeepSeek V3", `{"model_type":"deepseek_v3","num_hidden_layers":61,"hidden_size":7168,"intermediate_size":18432,"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"first_k_dense_replace":3,"moe_layer_freq":1,"num_attention_heads":128,"num_key_value_heads":128,"kv_lora_rank":512,"q_lora_rank":1536,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"vocab_size":129280,"torch_dtype":"bfloat16","quantization_config":{"quant_method":"fp8"}}`, 671_026_419_200, 70272, 0},
	{"gpt-oss 20B", `{"model_type":"gpt_oss","num_hidden_layers":24,"hidden_size":2880,"intermediate_size":2880,"num_local_experts":32,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"vocab_size":201088,"sliding_window":128,"attention_bias":true,"tie_word_embeddings":false,"quantization_config":{"quant_method":"mxfp4"}}`, 20_914_757_184, 49152, 2048 * 12 * (128 + 100_000)},
	{"gpt-oss 120B", `{"model_type":"gpt_oss","num_hidden_layers":36,"hidden_size":2880,"intermediate_size":2880,"num_local_experts":128,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"vocab_size":201088,"sliding_window":128,"attention_bias":true,"tie_word_embeddings":false,"quantization_config":{"quant_method":"mxfp4"}}`, 116_829_156_672, 73728, 0},
}

func TestRealModels(t *testing.T) {
	for _, m := range real {
		f, err := hf.Config([]byte(m.config))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if f.Parameters != m.parameters {
			t.Errorf("%s: %d parameters, published are %d", m.name, f.Parameters, m.parameters)
		}
		if got := f.KVBytesPerToken(2); got != m.token {
			t.Errorf("%s: %d bytes of KV a token, want %d", m.name, got, m.token)
		}
		if got := f.KVBytes(100_000, 16, 1, 1); m.far != 0 && got != m.far {
			t.Errorf("%s: %d bytes of KV for 100,000 tokens, want %d", m.name, got, m.far)
		}
	}
}
