package supervise

import (
	"os"
	"syscall"
	"testing"
)

func openFiles(t *testing.T) int {
	t.Helper()
	l, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(l)
}

// A start that fails, wherever, leaves no descriptor: the supervisor tries again for days.
func TestFailedStartLeaksNothing(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	// Counting takes a descriptor of its own, so that fewer are open than it says.
	open := openFiles(t)
	for room := range 8 {
		few := was
		few.Cur = uint64(open + room)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		_, err := start(Child{Name: "a", Path: "/nonexistent"}, make(chan news, 8))
		if e := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); e != nil {
			t.Fatal(e)
		}
		if err == nil {
			t.Fatal("started")
		}
		if now := openFiles(t); now != open {
			t.Fatalf("with room for %d: %d open, before %d: %v", room, now, open, err)
		}
	}
}
