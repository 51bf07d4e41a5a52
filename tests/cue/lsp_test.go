package cue

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// server is `cue lsp` and what it says.
type server struct {
	t    *testing.T
	dir  string
	in   io.WriteCloser
	out  chan message
	next int
}

// message is a JSON-RPC message.
type message struct {
	ID     *json.RawMessage `json:"id"`
	Method string           `json:"method"`
	Result json.RawMessage  `json:"result"`
	Params json.RawMessage  `json:"params"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// lsp starts the language server on a project. It ends with the test.
func lsp(t *testing.T, dir string) *server {
	t.Helper()
	cmd := exec.Command(tool(t), "lsp")
	cmd.Dir, cmd.Env = dir, offline(t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, in: in, out: make(chan message, 100)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(s.out)
		r := bufio.NewReader(out)
		for {
			h, err := textproto.NewReader(r).ReadMIMEHeader()
			if err != nil {
				return
			}
			n, err := strconv.Atoi(h.Get("Content-Length"))
			if err != nil {
				return
			}
			b := make([]byte, n)
			if _, err := io.ReadFull(r, b); err != nil {
				return
			}
			var m message
			if json.Unmarshal(b, &m) == nil {
				s.out <- m
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		go func() {
			for range s.out { // what nobody waits for any more
			}
		}()
		<-read
		_ = cmd.Wait()
	})
	s.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": "file://" + dir,
		"workspaceFolders": []any{map[string]any{"uri": "file://" + dir, "name": "mine"}},
		"capabilities": map[string]any{"textDocument": map[string]any{
			"hover":      map[string]any{"contentFormat": []string{"markdown"}},
			"completion": map[string]any{"completionItem": map[string]any{"documentationFormat": []string{"markdown"}}},
		}},
	}, nil)
	s.send(map[string]any{"jsonrpc": "2.0", "method": "initialized", "params": map[string]any{}})
	return s
}

func (s *server) send(v any) {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(b), b); err != nil {
		s.t.Fatal(err)
	}
}

// call asks and waits for the answer; what the server asks meanwhile is answered with null.
func (s *server) call(method string, params, result any) {
	s.t.Helper()
	s.next++
	id := fmt.Sprint(s.next)
	began := time.Now()
	s.send(map[string]any{"jsonrpc": "2.0", "id": s.next, "method": method, "params": params})
	late := time.After(time.Minute)
	for {
		select {
		case m, ok := <-s.out:
			switch {
			case !ok:
				s.t.Fatalf("%s: the server ended", method)
			case m.ID == nil:
				continue // a notification
			case m.Method != "":
				s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": nil})
				continue
			case string(*m.ID) != id:
				continue
			case m.Error != nil:
				s.t.Fatalf("%s: %s", method, m.Error.Message)
			}
			s.t.Logf("%s: %v", method, time.Since(began).Round(100*time.Microsecond))
			if result != nil {
				if err := json.Unmarshal(m.Result, result); err != nil {
					s.t.Fatalf("%s: %v in %s", method, err, m.Result)
				}
			}
			return
		case <-late:
			s.t.Fatalf("%s: no answer", method)
		}
	}
}

// at opens a text as graph.cue and returns the parameters for the place behind the mark "‸", which is taken out.
func (s *server) at(text string) map[string]any {
	s.t.Helper()
	before, after, ok := strings.Cut(text, "‸")
	if !ok {
		s.t.Fatal("no mark")
	}
	uri := "file://" + filepath.Join(s.dir, "graph.cue")
	if s.next > 1 {
		s.send(map[string]any{"jsonrpc": "2.0", "method": "textDocument/didClose", "params": map[string]any{"textDocument": map[string]any{"uri": uri}}})
	}
	s.send(map[string]any{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": map[string]any{
		"textDocument": map[string]any{"uri": uri, "languageId": "cue", "version": 1, "text": before + after}}})
	line := strings.Count(before, "\n")
	return map[string]any{"textDocument": map[string]any{"uri": uri},
		"position": map[string]any{"line": line, "character": len(before) - strings.LastIndex(before, "\n") - 1}}
}

const edited = `package graph

import "dynamo.graph/spec"

spec.#Graph & {
	name: "mine"
	nodes: {
		api: spec.#Frontend & {listen: ":8000"}
		worker: spec.#Worker & {
			replicas: 1
			%s
		}
	}
	edges: "api -> worker": {}
}
`

func TestLanguageServer(t *testing.T) {
	dir := project(t, "")
	s := lsp(t, dir)

	t.Run("completion", func(t *testing.T) {
		var list struct {
			Items []struct {
				Label string `json:"label"`
			} `json:"items"`
		}
		s.call("textDocument/completion", s.at(fmt.Sprintf(edited, "‸")), &list)
		var labels []string
		for _, i := range list.Items {
			labels = append(labels, strings.Trim(i.Label, "?!: "))
		}
		for _, want := range []string{"engine", "threads", "kv", "batch", "model"} {
			if !slices.Contains(labels, want) {
				t.Errorf("field %q is not proposed, but %v", want, labels)
			}
		}
		s.call("textDocument/completion", s.at(strings.Replace(fmt.Sprintf(edited, ""), "spec.#Worker", "spec.#W‸", 1)), &list)
		if !slices.ContainsFunc(list.Items, func(i struct {
			Label string `json:"label"`
		}) bool {
			return i.Label == "#Worker"
		}) {
			t.Errorf("#Worker is not proposed, but %v", list.Items)
		}
	})
	t.Run("hover", func(t *testing.T) {
		var hover struct {
			Contents struct {
				Value string `json:"value"`
			} `json:"contents"`
		}
		s.call("textDocument/hover", s.at(strings.Replace(fmt.Sprintf(edited, ""), "replicas", "repl‸icas", 1)), &hover)
		if want := "replicas is how many of this node run"; !strings.Contains(hover.Contents.Value, want) {
			t.Errorf("hover over replicas: %q, want %q", hover.Contents.Value, want)
		}
		s.call("textDocument/hover", s.at(strings.Replace(fmt.Sprintf(edited, ""), "spec.#Worker", "spec.#Wor‸ker", 1)), &hover)
		if want := "#Worker computes prompts and answers"; !strings.Contains(hover.Contents.Value, want) {
			t.Errorf("hover over #Worker: %q, want %q", hover.Contents.Value, want)
		}
	})
	t.Run("definition", func(t *testing.T) {
		for mark, file := range map[string]string{"spec.#Wor‸ker": "kind_worker.cue", "lis‸ten": "kind_frontend.cue"} {
			var places []struct {
				URI string `json:"uri"`
			}
			s.call("textDocument/definition", s.at(strings.Replace(fmt.Sprintf(edited, ""), strings.Replace(mark, "‸", "", 1), mark, 1)), &places)
			want := "file://" + filepath.Join(dir, "cue.mod/pkg/dynamo.graph/spec", file)
			if !slices.ContainsFunc(places, func(p struct {
				URI string `json:"uri"`
			}) bool {
				return p.URI == want
			}) {
				t.Errorf("%s leads to %v, want %s", mark, places, want)
			}
		}
	})
}
