package diag

// Code explains one code: what it means and what to do about it.
type Code struct {
	Meaning string // one line, no full stop
	Do      string // one or two sentences
}

// Codes is the catalogue of every code that a finding may carry, for `dynamo explain CODE`. Whoever emits a code adds it here; it is not
// changed at run time.
var Codes = map[string]Code{
	// specs/load
	"syntax": {"the file cannot be parsed",
		"Correct the file at the place shown; nothing else was checked yet."},
	"unknown-field": {"a field that the schema does not have",
		"Correct its name or remove it; the finding lists the fields that exist at that place."},
	"missing-field": {"a field that must be set is not",
		"Set the field; if its value comes from a tag, pass the tag."},
	"bad-value": {"a value outside of what the field takes",
		"Use a value that the finding lists or describes."},
	"bad-type": {"a value of another type than the field takes",
		"Write the value as the type that the finding names; numbers have no quotes, durations and sizes do."},
	"conflict": {"two places set one field to different values",
		"Keep one of them. To leave a value open for another file, write it as a default: `int | *2`."},
	"unknown-kind": {"a node of a kind that is not known",
		"Correct the kind; the finding lists those that this build has."},
	"unknown-definition": {"a reference to a definition that the package does not have",
		"Correct its name; definitions of package spec begin with #."},
	"unknown-reference": {"a name that is defined nowhere in the file",
		"Correct the name, quote it if it is meant as text, or import the package that it comes from."},
	"unknown-import": {"an import that cannot be resolved",
		"The schema is imported as \"dynamo.graph/spec\". Other packages must be in the module of the spec."},
	"unknown-node": {"an edge or a setting that names a node which the graph does not have",
		"Correct the name or add the node."},
	"unknown-model": {"a node that names a model which the graph does not have",
		"Correct the name or add the model under `models`."},
	"bad-edge": {"an edge that is not written as \"node.port -> node.port\"",
		"Write the edge as \"from -> to\" or \"from.port -> to.port\", with one space on each side of the arrow."},
	"bad-name": {"a name that is not a DNS label",
		"Use at most 63 lower-case letters, digits and hyphens, the first a letter, the last not a hyphen."},
	"bad-duration": {"a duration without a unit or with one that is not known",
		"Write a number with a unit: \"250ms\", \"2s\", \"1m30s\"."},
	"bad-size": {"a size without a binary suffix",
		"Write a whole number of bytes with a suffix: \"512Mi\", \"256Gi\", \"4Ti\"."},
	"unknown-tag": {"a -t key that the spec does not declare",
		"Use one of the tags that the finding lists; a spec declares a tag with @tag(name)."},
	"bad-tag": {"a -t argument that is not key=value, or a value that does not fit the tag's type",
		"Write -t key=value; the tag's type is written in the spec: @tag(name,type=int)."},
	"incomplete": {"a value that is not concrete when the graph is read",
		"Give the value, or give it a default: `int | *2`."},
	"no-graph": {"a file that does not contain a graph",
		"Write `spec.#Graph & {name: …, nodes: …, edges: …}` at the top level of the file."},
	"too-large": {"a spec beyond 1 MiB",
		"Split the spec into several graphs, or move data such as scripts out of it."},
	"too-slow": {"a spec whose evaluation took too long",
		"Look for comprehensions and disjunctions that multiply; a graph of a thousand nodes takes about two seconds."},
	"unsupported-file": {"a file that is neither CUE, YAML nor JSON",
		"Name the file .cue, .yaml, .yml or .json."},
	"unsupported-cue": {"a CUE feature that a spec may not use",
		"Write the value out; a spec is data."},
	"internal": {"a fault of dynamo itself",
		"Please report it with the spec that shows it."},
}
