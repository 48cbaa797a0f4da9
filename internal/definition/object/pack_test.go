package object

import (
	"encoding/json"
	"reflect"
	"testing"
)

func packed(t *testing.T, from *parent) *parent {
	t.Helper()
	into := &parent{Name: "left over", List: []child{{}}}
	if err := Unpack(string(Pack(nil, from)), into); err != nil {
		t.Fatalf("%+v: %v", from, err)
	}
	return into
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	for _, p := range []*parent{
		{},
		{Name: "a", Count: -7, Child: &child{}, Raw: json.RawMessage(`{"b": 1}`)},
		{Child: &child{On: true, Size: -0.5}, Map: map[string]*child{"": nil, "x": {Size: 1e300}}},
		{Map: map[string]*child{}, List: []child{}, Raw: json.RawMessage{}},
		{List: []child{{On: true}, {}, {Size: 2}}, Unknown: Unknown{members: map[string]json.RawMessage{"x": []byte("[1]")}, empty: 1<<63 | 5}},
	} {
		if got := packed(t, p); !reflect.DeepEqual(got, p) {
			t.Errorf("packed %+v, unpacked %+v", p, got)
		}
	}
}

func TestWhatIsNotSetTakesNoRoom(t *testing.T) {
	if got := Pack(nil, &parent{Count: 1}); len(got) > 2 {
		t.Errorf("one small number takes %d bytes", len(got))
	}
}

func TestWhatIsPackedStandsBehindWhatWasThere(t *testing.T) {
	b := Pack([]byte("head"), &parent{Name: "n"})
	var p parent
	if err := Unpack(string(b[4:]), &p); err != nil || string(b[:4]) != "head" || p.Name != "n" {
		t.Errorf("%q: %+v, %v", b, p, err)
	}
}

func TestEveryCutOfWhatWasPackedIsRefused(t *testing.T) {
	p := &parent{Name: "name", Count: 3, Child: &child{On: true, Size: 2}, Map: map[string]*child{"k": {}}, List: []child{{}}, Raw: json.RawMessage("1")}
	whole := string(Pack(nil, p))
	for n := range whole {
		if err := Unpack(whole[:n], new(parent)); err != ErrPacked {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if err := Unpack(whole+"\x00", new(parent)); err != ErrPacked {
		t.Errorf("a byte too many: %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(Pack(nil, &parent{Name: "a", Child: &child{On: true}, List: []child{{Size: 1}}, Map: map[string]*child{"x": nil}}))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		var p parent
		if Unpack(string(data), &p) != nil {
			return
		}
		again := new(parent)
		if err := Unpack(string(Pack(nil, &p)), again); err != nil {
			t.Fatalf("%+v cannot be unpacked again: %v", p, err)
		}
		one, err := Marshal(&p)
		other, errAgain := Marshal(again)
		if (err == nil) != (errAgain == nil) || string(one) != string(other) {
			t.Fatalf("%s, %v; again %s, %v", one, err, other, errAgain)
		}
	})
}
