package definition

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// fill sets everything that a value holds, down to its last part; pointers to a
// type that is being filled already stay nil.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Unknown]() {
			return // its fields are the package's own, and tested there
		}
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"raw":true}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), element)
	default:
		v.Set(reflect.ValueOf(*n).Convert(v.Type()))
	}
}

// A field that is added to sessions and cannot be packed fails here.
func TestEveryFieldOfASessionIsPacked(t *testing.T) {
	full, n := new(Session), 0
	fill(reflect.ValueOf(full).Elem(), &n)
	got, err := UnpackSession(string(full.Pack(nil)))
	if err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("packed %+v, unpacked %+v, %v", full, got, err)
	}
	for i := range reflect.TypeFor[Session]().NumField() { // and alone
		one, n := new(Session), 0
		fill(reflect.ValueOf(one).Elem().Field(i), &n)
		if got, err := UnpackSession(string(one.Pack(nil))); err != nil || !reflect.DeepEqual(got, one) {
			t.Errorf("packed %+v, unpacked %+v, %v", one, got, err)
		}
	}
}

func TestAnEmptyListIsNotNone(t *testing.T) {
	packed := (&Session{Tags: []string{}}).Pack(nil)
	if own, err := UnpackSession(string(packed)); err != nil || own.Tags == nil || own.ApplyPolicies != nil {
		t.Errorf("%+v, %v", own, err)
	}
}

func TestAPackedSessionIsSmall(t *testing.T) {
	s := &Session{OrgID: "53ac07777cbb8c2d530000", Alias: "someone@example.org", ApplyPolicies: []string{"gold"}, DateCreated: "2026-11-21T20:00:00Z", LastUpdated: "1795300000"}
	if n := len(s.Pack(nil)); n > 100 {
		t.Errorf("%d bytes", n)
	}
}

func FuzzPackSession(f *testing.F) {
	seed(f, "session")
	f.Fuzz(func(t *testing.T, data []byte) {
		s := new(Session)
		if json.Unmarshal(data, s) != nil {
			return
		}
		got, err := UnpackSession(string(s.Pack(nil)))
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("packed %+v, unpacked %+v, %v", s, got, err)
		}
	})
}

func BenchmarkPackSession(b *testing.B) {
	full := new(Session)
	text, err := os.ReadFile("testdata/session.json")
	if err == nil {
		err = json.Unmarshal(text, full)
	}
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]*Session{
		"of a policy": {OrgID: "bench", Alias: "someone", ApplyPolicies: []string{"gold"}, LastUpdated: "1795300000"},
		"full":        full,
	} {
		packed := s.Pack(nil)
		b.Run(name+", pack", func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(packed)), "bytes")
			for b.Loop() {
				packed = s.Pack(packed[:0])
			}
		})
		b.Run(name+", unpack", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := UnpackSession(string(packed)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
