package llama

import "unsafe"

// alignedBytes is n zero bytes at an address that is a multiple of 64.
func alignedBytes(n int) []byte {
	b := make([]byte, n+64)
	o := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[o : o+n : o+n]
}

func alignedFloats(n int) []float32 { return floats(alignedBytes(n * 4)) }

// floats views bytes, aligned to 4, as float32.
func floats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// ref is the address of a float32 as the kernels take it.
func ref(f *float32) *byte { return (*byte)(unsafe.Pointer(f)) }

// at moves an address by n bytes.
func at(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }
