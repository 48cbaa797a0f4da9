package reference

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Member is one member of an object.
type Member struct {
	Path    string          `json:"path"`           // dotted; [] is any element of a list, {} any value by name
	Type    string          `json:"type"`           // in JSON: string, integer, list of strings, ...
	Unit    string          `json:"unit,omitempty"` // of a number: seconds, Unix seconds, bytes or percent
	Default string          `json:"default"`        // as text
	Bounds  *Bounds         `json:"bounds,omitempty"`
	Items   *Bounds         `json:"items,omitempty"`   // of each number in a list
	Allowed []string        `json:"allowed,omitempty"` // values, or what values are built of
	Since   string          `json:"since"`             // version
	Text    string          `json:"description"`
	Example json.RawMessage `json:"example"`

	field   reflect.StructField
	name    string // in JSON
	literal any    // default as a value; nil: the default is no constant
	zero    bool   // the zero value is as good as none
	short   bool   // the object that the member is of may be written as its text alone
}

// Name is the name in JSON.
func (m *Member) Name() string { return m.name }

// Short reports whether the object that the member is of may be written as its text alone.
func (m *Member) Short() bool { return m.short }

// Constant is the default as a value, or nil where it is no constant.
func (m *Member) Constant() any { return m.literal }

// Bounds are of the value of a number, of the bytes of a text, or of how many entries a list
// or an object has.
type Bounds struct {
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	Above bool     `json:"above,omitempty"` // Least itself is not allowed
}

// FirstRelease is the value of Since of members that were there from the beginning.
const FirstRelease = "first release"

// member describes a field, without the path.
func (c *Comments) member(of reflect.Type, f reflect.StructField, name string) Member {
	said := c.of(of, f.Name)
	inner := bare(f.Type)
	m := Member{
		field: f, name: name, Text: said.text, Example: json.RawMessage(said.example), Type: typeName(inner, true),
		Allowed: strings.Fields(f.Tag.Get("oneof")), Since: said.since,
		zero: strings.Contains(f.Tag.Get("json"), ",omit"), short: f.Tag.Get("object") == "short",
	}
	if m.Since == "" {
		m.Since = FirstRelease
	}
	m.setDefault(inner)
	m.setBounds(inner)
	if isNumber(inner) || inner.Kind() == reflect.Slice && isNumber(inner.Elem()) {
		m.Unit = unitOf(m.Text)
	}
	if inner.Kind() == reflect.Bool && said.example == "" {
		m.Example = json.RawMessage(strconv.FormatBool(m.literal != true && !strings.Contains(m.Text, "must be false")))
	}
	return m
}

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var rawType = reflect.TypeFor[json.RawMessage]()

// typeName returns the name of a type in JSON, of one value or of several.
func typeName(t reflect.Type, one bool) string {
	t = bare(t)
	plural := "s"
	if one {
		plural = ""
	}
	switch kind := t.Kind(); {
	case t == rawType && one:
		return "any"
	case t == rawType:
		return "values of any type"
	case kind == reflect.Bool:
		return "boolean" + plural
	case kind == reflect.String:
		return "string" + plural
	case kind == reflect.Float64:
		return "number" + plural
	case kind == reflect.Slice:
		return "list" + plural + " of " + typeName(t.Elem(), false)
	case kind == reflect.Map:
		return "object" + plural + " with " + typeName(t.Elem(), false)
	case kind == reflect.Struct:
		return "object" + plural
	}
	return "integer" + plural
}

func isNumber(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

var (
	saysDefault = regexp.MustCompile(`Default(?:[^:.]*): (.+?)(?:\. [A-Z]|\.?$)`)
	saidBeside  = regexp.MustCompile(`["']?([A-Za-z0-9._/-]+)["']? \(default\)`)
	oneWord     = regexp.MustCompile(`^[A-Za-z0-9/_-]+$`)
)

// setDefault reads the default from the description; without one it is the zero value.
func (m *Member) setDefault(t reflect.Type) {
	if found := saysDefault.FindStringSubmatch(m.Text); found != nil {
		m.Default = found[1]
	} else if found := saidBeside.FindStringSubmatch(m.Text); found != nil {
		m.Default = found[1]
	}
	first, _, _ := strings.Cut(strings.NewReplacer(";", ",").Replace(m.Default), ",")
	switch kind := t.Kind(); {
	case kind == reflect.Bool:
		m.Default = orText(m.Default, "false")
		if first == "true" || m.Default == "false" {
			m.literal = first == "true"
		}
	case isNumber(t) && m.Default == "":
		m.Default, m.literal = "0", 0.0
	case isNumber(t):
		if n, err := strconv.ParseFloat(first, 64); err == nil {
			m.literal = n
		}
	case kind == reflect.String && m.Default == "":
		m.Default = `""`
	case kind == reflect.String:
		if oneWord.MatchString(m.Default) {
			m.literal = m.Default
		}
	default:
		m.Default = orText(m.Default, "none")
	}
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

const number = `(-?\d[\d,]*(?:\.\d+)?)`

var (
	between = regexp.MustCompile(`\bfrom ` + number + ` to ` + number + `\b|\b` + number + ` to ` + number + `\b`)
	above   = regexp.MustCompile(`\babove ` + number + ` and up to ` + number)
	atMost  = regexp.MustCompile(`\bat most ` + number + `( of each| and | seconds)?`)
	atLeast = regexp.MustCompile(`\bat least ` + number)
	inText  = regexp.MustCompile(`\bat most ` + number + ` (?:bytes|letters)`)
)

// setBounds reads bounds from the description.
func (m *Member) setBounds(t reflect.Type) {
	text := m.Text
	if at := strings.Index(text, "Default"); at >= 0 {
		text = text[:at]
	}
	switch kind := t.Kind(); {
	case isNumber(t):
		m.Bounds = boundsOf(text)
	case kind == reflect.String:
		if found := inText.FindStringSubmatch(text); found != nil {
			m.Bounds = &Bounds{Most: parsed(found[1])}
		}
	case t == rawType:
	case kind == reflect.Slice && isNumber(t.Elem()):
		if found := above.FindStringSubmatch(text); found != nil {
			m.Items = &Bounds{Least: parsed(found[1]), Most: parsed(found[2]), Above: true}
		}
		m.Bounds = most(text)
	case kind == reflect.Slice || kind == reflect.Map:
		if m.Bounds = most(text); m.Bounds == nil {
			m.Bounds = boundsOf(text)
		}
	}
}

// boundsOf returns the bounds that a description names first, or nil.
func boundsOf(text string) *Bounds {
	if found := above.FindStringSubmatch(text); found != nil {
		return &Bounds{Least: parsed(found[1]), Most: parsed(found[2]), Above: true}
	}
	if found := between.FindStringSubmatch(text); found != nil {
		numbers := slices.DeleteFunc(found[1:], func(s string) bool { return s == "" })
		return &Bounds{Least: parsed(numbers[0]), Most: parsed(numbers[1])}
	}
	if found := atLeast.FindStringSubmatch(text); found != nil {
		return &Bounds{Least: parsed(found[1])}
	}
	return most(text)
}

// most returns an upper bound of numbers and entries.
func most(text string) *Bounds {
	if found := atMost.FindStringSubmatch(text); found != nil && found[2] != " of each" {
		return &Bounds{Most: parsed(found[1])}
	}
	return nil
}

func parsed(number string) *float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil {
		return nil
	}
	return &n
}

// String is the bounds in words: "1 to 5", "at most 5", "at least 5", "above 0, at most 1".
func (b *Bounds) String() string {
	text := func(n *float64) string { return strconv.FormatFloat(*n, 'f', -1, 64) }
	switch {
	case b == nil:
		return ""
	case b.Above:
		return "above " + text(b.Least) + ", at most " + text(b.Most)
	case b.Least == nil:
		return "at most " + text(b.Most)
	case b.Most == nil:
		return "at least " + text(b.Least)
	}
	return text(b.Least) + " to " + text(b.Most)
}

// Range is what values are allowed, in words.
func (m *Member) Range() string {
	switch {
	case len(m.Allowed) > 0:
		return strings.Join(m.Allowed, ", ")
	case m.Items != nil && m.Bounds != nil:
		return m.Items.String() + "; " + m.Bounds.String() + " entries"
	case m.Bounds == nil:
		return ""
	case isNumber(bare(m.field.Type)):
		return m.Bounds.String()
	case bare(m.field.Type).Kind() == reflect.String:
		return m.Bounds.String() + " bytes"
	}
	return m.Bounds.String() + " entries"
}

var units = []struct {
	says *regexp.Regexp
	unit string
}{
	{regexp.MustCompile(`^Unix seconds`), "Unix seconds"},
	{regexp.MustCompile(`^Seconds|\bin seconds\b|^Most seconds|^Time .*\bseconds\b`), "seconds"},
	{regexp.MustCompile(`\bin bytes\b`), "bytes"},
	{regexp.MustCompile(`^Percentages?`), "percent"},
}

func unitOf(text string) string {
	for _, u := range units {
		if u.says.MatchString(text) {
			return u.unit
		}
	}
	return ""
}
