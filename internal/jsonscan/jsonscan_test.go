package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWalkingHandsOutNamesAndValues(t *testing.T) {
	s := New([]byte(` { "a" : 1.5e3 ,"b":[true , null,"x\n"],"\u0063":{"d":{}} } `), 8)
	var got []string
	for s.Object(); s.Member(); {
		name := string(s.Name())
		if s.Kind() != Array {
			v := s.Value()
			got = append(got, fmt.Sprintf("%s=%d %s @%d", name, v.Kind, v.Raw, v.Offset))
			continue
		}
		for s.Array(); s.Element(); {
			v := s.Value()
			got = append(got, fmt.Sprintf("%s[]=%d %s @%d", name, v.Kind, v.Raw, v.Offset))
		}
	}
	if !s.End() {
		t.Fatal(s.Err())
	}
	want := []string{
		"a=4 1.5e3 @9", "b[]=3 true @21", "b[]=1 null @28", `b[]=5 "x\n" @33`, `\u0063=7 {"d":{}} @49`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFaultsSayWhereAndWhatWasExpected(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `expected a value at byte 0, where the text ends`},
		{"  ", `expected a value at byte 2, where the text ends`},
		{"nul", `expected a value at byte 0`},
		{"[1,]", `expected a value at byte 3`},
		{"[1 2]", `expected "," or "]" at byte 3`},
		{"[1", `expected "," or "]" at byte 2, where the text ends`},
		{"[", `expected a closing "]" at byte 1, where the text ends`},
		{"{", `expected a closing "}" at byte 1, where the text ends`},
		{"{a:1}", `expected a name in double quotes at byte 1`},
		{`{"a" 1}`, `expected ":" at byte 5`},
		{`{"a":}`, `expected a value at byte 5`},
		{`{"a":1,}`, `expected a name in double quotes at byte 7`},
		{`{"a":1]`, `expected "," or "}" at byte 6`},
		{`"abc`, `expected a closing double quote at byte 4, where the text ends`},
		{"\"a\nb\"", `expected control characters to be escaped at byte 2`},
		{"\"a\x00b\"", `expected control characters to be escaped at byte 2`},
		{`"\x"`, `expected an escape sequence at byte 2`},
		{`"\`, `expected an escape sequence at byte 2, where the text ends`},
		{`"\u12g4"`, `expected four hexadecimal digits at byte 2`},
		{`"\u12`, `expected four hexadecimal digits at byte 2`},
		{"\"\xff\"", `expected UTF-8 at byte 1`},
		{"\"\xed\xa0\x80\"", `expected UTF-8 at byte 1`},
		{"-", `expected a digit at byte 1, where the text ends`},
		{"01", `expected the end of the text at byte 1`},
		{"1.", `expected a digit at byte 2, where the text ends`},
		{"1e+", `expected a digit at byte 3, where the text ends`},
		{".5", `expected a value at byte 0`},
		{"1 1", `expected the end of the text at byte 2`},
		{"\xef\xbb\xbf1", `expected a value at byte 0`},
		{"[[[[1]]]]", `expected less nesting at byte 3`},
		{`{"a":[{"b":{}}]}`, `expected less nesting at byte 11`},
	} {
		_, err := check([]byte(c.text), 3)
		fault, ok := errors.AsType[*Error](err)
		if !ok || fault.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestAFaultEndsEveryWalk(t *testing.T) {
	s := New([]byte(`[1,x,2]`), 4)
	var seen int
	for s.Array(); s.Element(); seen++ {
		s.Value()
	}
	if s.Object() || s.Array() || s.Member() || s.Element() || s.End() || s.Kind() != Invalid || s.Value().Kind != Invalid {
		t.Error("a scanner goes on after a fault")
	}
	if seen != 2 || s.Err() == nil || s.Err().Error() != "expected a value at byte 3" {
		t.Errorf("%d elements, %v", seen, s.Err())
	}
}

func TestDepthMayReachTheMostThatIsAllowed(t *testing.T) {
	deep := strings.Repeat(`[{"a":`, MaxDepth/2) + "1" + strings.Repeat("}]", MaxDepth/2)
	if _, err := check([]byte(deep), MaxDepth); err != nil {
		t.Error(err)
	}
	if _, err := check([]byte("["+deep+"]"), 1<<20); err == nil {
		t.Error("more nesting than MaxDepth passes")
	}
}

func TestUnescape(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{``, ""},
		{`plain`, "plain"},
		{`\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t"},
		{`a\u0041\u00e9\u20AC`, "aAé€"},
		{`\ud83d\ude00!`, "😀!"},
		{`\u0000`, "\x00"},
		{`\ufffd�`, "��"},
	} {
		got, err := Unescape([]byte("<"), []byte(c.raw))
		if err != nil || string(got) != "<"+c.want {
			t.Errorf("%s: got %q, %v", c.raw, got, err)
		}
	}
	for _, c := range []struct {
		raw    string
		offset int
	}{{`\ud800`, 0}, {`ab\udc00`, 2}, {`\ud83dx\ude00`, 0}, {`\ud83d\ud83d\ude00`, 0}, {`\ud83d\n`, 0}} {
		_, err := Unescape(nil, []byte(c.raw))
		fault, ok := errors.AsType[*Error](err)
		if !ok || fault.Offset != c.offset {
			t.Errorf("%s: got %v", c.raw, err)
		}
	}
}

func TestEqualSeesThroughEscapes(t *testing.T) {
	for _, c := range []struct {
		raw, want   string
		equal, fold bool
	}{
		{`query`, "query", true, true},
		{`Query`, "query", false, true},
		{`qu\u0065ry`, "query", true, true},
		{`qu\u0045ry`, "query", false, true},
		{`quer`, "query", false, false},
		{`queryx`, "query", false, false},
		{`quer\u0079\u0079`, "query", false, false},
		{`exten\u017fions`, "extensions", false, true},
		{`extenſions`, "extensions", false, true},
		{`\u212a`, "k", false, true},
		{`\ud800`, "\xff", false, false},
		{`\ud83d\ude00`, "😀", true, false},
		{``, "", true, true},
	} {
		if Equal([]byte(c.raw), c.want) != c.equal {
			t.Errorf("Equal(%s, %s) is not %t", c.raw, c.want, c.equal)
		}
		if EqualFold([]byte(c.raw), c.want) != c.fold {
			t.Errorf("EqualFold(%s, %s) is not %t", c.raw, c.want, c.fold)
		}
	}
}

func TestScanningDoesNotAllocate(t *testing.T) {
	text := []byte(`{"query":"query($a: ID!) { a(id: $a) { b c \"d\" } }","variables":{"a":["é",1,{"b":null}]}}`)
	buf := make([]byte, 0, 256)
	allocs := testing.AllocsPerRun(100, func() {
		s := New(text, 64)
		for s.Object(); s.Member(); {
			Equal(s.Name(), "query")
			if v := s.Value(); v.Kind == String {
				buf, _ = Unescape(buf[:0], v.Text())
			}
		}
		if !s.End() {
			t.Fatal("refused")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func FuzzCheckAgreesWithTheStandardLibrary(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0.5e+7,"x\u00e9\ud83d\ude00",true,false,null,{}]}`, `[01]`, `"\ud800"`, "\"\x7f\"", `{"a":1,"a":2}`,
		`"12345678\"90123456789"`, ` [ ] `, `{"":""}`, "\"\xc3\x28\"", "[1,\n2\r]\t",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := check(text, MaxDepth)
		want := json.Valid(text) && utf8.Valid(text)
		if (err == nil) != want {
			if fault, ok := errors.AsType[*Error](err); ok && fault.Expected == LessNesting {
				return
			}
			t.Fatalf("%q: %v, but valid is %t", text, err, want)
		}
		if err == nil {
			same(t, text, v)
		}
	})
}

// same holds a text walked by hand against what the standard library decodes.
func same(t *testing.T, text []byte, v Value) {
	if !bytes.Equal(v.Raw, bytes.Trim(text, " \t\r\n")) {
		t.Fatalf("%q: raw %q", text, v.Raw)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	s := New(text, MaxDepth)
	if got, ok := decode(t, &s); ok && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %#v, want %#v", text, got, want)
	}
	if !s.End() {
		t.Fatal(s.Err())
	}
}

// decode builds what comes next; false when half of a surrogate pair is in it,
// which the standard library replaces.
func decode(t *testing.T, s *Scanner) (any, bool) {
	switch s.Kind() {
	case Object:
		m, whole := map[string]any{}, true
		for s.Object(); s.Member(); {
			name, err := Unescape(nil, s.Name())
			if err == nil && !Equal(s.Name(), string(name)) {
				t.Fatalf("name %q is not equal to itself", name)
			}
			v, ok := decode(t, s)
			m[string(name)] = v
			whole = whole && ok && err == nil
		}
		return m, whole
	case Array:
		list, whole := []any{}, true
		for s.Array(); s.Element(); {
			v, ok := decode(t, s)
			list = append(list, v)
			whole = whole && ok
		}
		return list, whole
	}
	v := s.Value()
	switch v.Kind {
	case String:
		text, err := Unescape(nil, v.Text())
		return string(text), err == nil
	case Number:
		return json.Number(v.Raw), true
	case Null:
		return nil, true
	}
	return v.Kind == True, true
}

func BenchmarkCheck(b *testing.B) {
	text := []byte(`{"query":"query Country($code: ID!) { country(code: $code) { name capital currency continent { name countries { code } } } }","operationName":"Country","variables":{"code":"DE","list":[1,2,3]}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := check(text, 64); err != nil {
			b.Fatal(err)
		}
	}
}

// check reports whether src is one value with white space around it, nested at
// most depth deep, and returns the value. Errors are *Error.
func check(src []byte, depth int) (Value, error) {
	s := New(src, depth)
	v := s.Value()
	s.End()
	return v, s.Err()
}
