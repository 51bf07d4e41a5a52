package plan

import (
	"fmt"
	"strings"
)

// Needs is what one replica takes. The sums are those of Parts where there are any.
type Needs struct {
	MemoryBytes int64 `json:"memoryBytes,omitempty"` // resident, beyond what is shared read-only
	SharedBytes int64 `json:"sharedBytes,omitempty"` // mapped weights, shared by the replicas of one machine
	DiskBytes   int64 `json:"diskBytes,omitempty"`
	Threads     int   `json:"threads,omitempty"`

	Devices     int    `json:"devices,omitempty"`     // accelerators that one replica takes
	DeviceClass string `json:"deviceClass,omitempty"` // key of the graph's devices; "" for any
	DeviceBytes int64  `json:"deviceBytes,omitempty"` // of each: weights, KV, activations
	// DeviceGroup is how many of Devices talk to each other in every layer and so want one machine; 0: no matter.
	DeviceGroup int `json:"deviceGroup,omitempty"`
	// DeviceShare is the part of a device's memory that the engine takes, at most, 0 to 1; 0: all.
	DeviceShare float64 `json:"deviceShare,omitempty"`

	// Parts is what the sums are made of, in the order in which it is worth telling.
	Parts []Part `json:"parts,omitempty"`
}

// Part is one part of what a replica takes.
type Part struct {
	Name  string `json:"name"`           // "weights", "KV cache"
	Place Place  `json:"place"`          // where
	Node  string `json:"node,omitempty"` // of a group's needs: which of its nodes takes it
	Bytes int64  `json:"bytes"`          // of one device where Place is OnDevice
	// Guess says that it is an estimate. What is no guess is certainly taken, so that a graph is only refused for that.
	Guess bool `json:"guess,omitempty"`
	// A part may be many of one unit: Each bytes for every Unit ("token"), as many as the config's Field says.
	Each  int64  `json:"each,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Field string `json:"field,omitempty"`
	// Keeps says that it is room for the keys and values of sequences: a tier, of which the last part of a node is the lowest.
	Keeps bool `json:"keeps,omitempty"`
	// Spread is the config field that says over how many devices the part is spread ("tp"); "" where it is on each in full.
	Spread string `json:"spread,omitempty"`
}

// Place is where a part lies.
type Place string

// The places.
const (
	InMemory  Place = "memory" // of the process
	Shared    Place = "shared" // memory that all replicas of a model on one machine map
	OnDevice  Place = "device" // each of the replica's accelerators
	OnDisk    Place = "disk"   // of the replica
	DiskCache Place = "cached" // disk that all replicas of a model on one machine use
	ModelFile Place = "model"  // the model's own files, on disk unless a file: source has them where they are
)

// Add adds parts and their sums. Parts of no bytes are left out.
func (n *Needs) Add(parts ...Part) {
	for _, p := range parts {
		if p.Bytes <= 0 {
			continue
		}
		n.Parts = append(n.Parts, p)
		switch p.Place {
		case InMemory:
			n.MemoryBytes += p.Bytes
		case Shared:
			n.SharedBytes += p.Bytes
		case OnDevice:
			n.DeviceBytes += p.Bytes
		case OnDisk, DiskCache, ModelFile:
			n.DiskBytes += p.Bytes
		}
	}
}

// String is the part for people: "KV cache 4.00 GiB (32768 tokens of 128.00 KiB)".
func (p Part) String() string {
	var more []string
	if p.Each > 0 {
		more = append(more, fmt.Sprintf("%d %ss of %s", p.Bytes/p.Each, p.Unit, Bytes(p.Each)))
	}
	if p.Guess {
		more = append(more, "estimate")
	}
	text := p.Name + " " + Bytes(p.Bytes)
	if len(more) > 0 {
		text += " (" + strings.Join(more, "; ") + ")"
	}
	return text
}

// Bytes writes a number of bytes for people: with a binary unit and two digits behind the point.
func Bytes(n int64) string {
	const units = "KMGT"
	f, u := float64(n)/1024, 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	return fmt.Sprintf("%.2f %ciB", f, units[u])
}
