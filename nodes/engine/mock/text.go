package mock

import "github.com/dynamograph/dynamo/graph/flow/llm"

// mix is SplitMix64's finaliser: a good hash of one word.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// answer is what a prompt is answered with: a function of position.
type answer struct {
	key        uint64
	vocabulary uint32
	bytes      bool
	script     []uint32 // nil: seeded
	length     int      // tokens before the end; at least 1
}

// answer finds the answer to a prompt. It depends on nothing but the engine's seed and script, the prompt and the request's seed.
func (e *Engine) answer(prompt []uint32, s llm.Sampling) answer {
	k := mix(e.seed)
	turns := 0
	for _, t := range prompt {
		k = mix(k ^ uint64(t))
		if t == EndTurn {
			turns++
		}
	}
	if s.Temperature > 0 {
		k = mix(k ^ s.Seed)
	}
	a := answer{key: k, vocabulary: uint32(e.info.Vocabulary), bytes: e.info.Vocabulary == Vocabulary}
	if n := len(e.script); n > 0 {
		// A chat holds one ended turn a message, of which every second is the user's: the n-th question gets the n-th answer.
		a.script = e.script[max(turns-1, 0)/2%n]
		a.length = max(len(a.script), 1)
		return a
	}
	a.length = 24 + int(k%64)
	return a
}

const wordLength = 6 // five letters and a blank

// token is the token at position n, before the end is considered.
func (a answer) token(n int) uint32 {
	if len(a.script) > 0 {
		return a.script[n%len(a.script)]
	}
	if !a.bytes {
		return uint32(mix(a.key^uint64(n)) % uint64(a.vocabulary))
	}
	if n%wordLength == wordLength-1 {
		return ' '
	}
	const vowels, consonants = "aeiou", "bdfgklmnprstvz"
	h := mix(a.key ^ uint64(n))
	if n%wordLength%2 == 1 {
		return uint32(vowels[h%uint64(len(vowels))])
	}
	return uint32(consonants[h%uint64(len(consonants))])
}

// ends reports whether the answer is over before position n.
func (a answer) ends(n int) bool { return n >= a.length || a.script != nil && len(a.script) == 0 }

// logprob invents what a model would say of the token at position n.
func (a answer) logprob(n, top int) llm.Logprob {
	l := llm.Logprob{Token: a.token(n), Logprob: -float32(mix(a.key^uint64(n)^1)%1000) / 2000}
	for i := range top {
		t := llm.TopLogprob{Token: (l.Token + uint32(i)) % a.vocabulary, Logprob: l.Logprob - float32(i)}
		l.Top = append(l.Top, t)
	}
	return l
}
