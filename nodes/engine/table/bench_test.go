package table

import "testing"

// BenchmarkDecode is what the first look into the table costs a process.
func BenchmarkDecode(b *testing.B) {
	file, err := files.ReadFile("vllm.json")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode("vllm", file); err != nil {
			b.Fatal(err)
		}
	}
}
