package serve

import (
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// parallel finds models that cannot be cut as the config says. Engines that are not ours have the same rules here: a device takes whole
// heads; keys and values of which there are fewer are kept by several devices; a stage has at least one layer.
func (k *checker) parallel() {
	f := k.s.Facts
	if f == nil || !engine.IsForeign(k.c.Engine) || k.c.Engine == "llamacpp" {
		return
	}
	r, from, _ := k.c.Resolve()
	at := func(field string) string {
		if f := from[field]; f != "" {
			return f
		}
		return field
	}
	s := spreadOf(r)
	latent := len(f.KV) > 0 && f.KV[0].Latent
	fits := func(tp int) bool {
		return (f.Heads == 0 || f.Heads%tp == 0) && (latent || f.KVHeads == 0 || f.KVHeads%tp == 0 || tp%f.KVHeads == 0)
	}
	if r.Engine == "sglang" && s.attention != s.tp && s.tp%s.dp != 0 {
		k.add("bad-parallelism", at("dp"), fmt.Sprintf("choose a dp that divides %d", s.tp), "%d copies of attention do not share the %d devices of tp evenly", s.dp, s.tp)
	} else if !fits(s.attention) {
		what := fmt.Sprintf("%d attention heads", f.Heads)
		if f.Heads == 0 || f.Heads%s.attention == 0 {
			what = fmt.Sprintf("%d key-value heads", f.KVHeads)
		}
		var ok []string
		for tp := 1; tp <= max(2*s.attention, 8) && tp <= 64; tp++ {
			if fits(tp) {
				ok = append(ok, fmt.Sprint(tp))
			}
		}
		d := k.add("bad-parallelism", at("tp"), "choose one of "+strings.Join(ok, ", "), "%d devices cannot share the model's %s evenly", s.attention, what)
		k.shape(d)
	}
	if f.Layers > 0 && s.pp > f.Layers {
		k.shape(k.add("bad-parallelism", at("pp"), fmt.Sprintf("use at most %d", f.Layers), "%d stages, but the model has %d layers", s.pp, f.Layers))
	}
	k.experts(r, s)
}

// experts finds routed experts that cannot be spread.
func (k *checker) experts(r engine.Config, s spread) {
	f := k.s.Facts
	for _, name := range []string{"ep-size", "expert-parallel-size", "ep"} {
		ep := number(r, name)
		field := "flags." + name
		for set := range r.Flags {
			if engine.Flag(set) == name {
				field = "flags." + set
			}
		}
		switch {
		case ep <= 1:
		case s.tp%ep != 0:
			k.add("bad-parallelism", field, fmt.Sprintf("choose one that divides %d", s.tp), "%d groups of experts do not share the %d devices of tp evenly", ep, s.tp)
		case f.Experts > 0 && f.Experts%ep != 0:
			k.shape(k.add("bad-parallelism", field, fmt.Sprintf("choose one that divides %d", f.Experts), "%d groups cannot share the model's %d experts evenly", ep, f.Experts))
		}
	}
	if all := s.tp * s.dp; r.Engine == "vllm" && on(r, "enable-expert-parallel") && f.Experts > 0 && all > f.Experts {
		k.shape(k.add("bad-parallelism", "flags.enable-expert-parallel", "use fewer devices, or no expert parallelism", "%d devices for the model's %d experts", all, f.Experts))
	}
}

// shape adds where the numbers of the model are stated.
func (k *checker) shape(d *diag.Diagnostic) {
	prefix := "models." + k.s.Node.Model + ".facts."
	for _, field := range []string{"heads", "kvHeads", "layers", "experts"} {
		if pos, ok := k.s.Graph.Fields[prefix+field]; ok {
			d.Related = append(d.Related, diag.Related{Pos: pos, Msg: "stated here"})
			return
		}
	}
}

// tiers finds host memory below a device that holds more: what the device drops is what the memory has dropped already.
func (k *checker) tiers() {
	offload := size(k.c.KV.Offload)
	if offload == 0 || k.s.Facts == nil || !engine.IsForeign(k.c.Engine) {
		return
	}
	r, from, _ := k.c.Resolve()
	s, bits := spreadOf(r), kvBits(r)
	if r.KV.Tokens > 0 {
		above := k.s.Facts.KVBytes(r.KV.Tokens, bits, 1, 1) * int64(s.dp)
		if offload < above {
			field := "kv.tokens"
			if f := from[field]; f != "" {
				field = f
			}
			d := k.add("tier-order", "kv.offload", "raise it above that, or leave it out", "%s, but the devices above it keep %d tokens, %d MiB", k.c.KV.Offload, r.KV.Tokens, above>>20)
			if pos, ok := k.s.Node.Fields[field]; ok {
				d.Related = append(d.Related, diag.Related{Pos: pos, Msg: "said here"})
			}
		}
		return
	}
	dev := k.s.Graph.Devices[r.Device]
	if dev == nil || k.s.Facts.KVBytesPerToken(2) == 0 || k.s.Facts.WeightBytes() == 0 {
		return
	}
	facts := *k.s.Facts
	facts.KV = nil // what is left for them is the question
	n := foreign(k.c, facts)
	have := float64(dev.MemoryBytes)
	if n.DeviceShare > 0 {
		have *= n.DeviceShare
	}
	if left := (int64(have*0.95) - n.DeviceBytes) * int64(s.devices); offload < left {
		d := k.add("tier-order", "kv.offload", "raise it above that, or leave it out", "%s, but about %d GiB of keys and values fit on the %d devices above it", k.c.KV.Offload, left>>30, s.devices)
		d.Severity = diag.Warning
		d.Related = append(d.Related, diag.Related{Pos: dev.Pos, Msg: "what they have"})
	}
}
