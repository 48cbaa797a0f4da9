package site

import (
	"errors"
	"maps"
	"strings"

	"github.com/valyala/fasthttp"
)

// A form is what a visitor fills in, with what was wrong the last time.
type form struct {
	Message  string   // why it was not accepted; "" for none
	Problems []string // that belong to none of the fields
	Fields   map[string]*field
	Order    []*field
}

// A field is one input.
type field struct {
	Name, Label, Value string
	Type               string // of the input; "area" for text of several lines
	Hint, Error        string
	Complete           string // autocomplete
	Required           bool
	Member             string // of the REST's body, in its problems; "": the name
}

// newForm returns a form of fields.
func newForm(fields ...*field) *form {
	f := &form{Fields: make(map[string]*field), Order: fields}
	for _, one := range fields {
		if one.Type == "" {
			one.Type = "text"
		}
		if one.Member == "" {
			one.Member = one.Name
		}
		f.Fields[one.Name] = one
	}
	return f
}

// take fills in what the visitor sent. Passwords are not sent back.
func (f *form) take(v *visit) {
	for _, one := range f.Order {
		if one.Type != "password" {
			one.Value = v.value(one.Name)
		}
	}
}

// filled reports whether a field has a value that it needs, and marks it if not.
func (f *form) filled(one *field) bool {
	if one.Value != "" || !one.Required {
		return true
	}
	one.Error, f.Message = "Please fill this in.", "Please fill in what is marked."
	return false
}

// refused puts the problems of a refusal beside their fields. Errors that the visitor
// cannot do anything about are returned.
func (f *form) refused(err error) (status int, rest error) {
	why, ok := errors.AsType[*fault](err)
	if !ok || why.Status >= 500 && why.Status != fasthttp.StatusServiceUnavailable {
		return 0, err
	}
	if why.Status == fasthttp.StatusUnauthorized && why.Message == "Not authorised" {
		return 0, err
	}
	f.Message = why.Message
	problems := why.Problems
	if len(problems) == 0 {
		if _, one, found := strings.Cut(why.Message, "Validation failed: "); found {
			problems = []string{one}
		}
	}
	for _, problem := range problems {
		member, message, found := strings.Cut(problem, ": ")
		if at := f.byMember(member); found && at != nil && at.Error == "" {
			at.Error = message
			continue
		}
		f.Problems = append(f.Problems, problem)
	}
	if len(problems) > 0 {
		f.Message = "Please correct what is marked."
		if len(f.Problems) == len(problems) {
			f.Message = "That was not accepted:"
		}
	}
	return why.Status, nil
}

func (f *form) byMember(member string) *field {
	for one := range maps.Values(f.Fields) {
		if one.Member == member {
			return one
		}
	}
	return nil
}
