package native

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

// region counts who has it open.
type region struct {
	name string
	open map[string]int
}

func (r *region) Region() string { return r.name }
func (r *region) Bytes() []byte  { return nil }
func (r *region) Close() error {
	r.open[r.name]--
	if r.open[r.name] == 0 {
		delete(r.open, r.name)
	}
	return nil
}

func newMappings() (*mappings, map[string]int) {
	open := map[string]int{}
	return &mappings{open: func(name string) (kind.Memory, error) {
		if name == "gone" {
			return nil, errors.New("no such file")
		}
		open[name]++
		return &region{name, open}, nil
	}}, open
}

func (m *mappings) mustGet(t *testing.T, peer, name string) *mapping {
	t.Helper()
	x, err := m.get(peer, name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (m *mappings) mustPut(t *testing.T, x *mapping) {
	t.Helper()
	if err := m.put(x); err != nil {
		t.Fatal(err)
	}
}

// A peer that was started again has a new region; the old one, whose pages nobody else holds any more, is unmapped.
func TestMappingOfFormerLife(t *testing.T) {
	m, open := newMappings()
	m.mustPut(t, m.mustGet(t, "prefill-1", "other"))
	for life := range 100 {
		for range 3 {
			m.mustPut(t, m.mustGet(t, "prefill-0", fmt.Sprint(life)))
		}
	}
	if len(open) != 2 || open["99"] != 1 || open["other"] != 1 {
		t.Errorf("mapped: %v", open)
	}
	// One that is read is unmapped afterwards.
	x := m.mustGet(t, "prefill-0", "99")
	m.mustPut(t, m.mustGet(t, "prefill-0", "100"))
	if open["99"] != 1 {
		t.Error("unmapped under its reader")
	}
	m.mustPut(t, x)
	if open["99"] != 0 || open["100"] != 1 {
		t.Errorf("mapped: %v", open)
	}
	// One that cannot be mapped costs none of the others.
	if _, err := m.get("prefill-0", "gone"); err == nil || open["100"] != 1 {
		t.Errorf("%v, mapped: %v", err, open)
	}
	if err := m.close(); err != nil || len(open) != 0 {
		t.Errorf("%v, mapped after close: %v", err, open)
	}
}

func TestMappingsAreFew(t *testing.T) {
	m, open := newMappings()
	first := m.mustGet(t, "peer-first", "first")
	for i := range 3 * maxMappings {
		m.mustPut(t, m.mustGet(t, fmt.Sprint("peer-", i), fmt.Sprint(i)))
	}
	if len(open) != maxMappings || open["first"] != 1 {
		t.Errorf("%d mapped, at most %d; the one in use %d times", len(open), maxMappings, open["first"])
	}
	m.mustPut(t, first)
}

// A peer whose memory could not be mapped once, for it was dying, is tried again later.
func TestAvoidIsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := newMappings()
		if !m.mappable("prefill-0") {
			t.Error("avoided without a reason")
		}
		m.avoid("prefill-0")
		if m.mappable("prefill-0") || !m.mappable("prefill-1") {
			t.Error("not avoided, or another")
		}
		time.Sleep(avoidFor)
		if !m.mappable("prefill-0") {
			t.Error("still avoided")
		}
	})
}
