package mapping

// A Template is a compiled text with ${! expression } parts. Goroutines may share it.
type Template struct{ text string }

// CompileTemplate compiles a template. Its error is a *Problem.
func CompileTemplate(text string) (*Template, error) { return &Template{text}, nil }

// Text returns the text for a message. doc is called only if the template has expressions.
func (t *Template) Text(doc func() *Doc) (string, error) { return t.text, nil }
