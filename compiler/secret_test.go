package compiler_test

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/compiler"
)

func TestLooksLike(t *testing.T) {
	for _, c := range []struct {
		path, value, what string // what: a part of it; "" for no secret
	}{
		{"key", "sk-proj-abcdefghijklmnop1234", "OpenAI"},
		{"x", "Bearer sk-ant-abcdefghijklmnop1234", "OpenAI"},
		{"x", "hf_ABCDEFGHIJKLMNOPQRST", "Hugging Face"},
		{"x", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "GitHub"},
		{"x", "AKIAABCDEFGHIJKLMNOP", "AWS"},
		{"x", "AIzaSyA-bcdefghijklmnopqrstuvwxyz012345", "Google"},
		{"x", "xoxb-1234567890-abcdef", "Slack"},
		{"x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-def", "Web Token"},
		{"x", "-----BEGIN RSA PRIVATE KEY-----\nabc", "private key"},
		{"x", "postgres://user:hunter22@db/x", "password in a URL"},
		{"url", "https://example.com/v1?api_key=abcdef123456", `"api_key"`},
		{"flags.api-key", "letmein-123", `"api-key"`},
		{"apiKey", "letmein-123", `"apiKey"`},
		{"db_password", "hunter22", `"db_password"`},
		{"flags.hf-token", "letmein-123", `"hf-token"`},

		{"flags.api-key", "env:API_KEY", ""},
		{"flags.api-key", "file:/run/secrets/key", ""},
		{"flags.api-key", "${API_KEY}", ""},
		{"flags.api-key", "$(API_KEY)", ""},
		{"tls.key", "/etc/tls/key.pem", ""},
		{"x", "postgres://user@db/x", ""},
		{"x", "postgres://user:${PASSWORD}@db/x", ""},
		{"url", "https://example.com:8443/v1?version=2024-01-01", ""},
		{"source", "hf:org/sk-llm-7b-instruct-v2/model.gguf", ""},
		{"source", "pypi:pkg==1.0/model.gguf#token=env:HF_TOKEN", ""},
		{"flags.eos-token", "<|endoftext|>", ""},
		{"flags.routing-key", "tenant-name", ""},
		{"flags.tokenizer", "meta-llama/Llama-3.1-8B", ""},
		{"flags.max-tokens", "1234567", ""},
		{"imagePullSecret", "my-registry", ""},
		{"monkey", "bananas-123", ""},
		{"kv.hash", "sha256_cbor_64bit", ""},
		{"sha256", strings.Repeat("0123456789abcdef", 4), ""},
	} {
		what, secret := compiler.LooksLike(c.path, c.value)
		if c.what == "" && what != "" || c.what != "" && !strings.Contains(what, c.what) {
			t.Errorf("%s: %q: got %q, want %q", c.path, c.value, what, c.what)
		}
		if what != "" && !strings.Contains(c.value, secret) {
			t.Errorf("%s: %q: the secret is %q", c.path, c.value, secret)
		}
		if shown := compiler.Hidden(secret); len(secret) > 0 && len([]rune(shown)) > 6 {
			t.Errorf("%q is shown as %s", secret, shown)
		}
	}
}
