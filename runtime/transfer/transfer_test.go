package transfer_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dynamograph/dynamo/runtime/transfer"
)

// With this variable set, the test binary makes a region in the folder that it names, tells it, and waits.
const makerEnv = "DYNAMO_TEST_MAKER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(makerEnv); dir != "" {
		r, err := transfer.Create(dir, "child", 1<<20)
		if err != nil {
			panic(err)
		}
		copy(r.Bytes()[1<<20-5:], "hello")
		fmt.Println(r.Region())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // without Close: as if it had crashed
	}
	os.Exit(m.Run())
}

func Example() {
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	mine, err := transfer.Create(dir, "decode-1-kv", 4096)
	if err != nil {
		panic(err)
	}
	defer mine.Close()
	copy(mine.Bytes(), "block")
	theirs, err := transfer.Open(mine.Region()) // in another process
	if err != nil {
		panic(err)
	}
	defer theirs.Close()
	fmt.Printf("%s\n", theirs.Bytes()[:5])
	// Output: block
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestRegion(t *testing.T) {
	dir := t.TempDir()
	const size = 3*4096 + 17
	r, err := transfer.Create(dir, "x", size)
	if err != nil {
		t.Fatal(err)
	}
	b := r.Bytes()
	if len(b) != size || uintptr(unsafe.Pointer(&b[0]))%uintptr(os.Getpagesize()) != 0 {
		t.Errorf("%d bytes at %p", len(b), &b[0])
	}
	for i, c := range b {
		if c != 0 {
			t.Fatalf("byte %d is %d", i, c)
		}
	}
	info, err := os.Stat(r.Region())
	if err != nil || info.Mode() != 0o600 || info.Size() != size {
		t.Errorf("%v %v", info, err)
	}
	o, err := transfer.Open(r.Region())
	if err != nil {
		t.Fatal(err)
	}
	b[size-1] = 7
	if got := o.Bytes(); len(got) != size || got[size-1] != 7 || o.Region() != r.Region() {
		t.Error("the reader sees something else")
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if r.Bytes() != nil || len(names(t, dir)) != 0 {
		t.Errorf("left over: %q", names(t, dir))
	}
	if o.Bytes()[size-1] != 7 {
		t.Error("the reader lost what it had mapped")
	}
	for range 2 {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := transfer.Open(r.Region()); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("opened what is gone: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		dir, name string
		size      int64
		want      string
	}{
		{dir, "../x", 1, "name must be"},
		{dir, "", 1, "name must be"},
		{dir, "x", 0, "size 0"},
		{dir, "x", -1, "size -1"},
		{dir, "x", 1 << 60, "needs 1099511627776 MiB"},
		{filepath.Join(dir, "missing"), "x", 1, "no such file"},
	} {
		if r, err := transfer.Create(tc.dir, tc.name, tc.size); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v %v", tc, r, err)
		}
	}
	if n := names(t, dir); len(n) != 0 {
		t.Errorf("left over: %q", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	r, err := transfer.Create(dir, "x", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	file := func(name string, size int, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	link := filepath.Join(dir, "dynamo-link.shm")
	if err := os.Symlink(r.Region(), link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "dynamo-pipe.shm")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "dynamo-folder.shm")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		link:                                "is a symbolic link",
		pipe:                                "is no plain file",
		folder:                              "is no plain file",
		file("dynamo-wide.shm", 10, 0o640):  "is open to others",
		file("dynamo-empty.shm", 0, 0o600):  "has size 0",
		file("passwords", 10, 0o600):        "is no region's name",
		dir + "/a/../dynamo-x.shm":          "is no region's name",
		"dynamo-x.shm":                      "is no region's name",
		filepath.Join(dir, "dynamo-no.shm"): "no such file",
	}
	if os.Geteuid() == 0 { // only root can give a file away
		p := file("dynamo-other.shm", 10, 0o600)
		if err := os.Chown(p, 12345, -1); err != nil {
			t.Fatal(err)
		}
		cases[p] = "belongs to another user"
	}
	for path, want := range cases {
		if _, err := transfer.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

// TestOtherProcess reads what another process has written, and cleans up after its death.
func TestOtherProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), makerEnv+"="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	region := strings.TrimSpace(line)
	o, err := transfer.Open(region)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if got := string(o.Bytes()[1<<20-5:]); got != "hello" {
		t.Errorf("read %q", got)
	}
	half := filepath.Join(dir, ".dynamo-new-old")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	transfer.Clean(dir)
	if got := names(t, dir); len(got) != 2 {
		t.Fatalf("the living lost theirs: %q", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := os.Chtimes(half, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	mine, err := transfer.Create(dir, "x", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if got := names(t, dir); len(got) != 1 || filepath.Join(dir, got[0]) != mine.Region() {
		t.Errorf("left over: %q", got)
	}
	if got := string(o.Bytes()[1<<20-5:]); got != "hello" {
		t.Errorf("after the maker's death: read %q", got)
	}
}

func TestDir(t *testing.T) {
	if got := transfer.Dir("/run/x", 1<<62); got != "/run/x" {
		t.Errorf("4 EiB go to %s", got)
	}
	if _, err := os.Stat(transfer.SharedMemory); err == nil {
		if got := transfer.Dir("/run/x", 1); got != transfer.SharedMemory {
			t.Errorf("one byte goes to %s", got)
		}
	}
}

// What a region has not taken yet is no room for the next one.
func TestRoomIsPromisedOnce(t *testing.T) {
	dir := t.TempDir()
	free, err := freeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	size := free * 2 / 3 &^ 4095 // sparse: nothing is written
	one, err := transfer.Create(dir, "one", size)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := transfer.Create(dir, "two", size); err == nil {
		_ = two.Close()
		t.Errorf("a second region of %d MiB fits in %d MiB", size>>20, free>>20)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	two, err := transfer.Create(dir, "two", size)
	if err != nil {
		t.Fatalf("after the first is closed: %v", err)
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
}

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return int64(st.Bavail) * int64(st.Bsize), err //nolint:unconvert // Bsize has another type elsewhere
}
