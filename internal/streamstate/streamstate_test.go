package streamstate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fixed is a source of streams that are always there.
type fixed []Stream

func (f fixed) Streams(of Filter) (list []Stream) {
	for _, s := range f {
		if (of.Org == "" || s.Org == of.Org) && (of.API == "" || s.API == of.API) {
			if !of.Nodes {
				s.Nodes = nil
			}
			list = append(list, s)
		}
	}
	return list
}

func names(list []Stream) (text string) {
	for i := range list {
		text += list[i].API + "/" + list[i].Name + "@" + list[i].Gateway + " "
	}
	return strings.TrimSpace(text)
}

// What several gateways run is paged as one list: no stream is left out or comes twice.
func TestStreamsOfGatewaysArePaged(t *testing.T) {
	desks := map[string]Desk{}
	all := map[string]bool{}
	for g := range 3 {
		var of fixed
		for n := range 200 {
			if n%(g+1) != 0 {
				continue
			}
			s := Stream{Org: "o", API: fmt.Sprintf("a/%d", n%7), Name: fmt.Sprintf("s%d", n), Phase: Running, Nodes: make([]Node, n%90)}
			of = append(of, s)
			all[s.API+" "+s.Name] = true
		}
		desks[fmt.Sprintf("g%d", g)] = Desk{of}
	}
	for _, nodes := range []bool{false, true} {
		q := Query{Filter: Filter{Org: "o", Nodes: nodes}, Max: 30}
		var found []Stream
		pages := 0
		for {
			pages++
			var answers []Answer
			for name, d := range desks {
				answers = append(answers, *d.Answer(q.String(), name))
			}
			list, next := Merge(answers, q.Max)
			found = append(found, list...)
			if q.After = next; next == "" || pages > 300 {
				break
			}
		}
		seen := map[string]bool{}
		for i := range found {
			id := found[i].Gateway + " " + found[i].API + " " + found[i].Name
			if seen[id] {
				t.Fatalf("%s came twice", id)
			}
			seen[id] = true
			delete(all, found[i].API+" "+found[i].Name)
		}
		if want := 200 + 100 + 67; len(found) != want || len(all) > 0 || !slices.IsSortedFunc(found, func(a, b Stream) int { return Compare(&a, &b) }) {
			t.Errorf("%d of %d on %d pages, without %v", len(found), want, pages, all)
		}
		if pages < 200/30 {
			t.Errorf("%d pages", pages)
		}
	}
}

func TestStreamsAreFiltered(t *testing.T) {
	d := Desk{fixed{{Org: "o", API: "b", Name: "x", Phase: Failing}, {Org: "o", API: "a", Name: "y", Phase: Running}, {Org: "p", API: "a", Name: "z", Phase: Failing}}}
	for query, want := range map[string]string{
		"":               "a/y@ a/z@ b/x@",
		"org_id=o":       "a/y@ b/x@",
		"api_id=a":       "a/y@ a/z@",
		"phase=failing":  "a/z@ b/x@",
		"after=a/y":      "a/z@ b/x@",
		"after=a%2Fy":    "a/z@ b/x@",
		"after=b/x":      "",
		"page_size=1":    "a/y@",
		"org_id=unknown": "",
	} {
		name, value, _ := strings.Cut(query, "=")
		page, err := d.List(map[string]string{name: strings.ReplaceAll(value, "%2F", "/")})
		if err != nil {
			t.Fatal(query, err)
		}
		if got := names(page.(*Page).Streams); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	for query, want := range map[string]string{
		"phase=well": "phase must be starting, running", "after=x": "after must be the member next", "page_size=501": "page_size must be a whole number in 1…500", "page_size=0": "page_size must be",
	} {
		name, value, _ := strings.Cut(query, "=")
		if _, err := d.List(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, question := range []string{"", "connections?verb=list", "streams?page_size=x", "streams?%zz"} {
		if a := d.Answer(question, "g"); a != nil {
			t.Errorf("%q was answered: %+v", question, a)
		}
	}
	if q := (&Query{Filter: Filter{Org: "o,p", API: "a b"}, Phase: Failing, After: "a,/b", Max: 7}).String(); strings.ContainsAny(q, ", ") {
		t.Errorf("the question is %q", q)
	}
}

func TestTrialsAreChecked(t *testing.T) {
	many := map[string]string{}
	for n := range 65 {
		many[fmt.Sprint(n)] = "x"
	}
	for _, c := range []struct {
		of   Trial
		want string
	}{
		{Trial{Stream: "s", Body: json.RawMessage(`"text"`)}, ""},
		{Trial{}, "stream: is required: the name of the stream; body: is required: text in a string, or JSON"},
		{Trial{Stream: "s", Body: json.RawMessage(`"` + strings.Repeat("x", 1<<20+1) + `"`)}, "body: has 1048577 bytes; at most 1048576 are possible"},
		{Trial{Stream: "s", Body: json.RawMessage("1"), Metadata: many}, "metadata: has 65 values; at most 64 are possible"},
		{Trial{Stream: "s", Body: json.RawMessage("1"), Metadata: map[string]string{"a": strings.Repeat("x", 64<<10)}}, "metadata: has 65537 bytes; at most 65536 are possible"},
	} {
		problems := c.of.Problems()
		if got := strings.Join(problems.Texts(), "; "); got != c.want {
			t.Errorf("%q", got)
		}
	}
	for body, want := range map[string]string{`"a\nb"`: "a\nb", ` {"a":1}`: ` {"a":1}`, `1`: "1", `null`: "null"} {
		if got := string((&Trial{Body: json.RawMessage(body)}).Message()); got != want {
			t.Errorf("%s became %q", body, got)
		}
	}
}

// A character that is cut through is left out.
func TestMessagesAreShownWithinBounds(t *testing.T) {
	s := NewShower()
	if m := s.Message([]byte("x"+strings.Repeat("é", 40_000)), nil); !m.Cut || len(m.Body) != 64<<10-1 || !s.Cut {
		t.Errorf("%d bytes", len(m.Body))
	}
	if m := NewShower().Message([]byte{0xff, 1}, nil); m.Body != "" || len(m.Bytes) != 2 || m.Cut {
		t.Errorf("%+v", m)
	}
}
