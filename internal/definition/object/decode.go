package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A decoder reads valid JSON into structs. Unlike encoding/json it compares
// member names exactly, goes on after a fault, says where each is, and keeps what
// it does not know.
type decoder struct {
	data   []byte
	pos    int
	path   []step
	faults []Fault
	short  []reflect.Value // texts that gather puts into one block
}

// A step is one part of a path: a member, an element by name or by position.
type step struct {
	name string
	kind stepKind
	at   int
}

type stepKind uint8

const (
	stepMember stepKind = iota
	stepEntry
	stepItem
)

// Decode replaces the struct that into points to by what data says, which Check must
// have passed. It returns what could not be read, at most MaxFaults and one more.
func Decode(data []byte, into any) []Fault {
	v := reflect.ValueOf(into).Elem()
	v.SetZero()
	d := &decoder{data: data}
	d.space()
	d.value(v)
	d.gather()
	return d.faults
}

// shortText is the longest text, in bytes, that shares a block with others: who
// holds on to one of them holds on to all.
const shortText = 128

// text sets a string. Those that stay where they are, which elements of maps and
// arrays do not, are gathered.
func (d *decoder) text(v reflect.Value, s string) {
	v.SetString(s)
	if len(s) == 0 || len(s) > shortText {
		return
	}
	for _, above := range d.path {
		if above.kind != stepMember {
			return
		}
	}
	d.short = append(d.short, v)
}

// gather puts short texts into one block: where there are very many objects, each
// text of its own costs a collection of garbage as much as a whole object does.
func (d *decoder) gather() {
	if len(d.short) < 2 {
		return
	}
	var block strings.Builder
	size := 0
	for _, v := range d.short {
		size += v.Len()
	}
	block.Grow(size)
	for _, v := range d.short {
		block.WriteString(v.String())
	}
	rest := block.String()
	for _, v := range d.short {
		n := v.Len()
		v.SetString(rest[:n])
		rest = rest[n:]
	}
}

// addf notes a fault where the decoder stands.
func (d *decoder) addf(format string, args ...any) {
	if len(d.faults) <= MaxFaults {
		d.faults = append(d.faults, Fault{Path: d.where(), Message: fmt.Sprintf(format, args...)})
	}
}

func (d *decoder) where() string {
	path := ""
	for _, s := range d.path {
		switch s.kind {
		case stepMember:
			path = Member(path, s.name)
		case stepEntry:
			path = Entry(path, s.name)
		default:
			path = Item(path, s.at)
		}
	}
	return path
}

func (d *decoder) space() {
	for d.pos < len(d.data) && strings.IndexByte(" \t\r\n", d.data[d.pos]) >= 0 {
		d.pos++
	}
}

// raw steps over a value and returns it.
func (d *decoder) raw() []byte {
	start := d.pos
	d.pos = valueEnd(d.data, start)
	return d.data[start:d.pos]
}

// refuse steps over a value that is of another type than wanted.
func (d *decoder) refuse(wanted string) {
	d.addf("must be %s, not %s", wanted, TypeName(d.data[d.pos]))
	d.raw()
}

// TypeName is what JSON calls a value that begins with c.
func TypeName(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

var rawType = reflect.TypeFor[json.RawMessage]()

var boolPointer = reflect.TypeFor[*bool]()

// What all pointers to booleans lead to that are read: nothing is written there, and
// one of its own for each object would be as much to look at for a collection of
// garbage as the object.
var yes, no = true, false

func pointerTo(b bool) *bool {
	if b {
		return &yes
	}
	return &no
}

// value reads the value at pos into v. A null that stands for a whole member
// never gets here.
func (d *decoder) value(v reflect.Value) {
	c := d.data[d.pos]
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type() == boolPointer && (c == 't' || c == 'f') {
			d.raw()
			v.Set(reflect.ValueOf(pointerTo(c == 't')))
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem())
	case reflect.Struct:
		d.object(v, c)
	case reflect.Map:
		d.entries(v, c)
	case reflect.Slice:
		if v.Type() == rawType {
			v.SetBytes(compact(d.raw()))
			return
		}
		d.items(v, c)
	case reflect.String:
		if c != '"' {
			d.refuse("a string")
			return
		}
		d.text(v, Unquote(d.raw()))
	case reflect.Bool:
		if c != 't' && c != 'f' {
			d.refuse("true or false")
			return
		}
		v.SetBool(d.raw()[0] == 't')
	default:
		d.number(v, c)
	}
}

// Unquote reads a valid JSON string.
func Unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // valid, as Check found
	return s
}

// compact copies a valid JSON value without the white space around its parts,
// so that what is kept neither holds on to the whole input nor depends on its
// layout.
func compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(raw))
	_ = json.Compact(&b, raw) // valid, as Check found
	return bytes.Clone(b.Bytes())
}

// number reads a number into a float or an integer; an integer may be written
// with a fraction or an exponent that leave it whole.
func (d *decoder) number(v reflect.Value, c byte) {
	wanted := "a number"
	if v.Kind() != reflect.Float64 {
		wanted = "a whole number"
	}
	if TypeName(c) != "a number" {
		d.refuse(wanted)
		return
	}
	text := string(d.raw())
	if v.CanInt() {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v.SetInt(n)
			return
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || v.CanInt() && (f >= 1<<63 || f < -1<<63):
		d.addf("is a number too large to be read")
	case v.CanFloat():
		v.SetFloat(f)
	case f != float64(int64(f)):
		d.addf("must be a whole number, not %s", text)
	default:
		v.SetInt(int64(f))
	}
}

// object reads the members of a struct.
func (d *decoder) object(v reflect.Value, c byte) {
	l := layoutOf(v.Type())
	var unknown *Unknown
	if l.unknown >= 0 {
		unknown = v.Field(l.unknown).Addr().Interface().(*Unknown)
	}
	switch {
	case l.short >= 0 && c == '"':
		unknown.empty |= shortForm
		field, _ := l.members[l.short].in(v)
		d.value(field)
		return
	case l.short >= 0 && c != '{':
		d.refuse("a string or an object")
		return
	case c != '{':
		d.refuse("an object")
		return
	}
	var seen uint64
	d.each(stepMember, func(name string) {
		i, known := l.byName[name]
		switch {
		case known && seen&(1<<i) != 0, !known && unknown != nil && unknown.Get(name) != nil:
			d.addf("stands twice; leave one of them out")
			d.raw()
		case known:
			seen |= 1 << i
			d.member(v, &l.members[i], unknown, i)
		case unknown != nil:
			unknown.set(name, compact(d.raw()))
		default:
			d.raw()
		}
	})
}

// member reads one known member. Null leaves its zero value.
func (d *decoder) member(v reflect.Value, m *member, unknown *Unknown, bit int) {
	field, there := m.in(v)
	if !there {
		// The struct that the pointer stands for is needed only if there is
		// something to put in it.
		inline := v.FieldByIndex(m.index[:len(m.index)-1])
		inline.Set(reflect.New(inline.Type().Elem()))
		field, _ = m.in(v)
		defer func() {
			if isEmpty(field) {
				inline.SetZero()
			}
		}()
	}
	start, faults := d.pos, len(d.faults)
	if d.data[d.pos] == 'n' {
		d.raw()
	} else {
		d.value(field)
	}
	if m.lenient && len(d.faults) > faults {
		d.faults = d.faults[:faults]
		field.SetZero()
		unknown.set(m.name, compact(d.data[start:d.pos]))
		return
	}
	if m.omitEmpty && unknown != nil && isEmpty(field) {
		unknown.empty |= 1 << bit
	}
}

// isEmpty reports whether "omitempty" leaves a field out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}

// entries reads the elements of a map by name.
func (d *decoder) entries(v reflect.Value, c byte) {
	if c != '{' {
		d.refuse("an object")
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	d.each(stepEntry, func(name string) {
		key := reflect.ValueOf(name)
		if v.MapIndex(key).IsValid() {
			d.addf("stands twice; leave one of them out")
			d.raw()
			return
		}
		element := reflect.New(t.Elem()).Elem()
		d.value(element)
		v.SetMapIndex(key, element)
	})
}

// each calls read at every value of an object, which read must step over.
func (d *decoder) each(kind stepKind, read func(name string)) {
	for d.pos++; ; {
		d.space()
		switch d.data[d.pos] {
		case '}':
			d.pos++
			return
		case ',':
			d.pos++
			continue
		}
		end := stringEnd(d.data, d.pos)
		name := Unquote(d.data[d.pos:end])
		d.pos = end
		d.space()
		d.pos++ // the colon
		d.space()
		d.path = append(d.path, step{kind: kind, name: name})
		read(name)
		d.path = d.path[:len(d.path)-1]
	}
}

// items reads the elements of an array.
func (d *decoder) items(v reflect.Value, c byte) {
	if c != '[' {
		d.refuse("an array")
		return
	}
	read := reflect.MakeSlice(v.Type(), 0, 0)
	zero := reflect.Zero(v.Type().Elem())
	for d.pos++; ; {
		d.space()
		switch d.data[d.pos] {
		case ']':
			d.pos++
			v.Set(clip(read))
			return
		case ',':
			d.pos++
			continue
		}
		n := read.Len()
		read = reflect.Append(read, zero)
		d.path = append(d.path, step{kind: stepItem, at: n})
		d.value(read.Index(n))
		d.path = d.path[:len(d.path)-1]
	}
}

// clip returns s without spare capacity, for what is kept for long.
func clip(s reflect.Value) reflect.Value {
	if s.Len() == s.Cap() {
		return s
	}
	exact := reflect.MakeSlice(s.Type(), s.Len(), s.Len())
	reflect.Copy(exact, s)
	return exact
}
