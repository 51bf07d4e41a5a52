package compiler

import "testing"

func TestMeets(t *testing.T) {
	for _, c := range []struct {
		url, listen string
		want        bool
	}{
		{"http://127.0.0.1:8000/v1", "127.0.0.1:8000", true},
		{"http://localhost:8000/v1", "127.0.0.1:8000", true},
		{"http://localhost:8000/v1", ":8000", true},
		{"http://[::1]:8000/v1", "[::]:8000", true},
		{"http://127.0.0.1/v1", ":80", true},
		{"https://10.0.0.7:443/v1", "10.0.0.7:443", true},
		{"http://[::1]:8000/v1", "127.0.0.1:8000", false},
		{"http://127.0.0.1:8001/v1", "127.0.0.1:8000", false},
		{"https://api.example.com:8000/v1", ":8000", false}, // it may be anywhere
		{"https://10.0.0.7:8000/v1", ":8000", false},
		{"http://127.0.0.1:0/v1", "127.0.0.1:0", false},
	} {
		if got := meets(c.url, c.listen); got != c.want {
			t.Errorf("%s, listening on %s: %v, want %v", c.url, c.listen, got, c.want)
		}
	}
}
