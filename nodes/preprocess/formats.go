package preprocess

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine/table"
	"github.com/dynamograph/dynamo/nodes/text/family"
	"github.com/dynamograph/dynamo/nodes/text/parse"
)

// speaks finds how a model writes tool calls and reasoning: as the graph says, else as its family does; general is what its file calls it.
func (m *served) speaks(of *kind.Model, general string) (err error) {
	card, known := cardOf(of, general)
	if m.tools, err = pick(table.Tools, of.Tools, card.Tools, toolFormats()); err != nil {
		return fmt.Errorf("models.%s.tools: %w", of.Name, err)
	}
	if m.reasoning, err = pick(table.Reasoning, of.Reasoning, card.Reasoning, parse.ReasoningFormats()); err != nil {
		return fmt.Errorf("models.%s.reasoning: %w", of.Name, err)
	}
	m.key, m.think, m.ids = of.Name, card.Thinking, card.CallIDs
	if !known {
		m.think = switchOf(m.source)
	}
	m.showsTools = reads(m.source, "tools")
	m.ends = m.special(card.Stop, func(stop, piece string) bool { return stop == piece })
	for _, id := range m.tok.EOS() {
		if !slices.Contains(m.ends, id) {
			m.ends = append(m.ends, id)
		}
	}
	m.keepThought = m.special(parse.Markers("", m.reasoning), strings.Contains)
	m.keepAll = m.special(parse.Markers(m.tools, m.reasoning), strings.Contains)
	return nil
}

// cardOf finds a model's family: the author's word counts, then the model's own name, then its file's.
func cardOf(m *kind.Model, general string) (family.Card, bool) {
	var own family.Card
	known := false
	for _, name := range []string{general, m.Facts.Name, filepath.Base(m.Path)} {
		if own, known = family.Named(name); known {
			break
		}
	}
	if m.Family == "" {
		return own, known
	}
	cards := family.Stated(m.Family)
	for _, c := range cards { // the word may mean several
		if known && c.Name == own.Name {
			return c, true
		}
	}
	if len(cards) == 0 {
		return family.Card{}, false
	}
	return cards[0], true
}

// pick is the format by our name: the author's, else the first of the family's that there is a parser for; "" for none.
func pick(k table.Kind, stated string, familys, have []string) (string, error) {
	if stated != "" {
		name, known := table.Format(k, stated)
		if !known {
			name = stated
		}
		if !slices.Contains(have, name) {
			return "", fmt.Errorf("%q is not read out of answers; there are: %s", stated, strings.Join(have, ", "))
		}
		return name, nil
	}
	for _, name := range familys {
		if slices.Contains(have, name) {
			return name, nil
		}
	}
	return "", nil
}

// special are the special tokens whose text fits one of texts, sorted.
func (m *served) special(texts []string, fits func(text, piece string) bool) (ids []uint32) {
	if len(texts) == 0 {
		return nil
	}
	for id := range uint32(m.tok.Size()) {
		piece := m.tok.Piece(id)
		if m.tok.IsSpecial(id) && piece != "" && slices.ContainsFunc(texts, func(t string) bool { return fits(t, piece) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// parses is kind.Kind's.
func parses(what, format string) bool {
	k, have := table.Tools, toolFormats()
	if what == "reasoning" {
		k, have = table.Reasoning, parse.ReasoningFormats()
	}
	_, err := pick(k, format, nil, have)
	return err == nil
}

// toolFormats are those that a model may be said to write: "json" is what a constraint makes any model write.
func toolFormats() []string {
	return slices.DeleteFunc(parse.ToolFormats(), func(f string) bool { return f == anyFormat })
}
