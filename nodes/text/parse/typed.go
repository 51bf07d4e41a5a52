package parse

// object is what a function's parameters say of its values.
type object struct{}

func typed() map[string]*toolFormat { return map[string]*toolFormat{} }
