package jinja

// macroDef is a compiled macro.
type macroDef struct {
	name     string
	params   []string
	slots    []int // of the parameters
	defaults []func(*state, *frame) Value
	begin    func(*state, *frame)
	body     func(*state, *frame) ctrl
	fn       *fn
	caller   int // slot of the special variable, or -1; likewise the next two
	kwargs   int
	varargs  int
	explicit bool // caller is a parameter
}

type macro struct {
	def   *macroDef
	frame *frame // where it was made
}

func (m *macro) attribute(name string) (Value, bool) {
	switch name {
	case "name":
		if m.def.name == "" {
			return nil, true
		}
		return m.def.name, true
	case "arguments":
		t := &tuple{}
		for _, p := range m.def.params {
			t.items = append(t.items, p)
		}
		return t, true
	case "catch_kwargs":
		return m.def.kwargs >= 0, true
	case "catch_varargs":
		return m.def.varargs >= 0, true
	case "caller":
		return m.def.caller >= 0, true
	}
	return nil, false
}

func (st *state) callMacro(m *macro, a args) Value {
	d := m.def
	f := newFrame(d.fn.slots, m.frame)
	st.alloc(valueSize * d.fn.slots)
	used := make([]bool, len(a.names))
	take := func(name string) (Value, bool) {
		for i, n := range a.names {
			if n == name && !used[i] {
				used[i] = true
				return a.vals[i], true
			}
		}
		return nil, false
	}
	found := false
	n := min(len(a.pos), len(d.params))
	for i := range n {
		f.vars[d.slots[i]] = a.pos[i]
	}
	for i := n; i < len(d.params); i++ {
		if v, ok := take(d.params[i]); ok {
			f.vars[d.slots[i]] = v
		}
		found = found || d.params[i] == "caller"
	}
	if n == len(d.params) {
		found = d.explicit
	}
	if d.caller >= 0 && !found {
		v, ok := take("caller")
		if !ok || v == nil {
			v = &undefined{hint: "No caller defined", name: "caller"}
		}
		f.vars[d.caller] = v
	}
	if d.kwargs >= 0 {
		kw := NewDict(0)
		for i, name := range a.names {
			if !used[i] {
				kw.put(name, a.vals[i])
			}
		}
		f.vars[d.kwargs] = kw
	} else {
		for i, name := range a.names {
			if !used[i] {
				if name == "caller" {
					typeError("macro %s was invoked with two values for the special caller argument. This is most likely a bug.", repr(nil, d.label()))
				}
				typeError("macro %s takes no keyword argument %s", repr(nil, d.label()), quote(name))
			}
		}
	}
	if d.varargs >= 0 {
		f.vars[d.varargs] = &tuple{items: append([]Value(nil), a.pos[n:]...)}
	} else if len(a.pos) > len(d.params) {
		typeError("macro %s takes not more than %d argument(s)", repr(nil, d.label()), len(d.params))
	}
	st.enter()
	line := st.line
	d.begin(st, f)
	for i, name := range d.params {
		if f.vars[d.slots[i]] != missing {
			continue
		}
		if k := i - (len(d.params) - len(d.defaults)); k >= 0 {
			f.vars[d.slots[i]] = d.defaults[k](st, f)
		} else {
			f.vars[d.slots[i]] = &undefined{hint: "parameter '" + name + "' was not provided", name: name}
		}
	}
	s := st.capture(func() { d.body(st, f) })
	st.line = line
	st.calls--
	return s
}

func (d *macroDef) label() Value {
	if d.name == "" {
		return nil
	}
	return d.name
}
