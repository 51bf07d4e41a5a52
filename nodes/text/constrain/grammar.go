package constrain

// Grammar is a context-free grammar over bytes: what front ends (JSON Schema, regular expressions, EBNF, structural tags) make. Rule 0 is the
// start.
type Grammar struct{ Rules []Rule }

// Rule is a named expression.
type Rule struct {
	Name string // for messages
	Body Node
	Warm bool // it is large and much used: masks behind its first bytes are made beforehand
}

// Node is an expression; nil is the empty string.
type Node interface{ node() }

type (
	// Text is a text as it stands.
	Text string
	// Mark is a text as it stands that a special token may spell, too.
	Mark string
	// Class is one rune of, or outside of, ranges.
	Class struct {
		Ranges []Range
		Not    bool
	}
	// Seq is one after the other.
	Seq []Node
	// Alt is one of them; an empty one matches nothing at all.
	Alt []Node
	// Repeat is Node Min to Max times; Max < 0 is without end.
	Repeat struct {
		Node     Node
		Min, Max int
	}
	// Ref is the rule of that index.
	Ref int
	// Free is any bytes (special tokens, too) up to the first of Stops that occurs, and it, and then what Then has for it; a nil entry of Then is
	// the empty string, and a Dead one forbids the stop. MayEnd says that the text may end without a stop.
	Free struct {
		Stops  []string
		Then   []Node
		MayEnd bool
	}
	// Dead matches nothing.
	Dead struct{}
)

// Range is the runes From to To.
type Range struct{ From, To rune }

func (Text) node()   {}
func (Mark) node()   {}
func (Class) node()  {}
func (Seq) node()    {}
func (Alt) node()    {}
func (Repeat) node() {}
func (Ref) node()    {}
func (Free) node()   {}
func (Dead) node()   {}

// Optional is n or nothing.
func Optional(n Node) Node { return Repeat{Node: n, Max: 1} }

// Add appends a rule and returns its reference. A body may be set later, for rules that refer to themselves.
func (g *Grammar) Add(name string, body Node) Ref {
	g.Rules = append(g.Rules, Rule{Name: name, Body: body})
	return Ref(len(g.Rules) - 1)
}
