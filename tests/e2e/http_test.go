package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// conn is a connection on which a test writes HTTP by hand.
type conn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (r *running) dial(t *testing.T) *conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(r.url, "http://"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &conn{c, t, bufio.NewReader(c)}
}

func (c *conn) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer.
func (c *conn) answer(method string) (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%v after %q", err, b)
	}
	return resp, string(b)
}

// oddly sends a request and reads its answer.
func (c *conn) oddly(method, format string, args ...any) (*http.Response, string) {
	c.t.Helper()
	c.send(format, args...)
	return c.answer(method)
}

const chatPath = "/v1/chat/completions"

func chatBody(t *testing.T, q chatReq) string {
	t.Helper()
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHTTP has what proxies, old clients and broken ones do (cases E-027, E-026, E-034 and others): an answer or one clear error each, and the
// server serves on.
func TestHTTP(t *testing.T) {
	r := start(t, agg)
	body := chatBody(t, ask("What is the capital of France?", 12))
	post := func(path, more, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, more, len(body), body)
	}
	paris := func(t *testing.T, resp *http.Response, body string) {
		t.Helper()
		if resp.StatusCode != 200 || !strings.Contains(body, "Paris") {
			t.Errorf("status %d: %s", resp.StatusCode, body)
		}
	}
	refused := func(t *testing.T, resp *http.Response, body string, status int) {
		t.Helper()
		var v struct {
			Error *struct{ Message, Type string }
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error == nil || v.Error.Message == "" || resp.StatusCode != status ||
			resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("X-Request-Id") == "" {
			t.Errorf("status %d, want %d; header %v: %s", resp.StatusCode, status, resp.Header, body)
		}
	}
	for name, f := range map[string]func(t *testing.T, c *conn){
		"plain": func(t *testing.T, c *conn) {
			resp, b := c.oddly("POST", "%s", post(chatPath, "", body))
			paris(t, resp, b)
		},
		"pipelined": func(t *testing.T, c *conn) {
			c.send("%s%s%s", post(chatPath, "X-Request-Id: a\r\n", body), post(chatPath, "X-Request-Id: b\r\n", `{`), post(chatPath, "X-Request-Id: c\r\n", body))
			for _, id := range []string{"a", "b", "c"} {
				resp, b := c.answer("POST")
				if got := resp.Header.Get("X-Request-Id"); got != id {
					t.Errorf("answer %q where %q was due", got, id)
				}
				if id == "b" {
					refused(t, resp, b, 400)
				} else {
					paris(t, resp, b)
				}
			}
		},
		"expect continue": func(t *testing.T, c *conn) {
			c.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", chatPath, len(body))
			line, err := c.r.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
				t.Fatalf("%q, %v", line, err)
			}
			_, _ = c.r.ReadString('\n')
			resp, b := c.oddly("POST", "%s", body)
			paris(t, resp, b)
		},
		"expect continue, refused": func(t *testing.T, c *conn) { // no body is asked for
			resp, b := c.oddly("POST", "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: 9999\r\n\r\n", chatPath)
			refused(t, resp, b, 415)
		},
		"HTTP/1.0": func(t *testing.T, c *conn) {
			resp, b := c.oddly("POST", "POST %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(body), body)
			paris(t, resp, b)
		},
		"HTTP/1.0 stream": func(t *testing.T, c *conn) { // no chunks there: the connection's end is the stream's
			s := strings.Replace(body, "{", `{"stream":true,`, 1)
			resp, b := c.oddly("POST", "POST %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(s), s)
			if resp.StatusCode != 200 || !strings.HasSuffix(b, "data: [DONE]\n\n") || resp.Header.Get("Transfer-Encoding") != "" {
				t.Errorf("%v: %s", resp.Header, b)
			}
		},
		"chunked": func(t *testing.T, c *conn) {
			c.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", chatPath)
			for part := 0; part < len(body); part += 7 {
				p := body[part:min(part+7, len(body))]
				c.send("%x\r\n%s\r\n", len(p), p)
			}
			resp, b := c.oddly("POST", "0\r\n\r\n")
			paris(t, resp, b)
		},
		"a byte at a time": func(t *testing.T, c *conn) {
			for _, b := range []byte(post(chatPath, "", body)) {
				if _, err := c.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			resp, b := c.answer("POST")
			paris(t, resp, b)
		},
		"length and chunks": func(t *testing.T, c *conn) { // request smuggling: the length must not count
			resp, b := c.oddly("POST", "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
				chatPath, len(body), body)
			if resp.StatusCode != 400 {
				paris(t, resp, b)
			}
		},
		"two lengths": func(t *testing.T, c *conn) {
			if resp, b := c.oddly("POST", "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n{}   ", chatPath); resp.StatusCode != 400 {
				t.Errorf("status %d: %s", resp.StatusCode, b)
			}
		},
		"no length": func(t *testing.T, c *conn) {
			resp, b := c.oddly("POST", "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n", chatPath)
			refused(t, resp, b, 400)
		},
		"short body": func(t *testing.T, c *conn) {
			c.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n%s", chatPath, body)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, b := c.answer("POST")
			refused(t, resp, b, 400)
		},
		"large headers": func(t *testing.T, c *conn) {
			go c.Write([]byte("GET /v1/models HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 1<<20) + "\r\n\r\n")) //nolint:errcheck // it is cut off
			if resp, err := http.ReadResponse(c.r, nil); err == nil {
				if resp.StatusCode != 431 {
					t.Errorf("status %d", resp.StatusCode)
				}
				resp.Body.Close()
			}
		},
		"garbage": func(t *testing.T, c *conn) {
			if resp, b := c.oddly("GET", "\x16\x03\x01 hello\r\n\r\n"); resp.StatusCode != 400 {
				t.Errorf("status %d: %s", resp.StatusCode, b)
			}
		},
		"gzip": func(t *testing.T, c *conn) {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			_, _ = w.Write([]byte(body))
			_ = w.Close()
			resp, b := c.oddly("POST", "%s", post(chatPath, "Content-Encoding: gzip\r\n", z.String()))
			refused(t, resp, b, 415)
		},
		"HEAD": func(t *testing.T, c *conn) {
			if resp, b := c.oddly("HEAD", "HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"); resp.StatusCode != 200 || b != "" || resp.ContentLength <= 0 {
				t.Errorf("status %d, length %d: %s", resp.StatusCode, resp.ContentLength, b)
			}
			resp, b := c.oddly("GET", "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n") // nothing was left on the connection
			if resp.StatusCode != 200 || !strings.Contains(b, `"smollm2"`) {
				t.Errorf("status %d: %s", resp.StatusCode, b)
			}
			if resp, _ = c.oddly("HEAD", "HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n", chatPath); resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
				t.Errorf("HEAD of a POST: status %d", resp.StatusCode)
			}
		},
		"OPTIONS": func(t *testing.T, c *conn) {
			if resp, _ := c.oddly("OPTIONS", "OPTIONS %s HTTP/1.1\r\nHost: x\r\n\r\n", chatPath); resp.StatusCode != 204 || resp.Header.Get("Allow") != "POST, OPTIONS" {
				t.Errorf("status %d %v", resp.StatusCode, resp.Header)
			}
		},
		"405": func(t *testing.T, c *conn) {
			for _, m := range []string{"GET", "PUT", "DELETE", "PATCH", "BREW"} {
				resp, b := c.oddly(m, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", m, chatPath)
				refused(t, resp, b, 405)
			}
		},
		"paths": func(t *testing.T, c *conn) {
			for _, p := range []string{"//v1/chat/completions", "/v1/chat/completions/", "/v1/chat/completions?api-version=1"} {
				resp, b := c.oddly("POST", "%s", post(p, "", body))
				paris(t, resp, b)
			}
			for p, status := range map[string]int{"/v1/models/smollm2": 200, "//v1/models/": 200, "/v1/models/org%2Fname": 404, "/v1/models/org/name": 404, "/v1/../etc/passwd": 404, "/%00": 404} {
				resp, b := c.oddly("GET", "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", p)
				if resp.StatusCode != status || strings.Contains(p, "name") && !strings.Contains(b, `org/name`) {
					t.Errorf("%s: status %d: %s", p, resp.StatusCode, b)
				}
			}
		},
		"refusals cost nobody": func(t *testing.T, c *conn) { // E-034: sgl-project/sglang#25811, #26713
			long := chatBody(t, ask(strings.Repeat("word ", 9000), 1))
			for range 6 {
				resp, b := c.oddly("POST", "%s", post(chatPath, "", long))
				refused(t, resp, b, 400)
				if !strings.Contains(b, `"context_length_exceeded"`) || !strings.Contains(b, "8192 tokens") {
					t.Error(b)
				}
			}
			resp, b := c.oddly("POST", "%s", post(chatPath, "", body))
			paris(t, resp, b)
		},
		"E-004": func(t *testing.T, c *conn) {
			resp, b := c.oddly("POST", "%s", post(chatPath, "", chatBody(t, ask("hi", 8180))))
			refused(t, resp, b, 400)
			if !regexp.MustCompile(`maximum context length is 8192 tokens, but 82\d\d were requested: \d+ in the prompt and 8180 for the answer`).MatchString(b) {
				t.Error(b)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, r.dial(t))
		})
	}
}

// TestHalfSent holds connections open that never become requests: others are served, and the server lets go of them.
func TestHalfSent(t *testing.T) {
	r := start(t, agg)
	var idle []*conn
	for i := range 200 {
		c := r.dial(t)
		c.send("POST %s HTTP/1.1\r\nHost: x\r\nX-Slow-%d: ", chatPath, i)
		idle = append(idle, c)
	}
	a, err := r.chat(within(t, time.Minute), ask("What is the capital of France?", 12))
	if err != nil || !strings.Contains(a.Text, "Paris") {
		t.Errorf("%+v, %v", a, err)
	}
	begin := time.Now()
	for _, c := range idle {
		_ = c.SetReadDeadline(begin.Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c.r); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("a half-sent request is still open: %v", err)
		}
	}
}

// memory is the resident memory of a process in MB.
func memory(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatal("no VmHWM")
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// TestHugePrompts sends prompts of 10 MB: one clear error each, in bounded time and memory; over the limit of bodies it is 413.
func TestHugePrompts(t *testing.T) {
	r := start(t, agg)
	ctx := within(t, 2*time.Minute)
	before := memory(t, r.pid("api-0"))
	for name, text := range map[string]string{
		"words": strings.Repeat("word ", 2<<20), "one letter": strings.Repeat("a", 10<<20), "no letters": strings.Repeat("\u200d", 3<<20), "specials": strings.Repeat("<|im_end|>", 1<<20),
	} {
		for _, path := range []string{chatPath, "/v1/completions"} {
			q := map[string]any{"model": "smollm2", "prompt": text, "max_tokens": 1}
			if path == chatPath {
				q = map[string]any{"model": "smollm2", "messages": []map[string]any{{"role": "user", "content": text}}}
			}
			begin := time.Now()
			_, err := r.post(ctx, path, q)
			if err == nil || !strings.Contains(err.Error(), "status 400") || !strings.Contains(err.Error(), "context_length_exceeded") || len(err.Error()) > 500 {
				t.Errorf("%s, %s: %v", name, path, err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("%s, %s: took %v", name, path, took)
			}
		}
	}
	if _, err := r.post(ctx, chatPath, map[string]any{"user": strings.Repeat("x", 40<<20)}); err == nil || !strings.Contains(err.Error(), "status 413") {
		t.Errorf("40 MB: %v", err)
	}
	// Many at once: each is answered, and memory does not grow with their number.
	var wg sync.WaitGroup
	text := strings.Repeat("word ", 2<<20)
	for range 40 {
		wg.Go(func() {
			_, err := r.post(ctx, "/v1/completions", map[string]any{"model": "smollm2", "prompt": text, "max_tokens": 1})
			if err == nil || !strings.Contains(err.Error(), "status 400") && !strings.Contains(err.Error(), "status 429") {
				t.Errorf("among many: %v", err)
			}
		})
	}
	wg.Wait()
	after := memory(t, r.pid("api-0"))
	t.Logf("peak memory of the frontend's process: %d MB before, %d MB after", before, after)
	if after-before > 1024 {
		t.Errorf("prompts of 10 MB, forty at once, cost %d MB", after-before)
	}
	if a, err := r.chat(ctx, ask("What is the capital of France?", 12)); err != nil || !strings.Contains(a.Text, "Paris") {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestClientLeaves checks that an answer which nobody reads any more is not computed: whoever asks next is served at once.
func TestClientLeaves(t *testing.T) {
	r := start(t, disagg)
	ctx := within(t, 3*time.Minute)
	q := ask("What is the capital of France?", 8)
	if _, err := r.chat(ctx, q); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := r.chat(ctx, q); err != nil {
		t.Fatal(err)
	}
	calm := time.Since(begin)
	for _, streamed := range []bool{true, false} {
		leaving, leave := context.WithCancel(ctx)
		left := make(chan error, 12)
		for i := range cap(left) {
			go func() {
				long := ask(fmt.Sprintf("Write a long story, number %d.", i), 1900)
				var err error
				if streamed {
					_, err = r.stream(leaving, long, nil)
				} else {
					_, err = r.chat(leaving, long)
				}
				left <- err
			}()
		}
		time.Sleep(time.Second) // all of them are being computed
		leave()
		for range cap(left) {
			if err := <-left; err == nil {
				t.Error("a story of 1900 tokens was over within a second")
			}
		}
		time.Sleep(200 * time.Millisecond)
		begin := time.Now()
		if _, err := r.chat(ctx, q); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		t.Logf("streamed %v: %v for the next, %v before", streamed, took, calm)
		if took > 5*calm+2*time.Second { // twelve stories take a minute
			t.Errorf("streamed %v: the next took %v, %v before: the engine computes what nobody reads", streamed, took, calm)
		}
	}
}

// TestSlowReader checks that a client which does not read its stream slows down nobody (that it is let go: nodes/frontend).
func TestSlowReader(t *testing.T) {
	r := start(t, agg)
	slow := r.dial(t)
	if err := slow.Conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	q := ask("Write a long story.", 1900)
	q.Stream = true
	body := chatBody(t, q)
	body = strings.Replace(body, "{", `{"logprobs":true,"top_logprobs":20,`, 1) // some MB
	slow.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(body), body)
	if _, err := slow.r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if a, err := r.chat(within(t, 20*time.Second), ask("What is the capital of France?", 12)); err != nil || !strings.Contains(a.Text, "Paris") {
			t.Errorf("%+v, %v", a, err)
		}
	}
}
