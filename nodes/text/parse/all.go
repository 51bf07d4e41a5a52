package parse

// Message is what a whole output said.
type Message struct {
	Content, Reasoning string
	Calls              []Call
}

// Call is one call of a tool.
type Call struct {
	ID, Name  string
	Arguments string // JSON, but where the model made a mistake
	Whole     bool   // the output did not end in the midst of them
}

// All reads a whole output. cut says that it ended by length. The result is what a stream of it says, however it was split.
func All(o Options, text string, cut bool) (Message, error) {
	p, err := New(o)
	if err != nil {
		return Message{}, err
	}
	var m Message
	m.add(p.Feed(text))
	m.add(p.Finish(cut))
	return m, nil
}

func (m *Message) add(events []Event) {
	for _, e := range events {
		switch e.Kind {
		case Content:
			m.Content += e.Text
		case Reasoning:
			m.Reasoning += e.Text
		case CallBegin:
			m.Calls = append(m.Calls, Call{ID: e.ID, Name: e.Name})
		case CallArguments:
			m.Calls[e.Call].Arguments += e.Text
		case CallEnd:
			m.Calls[e.Call].Whole = true
		}
	}
}
