package version

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// outcome names what became of a call: pass, open, forbidden, or the status of a
// reply.
func outcome(stage pipeline.Stage, ex *pipeline.Exchange) string {
	switch stage.Handle(ex) {
	case pipeline.Rejected:
		return strings.ToLower(ex.Rejection.Reason.String())
	case pipeline.Answered:
		return "answered"
	}
	if ex.Open {
		return "open"
	}
	return "pass"
}

func TestTheFirstEntryDecides(t *testing.T) {
	for _, c := range []struct {
		version string // members of the version
		keyless string
		o       Options
		calls   map[string]string
	}{
		{version: `"paths": {"ignored": ["/both"], "black_list": ["/both", "/black", "^/[a-z]+\\.php$"], "white_list": ["/both", "/black", "/white"]}`, calls: map[string]string{
			"GET /api/both": "open", "GET /api/both/x": "open", "GET /api/black": "path_denied", "GET /api/white": "pass", "GET /api/none": "path_denied",
			"GET /api/whitex": "path_denied", "GET /api/a.php": "path_denied", "GET /api/White": "path_denied",
		}},
		{version: `"paths": {"ignored": ["/free"]}`, keyless: "true", calls: map[string]string{"GET /api/free": "pass", "GET /api/x": "pass"}},
		{version: `"paths": {"black_list": ["/api/x"]}`, calls: map[string]string{ // with the listen path, or without
			"GET /api/x": "path_denied", "GET /api/api/x": "path_denied", "GET /api/y": "pass",
		}},
		{version: `"use_extended_paths": true, "paths": {"black_list": ["/b"]}, "extended_paths": {"black_list": [{"path": "/a", "method": "POST"}], "white_list": [
			{"path": "/a"}, {"path": "/r", "method_actions": {"PUT": {"action": "reply", "code": 204}}}]}`, calls: map[string]string{
			"POST /api/a": "path_denied", "GET /api/a": "pass", "PUT /api/r": "answered", "GET /api/r": "path_denied", "GET /api/b": "path_denied",
		}},
		{version: `"ignore_endpoint_case": true, "paths": {"black_list": ["/Äpfel/{x}", "/B"]}`, calls: map[string]string{
			"GET /api/%C3%A4PFEL/1": "path_denied", "GET /api/b": "path_denied", "GET /api/c": "pass",
		}},
		{version: `"paths": {"black_list": ["/admin/keys"]}`, calls: map[string]string{ // however an upstream may read the path
			"GET /api/admin%2Fkeys": "path_denied", "GET /api/admin%5Ckeys/1": "path_denied", "GET /api/admin//keys": "path_denied",
			"GET /api/admin;v=1/keys": "path_denied", "GET /api/admin/keys;x": "path_denied", "GET /api/admin;a%2Fkeys": "path_denied",
			"GET /api/admin;a/keysx": "pass", "GET /api/admin%20/keys": "pass", "GET /api/x;/admin": "pass",
		}},
		{version: `"paths": {"ignored": ["/free"], "white_list": ["/a"]}`, calls: map[string]string{ // but only to refuse
			"GET /api/free;x": "path_denied", "GET /api/x%2Ffree": "path_denied",
		}},
		{version: `"paths": {"black_list": ["/admin"]}`, o: Options{Unanchored: true}, calls: map[string]string{
			"GET /api/x/administrator": "path_denied", "GET /api/adm": "pass",
		}},
	} {
		if c.keyless == "" {
			c.keyless = "false"
		}
		def := define(t, `"use_keyless": `+c.keyless+`, "version_data": {"not_versioned": true, "versions": {"v": {`+c.version+`}}}`)
		api, stage := compiled(t, def, c.o)
		for call, want := range c.calls {
			if got := outcome(stage, request(t, api, call)); got != want {
				t.Errorf("{%s} %s: %s, want %s", c.version, call, got, want)
			}
		}
	}
}

// A path that begins with the version's name is held against entries that leave it
// out as well, and the first entry of all decides.
func TestEntriesMayLeaveTheVersionOut(t *testing.T) {
	def := define(t, `"definition": {"location": "url"}, "version_data": {"versions": {"v1": {"paths": {"ignored": ["/open"], "black_list": ["/v1/open/x", "/secret"]}}}}`)
	api, stage := compiled(t, def, Options{})
	for call, want := range map[string]string{
		"GET /api/v1/open": "open", "GET /api/v1/open/x": "open", "GET /api/v1/secret": "path_denied", "GET /api/v1/v1/secret": "pass",
		"GET /api/v1/x/open": "pass", "GET /api/v1/v1/open": "pass",
	} {
		if got := outcome(stage, request(t, api, call)); got != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
}

func TestRepliesAreCompleteAnswers(t *testing.T) {
	def := define(t, `"version_data": {"not_versioned": true, "versions": {"v": {"use_extended_paths": true, "extended_paths": {"mock_response": [
		{"path": "/a", "method": "GET", "code": 201, "body": "{}", "headers": {"x-b": "c"}}, {"path": "/n", "code": 304}]}}}}`)
	api, _ := compiled(t, def, Options{})
	stage, err := Mocks(api.Version.Definition, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		head    string
		status  int
		body    string
		bare    bool
		length  int64
		verdict pipeline.Verdict
	}{
		{"GET /api/a", 201, "{}", false, 0, pipeline.Answered},
		{"HEAD /api/a", 201, "{}", true, 2, pipeline.Answered},
		{"GET /api/n", 304, "", true, -1, pipeline.Answered},
		{"POST /api/a\nContent-Length: 0", 0, "", false, 0, pipeline.Next},
	} {
		ex := request(t, api, c.head)
		if v := stage.Handle(ex); v != c.verdict {
			t.Errorf("%s: verdict %d", c.head, v)
		}
		a := ex.Answer
		if a.Status != c.status || string(a.Body) != c.body || a.NoBody != c.bare || a.Length != c.length {
			t.Errorf("%s: %d %q, no body %v, length %d", c.head, a.Status, a.Body, a.NoBody, a.Length)
		}
		if want := "X-B: c\r\nContent-Type: application/json\r\n"; c.status == 201 && string(a.Lines) != want {
			t.Errorf("%s: %q", c.head, a.Lines)
		}
		f := &pipeline.Finding{}
		stage.(pipeline.Explainer).Explain(ex, f)
		if (c.verdict == pipeline.Answered) != (len(f.Facts) == 1) || f.Said == "" {
			t.Errorf("%s: explained by %+v", c.head, f)
		}
	}
}

func TestBodiesAreHeldAgainstTheirBound(t *testing.T) {
	def := define(t, `"version_data": {"not_versioned": true, "versions": {"v": {"global_size_limit": 8, "use_extended_paths": true, "extended_paths": {
		"size_limits": [{"path": "/s", "method": "POST", "size_limit": 3}, {"path": "/l", "size_limit": 9}]}}}}`)
	api, _ := compiled(t, def, Options{})
	stage, err := Sizes(api.Version.Definition, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		head string
		want *pipeline.Rejection
		fact string
	}{
		{"POST /api/s\nContent-Length: 3\n\nabc", nil, "extended_paths.size_limits[0].size_limit 3"},
		{"POST /api/s\nContent-Length: 4\n\nabcd", tooLarge, "extended_paths.size_limits[0].size_limit 3"},
		{"POST /api/s;x\nContent-Length: 4\n\nabcd", tooLarge, "extended_paths.size_limits[0].size_limit 3"},
		{"POST /api/s%2Fx\nContent-Length: 4\n\nabcd", tooLarge, "extended_paths.size_limits[0].size_limit 3"},
		{"PUT /api/s\nContent-Length: 4\n\nabcd", nil, "global_size_limit 8"},
		{"PUT /api/l\nContent-Length: 9\n\nabcdefghi", tooLarge, "global_size_limit 8"},
		{"POST /api/x", noLength, "global_size_limit 8"},
		{"POST /api/x\nContent-Length: 0", nil, "global_size_limit 8"},
		{"DELETE /api/x\nContent-Length: 9\n\nabcdefghi", nil, ""},
		{"GET /api/x", nil, ""},
	} {
		head, body, _ := strings.Cut(c.head, "\n\n")
		ex := requestWith(t, api, head, body)
		verdict := stage.Handle(ex)
		f := &pipeline.Finding{Verdict: verdict}
		stage.(pipeline.Explainer).Explain(ex, f)
		fact := ""
		if len(f.Facts) > 0 {
			fact = f.Facts[0].Rule + " " + f.Facts[0].Value
		}
		if ex.Rejection != c.want || fact != c.fact || f.Said == "" || (f.Fix == "") != (c.want == nil) {
			t.Errorf("%q: %+v, explained by %+v", c.head, ex.Rejection, f)
		}
	}
	ex := requestWith(t, api, "POST /api/x\nTransfer-Encoding: chunked", "123456789")
	if stage.Handle(ex) != pipeline.Next {
		t.Fatalf("refused: %+v", ex.Rejection)
	}
	var room [20]byte
	n, err := ex.Call.Stream.Read(room[:])
	if _, end := ex.Call.Stream.Read(room[:]); n != 8 || err != nil || end == nil || end.Error() != "request body above the limit of its path" {
		t.Errorf("read %d bytes, %v, then %v", n, err, end)
	}
}

func TestListsAndSizesDoNotAllocate(t *testing.T) {
	def := define(t, `"version_data": {"not_versioned": true, "versions": {"v": {"global_size_limit": 8, "use_extended_paths": true, "extended_paths": {
		"size_limits": [{"path": "/s", "method": "POST", "size_limit": 3}], "mock_response": [{"path": "/s", "method": "GET", "body": "x"}]}}}}`)
	api, _ := compiled(t, def, Options{})
	sizes, _ := Sizes(api.Version.Definition, Options{})
	mocks, _ := Mocks(api.Version.Definition, Options{})
	for _, head := range []string{"GET /api/s", "POST /api/s\nContent-Length: 0", "POST /api/s"} {
		ex := request(t, api, head)
		if n := testing.AllocsPerRun(1000, func() {
			ex.Answer.Lines = ex.Answer.Lines[:0]
			sizes.Handle(ex)
			mocks.Handle(ex)
		}); n != 0 && !race.Enabled {
			t.Errorf("%s: %v allocations", head, n)
		}
	}
}
