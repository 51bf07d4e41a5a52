package frontend

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

// minKey is the fewest characters of an API key: a shorter one may be a slip of the pen.
const minKey = 16

// reread is how often a request may make us look at the keys and certificates again.
const reread = 5 * time.Second

// keys are the API keys that clients may use. Only their hashes are kept: a look-up by hash takes the same time for every wrong key.
type keys struct {
	host kind.Host
	ref  string

	mu   sync.Mutex
	sums map[[sha256.Size]byte]string // name of the key
	next time.Time                    // when they are read again
}

// newKeys reads them. The error names the line, never the key.
func newKeys(h kind.Host, ref string) (*keys, error) {
	k := &keys{host: h, ref: ref}
	sums, err := k.read()
	if err != nil {
		return nil, err
	}
	k.sums, k.next = sums, time.Now().Add(reread)
	return k, nil
}

// read takes lines of the form "[NAME] KEY", where KEY is the key itself or "sha256:" and the hexadecimal hash of it. Empty lines and lines
// that begin with # do not count.
func (k *keys) read() (map[[sha256.Size]byte]string, error) {
	b, err := k.host.Secret(k.ref)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	sums := map[[sha256.Size]byte]string{}
	s := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, key := "", line
		switch f := strings.Fields(line); len(f) {
		case 1:
		case 2:
			name, key = f[0], f[1]
		default:
			return nil, fmt.Errorf("keys: %s: line %d: want [NAME] KEY", k.ref, n)
		}
		var sum [sha256.Size]byte
		if text, ok := strings.CutPrefix(key, "sha256:"); ok {
			if c, err := hex.Decode(sum[:], []byte(text)); err != nil || c != len(sum) {
				return nil, fmt.Errorf("keys: %s: line %d: a hash has 64 hexadecimal digits", k.ref, n)
			}
		} else {
			if len(key) < minKey {
				return nil, fmt.Errorf("keys: %s: line %d: a key has at least %d characters", k.ref, n, minKey)
			}
			sum = sha256.Sum256([]byte(key))
		}
		if name == "" { // what clients are told apart by: it must not change when other lines do
			name = "sha256:" + hex.EncodeToString(sum[:8])
		}
		sums[sum] = name
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", k.ref, err)
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("keys: %s: it holds no key", k.ref)
	}
	return sums, nil
}

// name returns what the request's key is called; ok is false for a key that is not ours, and for none.
func (k *keys) name(r *http.Request) (name string, ok bool) {
	key := r.Header.Get("x-api-key")
	if kind, rest, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(kind, "Bearer") {
		key = strings.TrimSpace(rest)
	}
	if key == "" {
		return "", false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.After(k.next) {
		k.next = now.Add(reread)
		sums, err := k.read()
		if err != nil {
			k.host.Log().Warn("the API keys cannot be read again; those read before count", "error", err)
		} else {
			k.sums = sums
		}
	}
	name, ok = k.sums[sha256.Sum256([]byte(key))]
	return name, ok
}
