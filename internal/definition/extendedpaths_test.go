package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func TestBothFormsOfAnEntryAreRead(t *testing.T) {
	v, faults := readExtended(`{
		"ignored": [{"path": "/health"}, {"path": "/off", "disabled": true}],
		"black_list": [{"path": "/admin/{id}", "method": "delete", "ignore_case": true}],
		"white_list": [
			{"path": "/old", "method_actions": {"GET": {"action": "no_action", "code": 200, "data": "", "headers": {}}, "POST": {}, "PUT": {"action": ""}}},
			{"path": "/mock", "ignore_case": true, "method_actions": {"get": {"action": "reply", "code": 418, "data": "{\"a\": 1}", "headers": {"x-a": "b"}}}}
		],
		"mock_response": [{"path": "/m", "method": "POST", "code": 201, "body": "text", "headers": {"content-type": "text/html"}}, {"path": "/n", "disabled": true, "code": 7}],
		"size_limits": [{"path": "/s", "method": "PUT", "size_limit": 10}, {"path": "/t", "size_limit": 0}],
		"unknown": 5
	}`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	r := v.PathRules()
	want := strings.Join([]string{
		`ignored [{{/health  false false} extended_paths.ignored[0] <nil>}]`,
		`black [{{/admin/{id} DELETE true false} extended_paths.black_list[0] <nil>}]`,
		`white GET /old POST /old PUT /old GET /mock`,
		`reply 418 [{X-A b} {Content-Type application/json}] {"a": 1}`,
		`mocks [{{/m POST false false} extended_paths.mock_response[0] {201 [{Content-Type text/html}] text}}]`,
		`sizes [{{/s PUT false false} extended_paths.size_limits[0] 10}]`,
	}, "\n")
	var white strings.Builder
	for _, w := range r.White {
		white.WriteString(" " + w.Method + " " + w.Path)
	}
	last := r.White[3].Reply
	got := fmt.Sprintf("ignored %v\nblack %v\nwhite%s\nreply %d %v %s\nmocks %v\nsizes %v",
		r.Ignored, r.Black, white.String(), last.Status, last.Headers, last.Body, r.Mocks, r.Sizes)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !r.White[3].IgnoreCase || !r.Decides() {
		t.Errorf("%+v", r.White[3])
	}
}

func TestNothingIsSaidByNothing(t *testing.T) {
	for _, raw := range []string{"", "null", "{}", `{"ignored": null, "white_list": []}`} {
		v, faults := readExtended(raw)
		r := v.PathRules()
		if len(faults) > 0 || r.Decides() || len(r.Mocks)+len(r.Sizes) > 0 {
			t.Errorf("%s: %+v, %v", raw, r, faults)
		}
	}
}

func TestSimpleListsAreAboutEveryMethod(t *testing.T) {
	reader := pathReader{}
	reader.read(&Version{Paths: &PathLists{Ignored: []string{"/a"}, Black: []string{"/b", "^/c"}, White: []string{"("}}})
	r, faults := reader.rules, reader.faults
	if len(r.Ignored) != 1 || len(r.Black) != 2 || r.Black[1] != (PathRule{PathMatch: PathMatch{Path: "^/c"}, At: "paths.black_list[1]"}) || len(r.White) != 0 {
		t.Errorf("%+v", r)
	}
	if len(faults) != 1 || faults[0].Path != "paths.white_list[0]" || !strings.Contains(faults[0].Message, "missing closing )") {
		t.Errorf("%v", faults)
	}
}

func TestAnswersWithoutATypeAreGivenOne(t *testing.T) {
	for body, want := range map[string]string{
		"":      "",
		"hello": "text/plain; charset=utf-8",
		"[1]":   "application/json",
	} {
		r := &pathReader{}
		reply, ok := r.reply("", writtenReply{body: body})
		var got strings.Builder
		for _, h := range reply.Headers {
			got.WriteString(h.Value)
		}
		if !ok || reply.Status != 200 || got.String() != want {
			t.Errorf("%q: %+v", body, reply)
		}
	}
}

func TestFaultsOfPathsHaveTheirPath(t *testing.T) {
	mock := func(members string) string {
		return `{"mock_response": [{"path": "/a"}, {"path": "/b", ` + members + `}]}`
	}
	for _, c := range []struct{ raw, path, message string }{
		{`{"ignored": 5}`, "ignored", "must be an array, not a number"},
		{`{"ignored": [7]}`, "ignored[0]", "must be an object, not a number"},
		{`{"ignored": [{}]}`, "ignored[0].path", `is empty; "/" matches every path`},
		{`{"black_list": [{"path": "/a"}, {"path": "/("}]}`, "black_list[1].path", "missing closing )"},
		{`{"white_list": [{"path": "/a", "method": "GET /"}]}`, "white_list[0].method", "must be a method such as GET"},
		{`{"white_list": [{"path": "/a", "method": "GET", "method_actions": {"GET": {}}}]}`, "white_list[0].method", "leave one of them out"},
		{`{"white_list": [{"path": "/a", "method_actions": {"G T": {}}}]}`, `white_list[0].method_actions["G T"]`, "must be a method"},
		{`{"white_list": [{"path": "/a", "method_actions": {"": {}}}]}`, `white_list[0].method_actions[""]`, "must be named by a method"},
		{`{"white_list": [{"path": "/a", "method_actions": {"GET": {"action": "drop"}}}]}`, `white_list[0].method_actions["GET"].action`, `not "drop"`},
		{`{"white_list": [{"path": "/a", "method_actions": {"GET": {"action": "reply", "code": 204, "data": "x"}}}]}`, `white_list[0].method_actions["GET"].data`, "status 204 has no body"},
		{mock(`"code": 199`), "mock_response[1].code", "from 200 to 599, not 199"},
		{mock(`"code": "200"`), "mock_response[1].code", "must be a whole number, not a string"},
		{mock(`"headers": {"a b": "c"}`), `mock_response[1].headers["a b"]`, "must be a header name"},
		{mock(`"headers": {"transfer-encoding": "chunked"}`), `mock_response[1].headers["transfer-encoding"]`, "written by the gateway itself"},
		{mock(`"headers": {"a": "b\r\nc: d"}`), `mock_response[1].headers["a"]`, "must not hold control characters"},
		{mock(`"code": 304, "body": "x"`), "mock_response[1].body", "status 304 has no body"},
		{`{"size_limits": [{"path": "/a", "size_limit": -1}]}`, "size_limits[0].size_limit", "must not be negative"},
	} {
		_, faults := readExtended(c.raw)
		if len(faults) != 1 || faults[0].Path != c.path || !strings.Contains(faults[0].Message, c.message) {
			t.Errorf("%s: %+v, want %s: %s", c.raw, faults, c.path, c.message)
		}
	}
}

func TestLongListsAreRefused(t *testing.T) {
	raw := `{"ignored": [` + strings.Repeat(`{"path": "/a"}, `, maxPathEntries) + `{"path": "/a"}]}`
	if _, faults := readExtended(raw); len(faults) != 1 || !strings.Contains(faults[0].Message, "at most 10000") {
		t.Error(faults)
	}
}

func FuzzListsOfPaths(f *testing.F) {
	f.Add([]byte(`{"ignored": [{"path": "/a", "method_actions": {"GET": {"action": "reply"}}}]}`))
	f.Add([]byte(`{"mock_response": [{"path": "/{a}", "code": 500, "headers": {"A": "b"}}], "size_limits": [{"path": "/", "size_limit": 1e3}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if object.Check(raw, 1<<20) != nil {
			return
		}
		v, faults := readExtended(string(raw))
		r := v.PathRules()
		for _, fault := range faults {
			if fault.Message == "" {
				t.Errorf("%+v", fault)
			}
		}
		for _, m := range r.Mocks {
			for _, h := range m.Reply.Headers {
				if strings.ContainsAny(h.Name+h.Value, "\r\n\x00") {
					t.Errorf("%+v", m)
				}
			}
		}
	})
}
