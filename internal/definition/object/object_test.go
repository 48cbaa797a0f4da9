package object

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

type parent struct {
	Name    string            `json:"name,omitempty"`
	Count   int               `json:"count"`
	Child   *child            `json:"child,omitempty"`
	Map     map[string]*child `json:"map,omitempty"`
	List    []child           `json:"list,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Unknown Unknown           `json:"-"`
}

type child struct {
	On      bool    `json:"on"`
	Size    float64 `json:"size,omitempty"`
	Unknown Unknown `json:"-"`
}

func TestNothingOfAnObjectIsLost(t *testing.T) {
	const text = `{"name":"","count":1,"child":{"on":true,"size":0,"y":null},"map":{"a":{"on":false}},"list":[],"raw":{"b":[1e400]},"x":{"z":1.0}}`
	var p parent
	if faults := Decode([]byte(text), &p); faults != nil {
		t.Fatal(faults)
	}
	for name, v := range map[string]*parent{"as read": &p, "as cloned": Clone(&p)} {
		if got, err := Marshal(v); err != nil || string(got) != text {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if p.Unknown.Len() != 1 || string(p.Unknown.Get("x")) != `{"z":1.0}` || p.Unknown.Get("name") != nil {
		t.Errorf("unknown members are %v", p.Unknown)
	}
}

// Short texts of an object lie in one block, those of its elements and long ones
// on their own; all say what was written.
func TestShortTextsShareABlock(t *testing.T) {
	type texts struct {
		A     string              `json:"a"`
		B     string              `json:"b"`
		Long  string              `json:"long"`
		Child *struct{ C string } `json:"child"`
		Inner struct {
			D string `json:"d"`
		} `json:"inner"`
		List []struct {
			E string `json:"e"`
		} `json:"list"`
		Map map[string]struct {
			F string `json:"f"`
		} `json:"map"`
	}
	long := strings.Repeat("l", shortText+1)
	in := `{"a":"a\u00e9","b":"","long":"` + long + `","inner":{"d":"dd"},"list":[{"e":"e0"},{"e":"e1"},{"e":"e2"}],"map":{"x":{"f":"f"}}}`
	var got texts
	if faults := Decode([]byte(in), &got); faults != nil {
		t.Fatal(faults)
	}
	if got.A != "aé" || got.B != "" || got.Long != long || got.Inner.D != "dd" || got.List[0].E+got.List[1].E+got.List[2].E != "e0e1e2" || got.Map["x"].F != "f" {
		t.Errorf("read %+v", got)
	}
	a, d := unsafe.StringData(got.A), unsafe.StringData(got.Inner.D)
	if unsafe.Pointer(d) != unsafe.Add(unsafe.Pointer(a), len(got.A)) {
		t.Error("two short texts do not lie side by side")
	}
}

func TestFaultsComeAtOnceWithTheirPaths(t *testing.T) {
	var p parent
	faults := Decode([]byte(`{"name": 1, "child": {"on": 0}, "map": {"a b": []}, "list": [{}, {"size": "x"}], "count": 1.5, "Name": 1, "name": "twice"}`), &p)
	var got []string
	for _, f := range faults {
		got = append(got, f.Path+": "+f.Message)
	}
	want := []string{
		"name: must be a string, not a number",
		"child.on: must be true or false, not a number",
		`map["a b"]: must be an object, not an array`,
		"list[1].size: must be a number, not a string",
		"count: must be a whole number, not 1.5",
		"name: stands twice; leave one of them out",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var p parent
	faults := Decode([]byte(`{"list": [`+strings.Repeat("1,", 5000)+`1]}`), &p)
	if len(faults) != MaxFaults+1 {
		t.Errorf("%d faults", len(faults))
	}
}

func TestCheckSaysWhereTextIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, "}"]}`:              "",
		"{\n  \"a\": }":                "line 2, column 8 is not JSON: invalid character '}' looking for beginning of value",
		"{\"a\": \"\xff\"}":            "line 1, column 8 is not UTF-8",
		strings.Repeat("[", 65):        "line 1, column 65 nests deeper than the 64 levels that are read",
		strings.Repeat(" ", 100) + "1": SizeMessage(101, 100),
	} {
		got := ""
		if f := Check([]byte(text), 100); f != nil {
			got = f.Message
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	if got := Item(Member(Entry(Member("", "a"), "b c"), "d"), 2); got != `a["b c"].d[2]` {
		t.Error(got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","count":1e2,"map":{"a":{"on":true}},"list":[{}],"raw":[1],"x":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p, again parent
		if Check(data, 1<<16) != nil || Decode(data, &p) != nil {
			return
		}
		once, err := Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		if faults := Decode(once, &again); faults != nil {
			t.Fatalf("%v in what was written: %s", faults, once)
		}
		if twice, err := Marshal(Clone(&again)); err != nil || string(twice) != string(once) {
			t.Fatalf("written as\n%s\nthen as\n%s, %v", once, twice, err)
		}
	})
}

// Very many objects have one, and a clone is there to be changed.
func TestBooleansThatMayBeAbsentAreNoObjectsOfTheirOwn(t *testing.T) {
	type switched struct {
		On *bool `json:"on,omitempty"`
	}
	var first, second, off switched
	for text, into := range map[string]*switched{`{"on":true}`: &first, `{"on": true}`: &second, `{"on":false}`: &off} {
		if faults := Decode([]byte(text), into); len(faults) > 0 {
			t.Fatal(faults)
		}
	}
	if first.On != second.On || !*first.On || *off.On {
		t.Errorf("%v %v %v", first.On, second.On, off.On)
	}
	if *Clone(&first).On = false; !*second.On {
		t.Error("a clone shares it")
	}
	if faults := Decode([]byte(`{"on":1}`), &off); len(faults) != 1 {
		t.Errorf("a number: %v", faults)
	}
}
