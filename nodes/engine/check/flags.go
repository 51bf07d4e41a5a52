package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/table"
)

// flags finds flags that the release does not know, and values that they do not take.
func (k *checker) flags() {
	if k.unchecked() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Flags)) {
		if strings.HasPrefix(name, "-") {
			continue // found elsewhere: names are written without
		}
		value, base, part := k.c.Flags[name], name, ""
		if k.c.Engine == "vllm" { // parts of a JSON value have flags of their own
			base, part, _ = strings.Cut(name, ".")
		}
		f, off, ok := k.release.Flag(base)
		if !ok || part != "" && f.Type != table.JSON && f.Type != table.Any {
			k.unknown(name, base)
			continue
		}
		if part == "" {
			k.value(name, f, off, value)
		}
	}
	k.needs()
}

// unknown reports a flag that the release does not have.
func (k *checker) unknown(name, base string) {
	var hint string
	switch have := k.engine.With("", base); {
	case len(have) > 0:
		hint = since(k.engine, have)
	case k.other(base) != "":
		hint = fmt.Sprintf("it is a flag of %s", k.other(base))
	default:
		hint = diag.Suggest(table.Bare(base), k.release.Flags())
	}
	if hint == "" {
		hint = "remove it; `" + map[string]string{"vllm": "vllm serve", "sglang": "sglang serve", "llamacpp": "llama-server"}[k.c.Engine] + " --help` lists its flags"
	}
	d := k.add(k.severity(), "unknown-flag", "flags."+name, hint, "%s", k.lacks("flag %q", name))
	d.Related = k.node("version", "the version is %s", k.c.Version)
}

// other names another engine that has the flag.
func (k *checker) other(flag string) string {
	for _, name := range engine.Foreign() {
		if e := table.Find(name); e != nil && name != k.c.Engine && len(e.With("", flag)) > 0 {
			return titles[name]
		}
	}
	return ""
}

// number is what the engines' parsers take for a number, with the suffixes and words that some flags allow.
var number = regexp.MustCompile(`^(-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?[kKmMgGtT]?|auto|None|)$`)

// value reports a value that the flag does not take.
func (k *checker) value(name string, f table.Flag, off bool, v any) {
	field := "flags." + name
	bad := func(hint, format string, args ...any) {
		d := k.add(k.severity(), "bad-flag", field, hint, format, args...)
		d.Related = k.node("version", "the version is %s", k.c.Version)
	}
	text, isText := v.(string)
	on, isBool := v.(bool)
	if !k.known { // releases differ in types and values: wrong is what none takes
		if len(f.Choices) > 0 && f.Type != table.List && k.taking(f.Name, shownPlain(v)) == "" {
			bad(diag.Suggest(shownPlain(v), f.Choices), "%s is not one of %s", shown(v), shorten(f.Choices))
		}
		return
	}
	if s := k.share(f.Name, v); s != "" {
		bad(s, "%s is a share of the device's memory, above 0 and at most 1; found %s", name, shown(v))
		return
	}
	switch {
	case f.Type == table.Switch && !isBool:
		bad("write true or false, without quotes", "%s is a switch and takes no value; found %s", name, shown(v))
	case f.Type == table.Switch && !on && !f.Negated && !off:
		// A switch that is off is not given: right, and without effect.
	case (f.Type == table.Int || f.Type == table.Float) && isBool, (f.Type == table.Int || f.Type == table.Float) && isText && !number.MatchString(text):
		bad("write a number", "%s takes a number; found %s", name, shown(v))
	case f.Type == table.Int && !isText && shown(v) != strconv.FormatFloat(float(v), 'f', 0, 64):
		bad("write a whole number", "%s takes a whole number; found %s", name, shown(v))
	case f.Type == table.JSON && name != "kv-transfer-config" && !isJSON(v):
		bad(`write JSON in a string: "{\"key\": \"value\"}"`, "%s takes JSON; found %s", name, shown(v))
	case len(f.Choices) > 0 && !slices.Contains(f.Choices, shownPlain(v)) && f.Type != table.List:
		hint := diag.Suggest(shownPlain(v), f.Choices)
		if isBool {
			hint = "write the word in quotes"
		}
		if hint == "" {
			hint = k.taking(f.Name, shownPlain(v))
		}
		bad(hint, "%s is not one of %s", shown(v), shorten(f.Choices))
	}
}

// share returns a hint where a flag that takes a share of the memory has something else, or "".
func (k *checker) share(flag string, v any) string {
	if shares := map[string]string{"vllm": "gpu-memory-utilization", "sglang": "mem-fraction-static"}; shares[k.c.Engine] != flag {
		return ""
	}
	f, err := strconv.ParseFloat(shownPlain(v), 64)
	switch {
	case err != nil || f > 0 && f <= 1:
		return ""
	case f > 1 && f <= 100:
		return fmt.Sprintf("did you mean %v?", f/100)
	}
	return "write a number as 0.9"
}

// taking says which releases take the value, as a choice or because they do not say what they take.
func (k *checker) taking(flag, value string) string {
	var have []string
	for _, r := range k.engine.Releases {
		if f, _, ok := r.Flag(flag); ok && (slices.Contains(f.Choices, value) || len(f.Choices) == 0) {
			have = append(have, r.Version)
		}
	}
	return since(k.engine, have)
}

func float(v any) float64 {
	f, _ := v.(float64)
	return f
}

// shown is a value as a message shows it.
func shown(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return shownPlain(v)
}

// shownPlain is a value as the engine gets it.
func shownPlain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// suffixed are numbers with a suffix, which vLLM takes inside of JSON.
var suffixed = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?[kKmMgGtT]\b`)

func isJSON(v any) bool {
	s, ok := v.(string)
	return ok && (json.Valid([]byte(s)) || json.Valid([]byte(suffixed.ReplaceAllString(s, "0"))))
}

// shorten lists names, the first of them where they are many.
func shorten(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// flag returns the value of a flag by its full name, however the author writes it, and how that is.
func (k *checker) flag(full string) (value any, written string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(k.c.Flags)) {
		bare := table.Bare(name)
		if bare == full {
			return k.c.Flags[name], name, true
		}
		if k.engine == nil || k.unchecked() {
			continue
		}
		if f, off, known := k.release.Flag(name); known && !off && f.Name == full {
			return k.c.Flags[name], name, true
		}
	}
	return nil, "", false
}

// needed are flags that an engine refuses without another.
var needed = map[string][][2]string{
	"vllm": {{"enable-auto-tool-choice", "tool-call-parser"}, {"enable-log-outputs", "enable-log-requests"}},
}

// needs finds flags without another that they need.
func (k *checker) needs() {
	for _, n := range needed[k.c.Engine] {
		v, name, ok := k.flag(n[0])
		if on, _ := v.(bool); !ok || !on {
			continue
		}
		if _, _, ok := k.release.Flag(n[1]); !ok {
			continue
		}
		if _, _, ok := k.flag(n[1]); !ok {
			k.add(k.severity(), "bad-flag", "flags."+name, fmt.Sprintf("add %q, or remove it", n[1]), "%s does not start with it and without %q", k.title, n[1])
		}
	}
}
