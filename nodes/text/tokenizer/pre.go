package tokenizer

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// preKind is how a family of models cuts text before merging.
type preKind struct {
	cuts  []cut
	words bool // a word that is a token is taken as it is
	bos   bool // a text begins with the BOS token where the file does not say
	nfc   bool
}

// Regular expressions that published models name, for which there is a scanner.
const (
	reGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	reFold   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	reTail   = `\s*[\r\n]+|\s+(?!\S)|\s+`
	reLlama3 = reFold + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + reTail
	reQwen2  = reFold + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + reTail
	reQwen35 = reFold + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` + reTail
	reUpper  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	reLower  = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	reO200k  = reUpper + `*` + reLower + `+` + reFold + `?|` + reUpper + `+` + reLower + `*` + reFold + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + reTail
	reTekken = reUpper + `*` + reLower + `+|` + reUpper + `+` + reLower + `*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + reTail
	reDigits = `\p{N}`
	reThree  = `\p{N}{1,3}`
	reCJK    = "[一-龥぀-ゟ゠-ヿ]+"
	reV3     = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// isolators do what these expressions do where each match is a piece, and what stands between is one too.
var isolators = map[string]func(string) int{
	reGPT2: scanGPT2, reLlama3: scanLlama3(3, letter), reQwen2: scanLlama3(1, letter), reQwen35: scanLlama3(1, letter|mark),
	reO200k: scanO200k(3, true), reTekken: scanO200k(1, false), reDigits: digits, reThree: digits3, reCJK: cjk, reV3: scanDeepSeek,
	strings.ReplaceAll(strings.ReplaceAll(reV3, "\r", `\r`), "\n", `\n`): scanDeepSeek,
}

// whole are the expressions of which some alternative matches anything: nothing stands between matches.
var whole = map[string]bool{reGPT2: true, reLlama3: true, reQwen2: true, reQwen35: true, reO200k: true, reTekken: true}

func scans(res ...string) []cut {
	var out []cut
	for _, re := range res {
		if f, ok := isolators[re]; ok {
			out = append(out, cut{scan: f})
			continue
		}
		x, err := rxCompile(re)
		if err != nil {
			panic(err) // those are ours
		}
		out = append(out, cut{pattern: &pattern{rx: x}})
	}
	return out
}

var (
	preDigits = preKind{cuts: scans(reDigits, reGPT2)}
	preLlama3 = preKind{cuts: scans(reLlama3), words: true, bos: true}
	preQwen2  = preKind{cuts: scans(reQwen2), nfc: true}
	preO200k  = preKind{cuts: scans(reO200k), words: true}
)

// pres are the values of tokenizer.ggml.pre.
var pres = map[string]preKind{
	"gpt-2": {cuts: scans(reGPT2)}, "smollm": preDigits, "starcoder": preDigits, "refact": preDigits, "command-r": preDigits,
	"llama-bpe": preLlama3, "llama3": preLlama3, "llama-v3": preLlama3,
	"qwen2": preQwen2, "deepseek-r1-qwen": preQwen2, "qwen35": {cuts: scans(reQwen35), nfc: true},
	"deepseek-v3":    {cuts: scans(reThree, reCJK, reV3)},
	"deepseek-coder": {cuts: scans("[\r\n]", `\s?\p{L}+`, `\s?\p{P}+`, "[一-龥ࠀ-一가-퟿]+", reDigits)},
	"tekken":         {cuts: scans(reTekken), words: true}, "gpt-4o": preO200k, "llama4": preO200k,
}

func preNames() string { return strings.Join(slices.Sorted(maps.Keys(pres)), ", ") }

var nfc = normalizer{apply: form(norm.NFC)}
