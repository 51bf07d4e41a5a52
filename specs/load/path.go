package load

import (
	"fmt"
	"regexp"
	"strings"
)

// place names a place of the graph in a message: nodes.decode.kv, or edge "a -> b": transport.
func place(path []string) string {
	if len(path) < 2 || path[0] != "edges" {
		return strings.Join(path, ".")
	}
	s := fmt.Sprintf("edge %q", path[1])
	if len(path) > 2 {
		s += ": " + strings.Join(path[2:], ".")
	}
	return s
}

var frame = regexp.MustCompile(`^\t(.*/)?([^/]+\.go:\d+)`)

// panicPlace returns the place of a panic: the first line of this package in a stack.
func panicPlace(stack []byte) string {
	after := false
	for line := range strings.Lines(string(stack)) {
		if strings.HasPrefix(line, "panic(") {
			after = true
			continue
		}
		if m := frame.FindStringSubmatch(line); after && m != nil && !strings.Contains(line, "/runtime/") {
			return "at " + m[2]
		}
	}
	return "at an unknown place"
}
