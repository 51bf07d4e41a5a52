package parse

// ReasoningMarks are what begins and ends the thoughts of a format, as templates write them. Where its thoughts are one of several channels,
// open is "" and close is what begins the answer. Both are "" for a format without thoughts of its own.
func ReasoningMarks(reasoning string) (open, close string) {
	r := reasons()[reasoning]
	switch {
	case r == nil || r.keep:
		return "", ""
	case r.whole != nil:
		return "", r.answer
	case len(r.open) == 0 || len(r.close) == 0:
		return "", ""
	}
	return r.open[0], r.close[0]
}
