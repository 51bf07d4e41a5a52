//go:build !amd64

package kernel

func sets() []*Set { return []*Set{portableSet} }
