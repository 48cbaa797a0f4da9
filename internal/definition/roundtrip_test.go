package definition

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// same fails t unless two JSON texts say the same; numbers are compared as text.
func same(t *testing.T, got, want []byte) {
	t.Helper()
	read := func(data []byte) any {
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		return v
	}
	if g, w := read(got), read(want); !reflect.DeepEqual(g, w) {
		t.Fatalf("written back as\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsReadIsWrittenBackUnchanged(t *testing.T) {
	for _, file := range []string{"api", "policy", "session"} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + file + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var out []byte
			switch file {
			case "api":
				out = through[API](t, data)
			case "policy":
				out = through[Policy](t, data)
			case "session":
				out = through[Session](t, data)
			}
			same(t, out, data)
		})
	}
}

func through[T any](t *testing.T, data []byte) []byte {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMembersAreKept(t *testing.T) {
	// Every case is the body of a "proxy" object but for its listen path and target.
	for name, body := range map[string]string{
		"big numbers":               `"vendor_n": 12345678901234567890.1234567890e-3`,
		"null":                      `"vendor": null`,
		"nested objects":            `"vendor": {"a": {"b": [1, {"c": null}]}}`,
		"another case of a name":    `"Listen_Path": "/other", "LISTEN_PATH": 7`,
		"escapes":                   `"ven\u0064or \"x\"": "a\u2028\u00e9<&>\ud83d\ude00"`,
		"explicit zero values":      `"strip_listen_path": false, "target_list": [], "transport": null`,
		"explicit values of a part": `"transport": {"max_conns": 0, "ssl_ca_file": "", "x": 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(`{"proxy": {"listen_path": "/a", "target_url": "http://b", ` + body + `}}`)
			same(t, through[API](t, data), data)
		})
	}
}

func TestNullOfAnyMemberIsItsZeroValue(t *testing.T) {
	for _, typ := range objectTypes() {
		t.Run(typ.Name(), func(t *testing.T) {
			var body []string
			for _, name := range memberNames(typ) {
				body = append(body, `"`+name+`": null`)
			}
			v := reflect.New(typ)
			if faults := object.Decode([]byte("{"+strings.Join(body, ",")+"}"), v.Interface()); len(faults) > 0 {
				t.Fatal(joined(faults))
			}
			v.Elem().FieldByName("Unknown").SetZero()
			if !v.Elem().IsZero() {
				t.Fatalf("got %+v", v.Elem())
			}
		})
	}
}

// objectTypes returns every struct type of API, Policy and Session that is an object in
// JSON: not those that are embedded or written inline.
func objectTypes() []reflect.Type {
	seen := map[reflect.Type]bool{
		reflect.TypeFor[Unknown](): true, reflect.TypeFor[Limits](): true, reflect.TypeFor[Extra](): true, reflect.TypeFor[jwt.Settings](): true,
		reflect.TypeFor[Calendar](): true, reflect.TypeFor[PathMatch](): true, reflect.TypeFor[CheckSettings](): true, reflect.TypeFor[BreakerSettings](): true,
	}
	var all []reflect.Type
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			all = append(all, t)
			for field := range t.Fields() {
				if field.IsExported() { // others are no members
					walk(field.Type)
				}
			}
		}
	}
	for _, t := range []reflect.Type{reflect.TypeFor[API](), reflect.TypeFor[Policy](), reflect.TypeFor[Session]()} {
		walk(t)
	}
	return all
}

// memberNames lists the members of a struct in JSON.
func memberNames(typ reflect.Type) []string {
	var names []string
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			names = append(names, memberNames(f.Type)...)
		case options == "inline":
			names = append(names, memberNames(f.Type.Elem())...)
		case name != "-":
			names = append(names, name)
		}
	}
	return names
}

func TestEveryObjectKeepsUnknownMembers(t *testing.T) {
	for _, typ := range objectTypes() {
		v := reflect.New(typ).Interface()
		if _, keeps := typ.FieldByName("Unknown"); !keeps {
			t.Errorf("%s has no field Unknown", typ.Name())
			continue
		}
		if n := len(memberNames(typ)); n > 63 {
			t.Errorf("%s has %d members: more than can be remembered as empty", typ.Name(), n)
		}
		data := []byte(`{"x-vendor": [1, {"a": null}]}`)
		if faults := object.Decode(data, v); len(faults) > 0 {
			t.Fatal(joined(faults))
		}
		out, err := object.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), `"x-vendor":[1,{"a":null}]`) {
			t.Errorf("%s: lost in %s", typ.Name(), out)
		}
	}
}

func TestLiteralsSurviveAsTheyAre(t *testing.T) {
	yes := true
	a := &API{ID: "a", Active: &yes, Proxy: Proxy{ListenPath: "/a", TargetURL: "http://b"}, AuthConfigs: map[string]*Auth{"authToken": {HeaderName: "X"}}}
	out, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseAPI(out)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, back) {
		t.Fatalf("got %+v\nwant %+v", back, a)
	}
}

func TestExtraIsThereOnlyWhenItHoldsSomething(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"hmac_enabled": false, "smoothing": null, "oauth_client_id": "", "tags": []}`: false,
		`{"oauth_client_id": "", "certificate": "c", "hmac_string": ""}`: true, `{"certificate": "c"}`: true, `{"smoothing": {}}`: true,
	} {
		s := new(Session)
		if err := json.Unmarshal([]byte(text), s); err != nil {
			t.Fatal(err)
		}
		if got := s.Extra != nil; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		const numbers = `"rate":0,"per":0,"throttle_interval":0,"throttle_retry_limit":0,"max_query_depth":0,
			"quota_max":0,"quota_renewal_rate":0,"quota_renews":0,"quota_remaining":0,"expires":0}`
		all := strings.TrimSuffix(text, "}") + "," + numbers
		same(t, through[Session](t, []byte(text)), []byte(strings.Replace(all, "{,", "{", 1)))
	}
}

func TestUnmarshalReplacesWhatWasThere(t *testing.T) {
	s := Session{Alias: "old", Tags: []string{"old"}}
	if err := json.Unmarshal([]byte(`{"org_id": "o"}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.Alias != "" || s.Tags != nil || s.OrgID != "o" {
		t.Fatalf("got %+v", s)
	}
}

func TestMarshalNamesWhatCannotBeWritten(t *testing.T) {
	a := API{Proxy: Proxy{Transport: &Transport{DialTimeout: nan()}}}
	if _, err := json.Marshal(a); err == nil || !strings.Contains(err.Error(), "proxy: transport: dial_timeout: ") {
		t.Fatalf("got %v", err)
	}
	if _, err := json.Marshal(API{Streaming: json.RawMessage("{")}); err == nil || !strings.Contains(err.Error(), "x-svc-streaming: ") {
		t.Fatalf("got %v", err)
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestContentHashDependsOnContentAlone(t *testing.T) {
	read := func(data string) *API {
		a, err := ParseAPI([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	one := read(`{"api_id": "a", "x": [1, 2], "proxy": {"listen_path": "/a", "target_url": "http://b"}}`)
	same := read(`{"proxy":{"target_url":"http:\/\/b","listen_path":"\u002fa"},"x":[1,2],  "api_id":"a"}`)
	other := read(`{"api_id": "a", "x": [1, 3], "proxy": {"listen_path": "/a", "target_url": "http://b"}}`)
	if one.ContentHash() != same.ContentHash() {
		t.Error("layout and order change the hash")
	}
	if one.ContentHash() == other.ContentHash() {
		t.Error("an unknown member does not change the hash")
	}
}

func TestCloneSharesNothing(t *testing.T) {
	data, err := os.ReadFile("testdata/session.json")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := ParseSession(data)
	before, _ := json.Marshal(s)
	c := s.Clone()
	if got, _ := json.Marshal(c); string(got) != string(before) {
		t.Fatalf("clone says\n%s\nwant\n%s", got, before)
	}
	for _, a := range c.AccessRights {
		a.Versions[0] = "changed"
		a.Limit.Rate = 1e6
		a.AllowedURLs[0].Methods[0] = "changed"
	}
	delete(c.AccessRights, "api-1")
	c.ApplyPolicies[0] = "changed"
	for name := range c.MetaData {
		c.MetaData[name][0] = 'x'
	}
	if after, _ := json.Marshal(s); string(after) != string(before) {
		t.Fatalf("a change of the clone reached the original:\n%s", after)
	}
	if (*Session)(nil).Clone() != nil {
		t.Fatal("clone of nil is not nil")
	}
}
