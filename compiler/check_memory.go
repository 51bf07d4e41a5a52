package compiler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// A graph is refused for memory only where what it certainly takes is too much: estimates alone make a warning. Where a model is unknown
// the sums are too small, so that a finding is still true.

// sums are what is certain, and that with what is estimated.
type sums struct{ sure, all int64 }

func (a sums) plus(b sums, times int64) sums { return sums{a.sure + times*b.sure, a.all + times*b.all} }

// total adds up what a group takes at some places, one replica of it.
func total(n plan.Needs, at ...plan.Place) (t sums) {
	if len(n.Parts) == 0 { // a kind that gives sums only: they count as certain
		for _, p := range at {
			switch p {
			case plan.InMemory:
				t.sure += n.MemoryBytes
			case plan.OnDevice:
				t.sure += n.DeviceBytes
			case plan.OnDisk:
				t.sure += n.DiskBytes
			case plan.Shared:
				t.sure += n.SharedBytes
			}
		}
		t.all = t.sure
		return t
	}
	for _, p := range n.Parts {
		if slices.Contains(at, p.Place) {
			t.all += p.Bytes
			if !p.Guess {
				t.sure += p.Bytes
			}
		}
	}
	return t
}

// memoryFit compares main memory: all processes with this machine's where the graph is to run here, else each process with that of one
// machine as the graph says it.
func memoryFit(s *state) diag.List {
	if s.o.MemoryBytes > 0 {
		return s.localFit()
	}
	have := s.g.Machine.MemoryBytes
	if have == 0 {
		return nil
	}
	var list diag.List
	for _, g := range s.p.Groups {
		n := s.g.Nodes[g.Name]
		need := total(g.Needs, plan.InMemory, plan.Shared)
		if need.all <= have {
			continue
		}
		d := s.fit(g, need, have, fmt.Sprintf("of memory, a machine has %s", plan.Bytes(have)), plan.InMemory, plan.Shared)
		d.Related = s.said("machine.memory")
		list.Add(nodeIs(n, d))
	}
	return list
}

// localFit is about all processes of the graph on this machine.
func (s *state) localFit() diag.List {
	have, whose := s.o.MemoryBytes, "this machine has"
	if m := s.g.Machine.MemoryBytes; m > 0 && m < have {
		have, whose = m, "machine.memory is"
	}
	var need sums
	shared := map[string]sums{}
	var notes []string
	var biggest *plan.Group
	for _, g := range s.p.Groups {
		own := total(g.Needs, plan.InMemory)
		need = need.plus(own, int64(g.Replicas.Want))
		if biggest == nil || own.all*int64(g.Replicas.Want) > total(biggest.Needs, plan.InMemory).all*int64(biggest.Replicas.Want) {
			biggest = g
		}
		if own.all > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d × %s", g.Name, g.Replicas.Want, plan.Bytes(own.all)))
			if len(g.Needs.Parts) > 0 {
				notes[len(notes)-1] += ": " + strings.Join(partsText(g.Needs, plan.InMemory), ", ")
			}
		}
		for _, u := range g.Units {
			if t := total(s.needs[u.Node], plan.Shared); t.all > shared[u.Model].all {
				shared[u.Model] = t
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(shared)) {
		if shared[m].all > 0 {
			need = need.plus(shared[m], 1)
			notes = append(notes, fmt.Sprintf("weights of model %s, shared: %s", m, plan.Bytes(shared[m].all)))
		}
	}
	if need.all <= have {
		return nil
	}
	d := diag.Diagnostic{Code: "memory-fit", Notes: notes, Msg: fmt.Sprintf("the graph needs %s of memory, %s %s", plan.Bytes(need.all), whose, plan.Bytes(have)),
		Hint: "use fewer replicas, a smaller KV capacity or a shorter context; the largest part is here"}
	if need.sure <= have {
		d.Severity = diag.Warning
		d.Msg = fmt.Sprintf("the graph may need %s of memory, %s %s: %s of that is estimated", plan.Bytes(need.all), whose, plan.Bytes(have), plan.Bytes(need.all-need.sure))
	}
	rest := have - need.plus(total(biggest.Needs, plan.InMemory), -1).all // for one replica of the biggest, if the others stay
	if p := s.proposals(biggest, rest, plan.InMemory); len(p) > 0 {
		d.Hint = "set " + diag.Or(p) + ", or use fewer replicas; the largest part is here"
	}
	return diag.List{nodeIs(s.g.Nodes[biggest.Name], d)}
}

// deviceFit compares what one accelerator holds with what it has.
func deviceFit(s *state) diag.List {
	var list diag.List
	for _, g := range s.p.Groups {
		dev := s.device(g.Needs)
		if dev == nil || dev.MemoryBytes == 0 {
			continue
		}
		have, what := dev.MemoryBytes, fmt.Sprintf("on each %s, which has %s", dev.Name, plan.Bytes(dev.MemoryBytes))
		if share := g.Needs.DeviceShare; share > 0 && share < 1 {
			have = int64(float64(have) * share)
			what = fmt.Sprintf("on each %s, of whose %s the engine takes %s", dev.Name, plan.Bytes(dev.MemoryBytes), plan.Bytes(have))
		}
		need := total(g.Needs, plan.OnDevice)
		if need.all <= have {
			continue
		}
		d := s.fit(g, need, have, what, plan.OnDevice)
		d.Related = s.said("devices." + dev.Name + ".memory")
		list.Add(nodeIs(s.g.Nodes[g.Name], d))
	}
	return list
}

// device returns the class on which needs are computed: that which is named, or the only one. Nil where the graph does not say.
func (s *state) device(n plan.Needs) *graph.Device {
	if n.Devices == 0 {
		return nil
	}
	if n.DeviceClass != "" {
		return s.g.Devices[n.DeviceClass]
	}
	if len(s.g.Devices) == 1 {
		for _, d := range s.g.Devices {
			return d
		}
	}
	return nil
}

// deviceCount compares numbers: what talks in every layer wants one machine, and a graph that runs here has only this one.
func deviceCount(s *state) diag.List {
	var list diag.List
	taken := map[*graph.Device]int{}
	for _, g := range s.p.Groups {
		dev := s.device(g.Needs)
		if dev == nil {
			continue
		}
		n := s.g.Nodes[g.Name]
		if g.Needs.DeviceGroup > dev.Count {
			d := nodeIs(n, diag.Diagnostic{Code: "device-count", Severity: diag.Warning, Related: s.said("devices." + dev.Name + ".count"),
				Msg:  fmt.Sprintf("layers are spread over %d of %s, but a machine has %d: each token would cross the network in every layer", g.Needs.DeviceGroup, dev.Name, dev.Count),
				Hint: fmt.Sprintf("spread layers over %d at most, and the model over stages beyond that", dev.Count)})
			list.Add(d)
		}
		before := taken[dev]
		taken[dev] += g.Needs.Devices * g.Replicas.Want
		if s.o.MemoryBytes > 0 && before <= dev.Count && taken[dev] > dev.Count {
			list.Add(nodeIs(n, diag.Diagnostic{Code: "device-count", Related: s.said("devices." + dev.Name + ".count"),
				Msg:  fmt.Sprintf("with %d for each of %d replicas, %d of %s are taken, but this machine has %d", g.Needs.Devices, g.Replicas.Want, taken[dev], dev.Name, dev.Count),
				Hint: "use fewer replicas or devices a replica, or compile for a platform with several machines"}))
		}
	}
	return list
}

const diskHint = "raise machine.disk, or use fewer replicas, a smaller model or a smaller tier on disk"

// diskFit compares disk: all replicas with this machine's where the graph is to run here, else each with that of one machine.
func diskFit(s *state) diag.List {
	have := s.g.Machine.DiskBytes
	if have == 0 {
		return nil
	}
	var list diag.List
	var need sums
	cached := map[string]sums{}
	var biggest *plan.Group
	var notes []string
	for _, g := range s.p.Groups {
		kept := s.kept(g)
		own := total(g.Needs, append(kept, plan.OnDisk)...)
		if s.o.MemoryBytes == 0 {
			if own.all > have {
				d := s.fit(g, own, have, fmt.Sprintf("of disk, machine.disk is %s", plan.Bytes(have)), append(kept, plan.OnDisk)...)
				d.Code, d.Related, d.Hint = "disk-fit", s.said("machine.disk"), diskHint
				list.Add(nodeIs(s.g.Nodes[g.Name], d))
			}
			continue
		}
		if biggest == nil || own.all > total(biggest.Needs, append(s.kept(biggest), plan.OnDisk)...).all {
			biggest = g
		}
		own = total(g.Needs, plan.OnDisk)
		need = need.plus(own, int64(g.Replicas.Want))
		if own.all > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d × %s", g.Name, g.Replicas.Want, plan.Bytes(own.all)))
		}
		for _, u := range g.Units {
			if t := total(s.needs[u.Node], kept...); t.all > cached[u.Model].all {
				cached[u.Model] = t
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(cached)) {
		if cached[m].all > 0 {
			need = need.plus(cached[m], 1)
			notes = append(notes, fmt.Sprintf("model %s: %s", m, plan.Bytes(cached[m].all)))
		}
	}
	if need.all > have {
		d := diag.Diagnostic{Code: "disk-fit", Related: s.said("machine.disk"), Notes: notes,
			Msg:  fmt.Sprintf("the graph needs %s of disk, machine.disk is %s", plan.Bytes(need.all), plan.Bytes(have)),
			Hint: diskHint}
		if need.sure <= have {
			d.Severity = diag.Warning
		}
		list.Add(nodeIs(s.g.Nodes[biggest.Name], d))
	}
	return list
}

// kept are the places on disk that the replicas of a group share: without the model's files where they lie elsewhere anyway.
func (s *state) kept(g *plan.Group) []plan.Place {
	places := []plan.Place{plan.DiskCache}
	for _, u := range g.Units {
		if m := s.g.Models[u.Model]; m != nil && !slices.ContainsFunc(m.Sources, func(src string) bool { return strings.HasPrefix(src, "file:") }) {
			return append(places, plan.ModelFile)
		}
	}
	return places
}

// fit is a finding about one replica of g that needs more than there is.
func (s *state) fit(g *plan.Group, need sums, have int64, what string, at ...plan.Place) diag.Diagnostic {
	d := diag.Diagnostic{Code: "memory-fit", Notes: partsText(g.Needs, at...),
		Msg: fmt.Sprintf("one replica needs at least %s %s", plan.Bytes(need.sure), what)}
	if need.sure <= have {
		d.Severity = diag.Warning
		d.Msg = fmt.Sprintf("one replica may need %s %s: %s of that is estimated", plan.Bytes(need.all), what, plan.Bytes(need.all-need.sure))
	}
	d.Hint = "use a smaller model, or more or larger devices"
	if at[0] != plan.OnDevice {
		d.Hint = "use a smaller model or a larger machine"
	}
	if p := s.proposals(g, have, at...); len(p) > 0 {
		d.Hint = "set " + diag.Or(p)
	}
	return d
}

// nodeIs gives a finding the place of a node.
func nodeIs(n *graph.Node, d diag.Diagnostic) diag.Diagnostic {
	at := nodeAt(n, "", d.Code, d.Msg)
	d.Pos, d.Len, d.Path, d.Msg = at.Pos, at.Len, at.Path, at.Msg
	return d
}

// said is where the graph says a field, for what it is compared with.
func (s *state) said(field string) []diag.Related {
	if pos, ok := s.g.Fields[field]; ok {
		return []diag.Related{{Pos: pos, Msg: "said here"}}
	}
	return nil
}

// partsText lists parts at some places.
func partsText(n plan.Needs, at ...plan.Place) (out []string) {
	for _, p := range n.Parts {
		if slices.Contains(at, p.Place) {
			out = append(out, p.String())
		}
	}
	return out
}
