package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func TestFaultsOfTransformsNameTheirField(t *testing.T) {
	rewrite := func(body string) string {
		return `{"url_rewrites": [{"path": "/a", "match_pattern": "/(a)", "rewrite_to": "/b/$1"}, ` + body + `]}`
	}
	to := func(target string) string {
		return rewrite(fmt.Sprintf(`{"path": "/a", "match_pattern": "/(a)", "rewrite_to": %q}`, target))
	}
	trigger := func(body string) string {
		return `{"url_rewrites": [{"path": "/a", "match_pattern": "/(a)", "rewrite_to": "/b", "triggers": [{"rewrite_to": "/c/$1", ` + body + `}]}]}`
	}
	places := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"path": "/a", "match_pattern": "a", "rewrite_to": "http://h%d/x"}`, i))
		}
		return `{"url_rewrites": [` + strings.Join(all, ",") + `]}`
	}
	for _, c := range []struct{ raw, want string }{
		{`{"transform_headers": [{"path": "/a", "add_headers": {"Content-Length": "5"}}]}`, `transform_headers[0].add_headers["Content-Length"]: must not be Content-Length, which the gateway itself writes`},
		{`{"transform_headers": [{"path": "/a", "add_headers": {"host": "b"}}]}`, `transform_headers[0].add_headers["host"]: must not be Host`},
		{`{"transform_headers": [{"path": "/a", "delete_headers": ["a", "connection"]}]}`, `transform_headers[0].delete_headers[1]: must not be connection`},
		{`{"transform_headers": [{"path": "/a", "add_headers": {"a b": "5"}}]}`, `transform_headers[0].add_headers["a b"]: must be a header name`},
		{`{"transform_headers": [{"path": "/a", "add_headers": {"A": "1", "a": "2"}}]}`, `transform_headers[0].add_headers["a"]: stands twice`},
		{`{"transform_headers": [{"path": "/a", "add_headers": {"A": "1\r\nB: 2"}}]}`, `transform_headers[0].add_headers["A"]: must not hold line breaks`},
		{`{"transform_headers": [{"path": "/a", "add_headers": {"A": "` + strings.Repeat("x", 9000) + `"}}]}`, `transform_headers[0].add_headers["A"]: has 9000 bytes`},
		{`{"transform_headers": [{"path": ""}]}`, `transform_headers[0].path: is empty`},
		{`{"transform_headers": [{"path": "/{a"}]}`, `transform_headers[0].path: has an opening brace`},
		{`{"transform_headers": [{"path": "/(a"}]}`, `transform_headers[0].path: error parsing regexp`},
		{`{"transform_response_headers": [{"path": "/a", "method": "get"}]}`, `transform_response_headers[0].method: must be a method such as GET`},
		{`{"transform_response_headers": [{"path": "/a", "delete_headers": ["Transfer-Encoding"]}]}`, `transform_response_headers[0].delete_headers[0]: must not be Transfer-Encoding`},
		{`{"transform_headers": {}}`, `transform_headers: must be an array`},
		{`{"transform_headers": [{"path": 1}]}`, `transform_headers[0].path: must be a string`},
		{rewrite(`{"path": "/a", "rewrite_to": "/b"}`), `url_rewrites[1].match_pattern: is required`},
		{rewrite(`{"path": "/a", "match_pattern": "(", "rewrite_to": "/b"}`), `url_rewrites[1].match_pattern: error parsing regexp`},
		{rewrite(`{"path": "/a", "match_pattern": "` + strings.Repeat("()", 32) + `", "rewrite_to": "/b"}`), `url_rewrites[1].match_pattern: has 32 groups; at most 31`},
		{rewrite(`{"path": "/a", "match_pattern": "a"}`), `url_rewrites[1].rewrite_to: is required`},
		{to("//other/x"), `url_rewrites[1].rewrite_to: must be a path below the target, or a URL`},
		{to("mailto:x"), `url_rewrites[1].rewrite_to: must be a path below the target, or a URL`},
		{to("ftp://other/x"), `url_rewrites[1].rewrite_to: must begin with http:// or https://`},
		{to("http://$1/x"), `url_rewrites[1].rewrite_to: must name the host as it is`},
		{to("http://other$1"), `url_rewrites[1].rewrite_to: must name the host as it is`},
		{to("http://other:$1/x"), `url_rewrites[1].rewrite_to: must name the host as it is`},
		{to("http://$svc_context.headers_Host/x"), `url_rewrites[1].rewrite_to: must name the host as it is`},
		{to("https://a.$svc_meta.team/x"), `url_rewrites[1].rewrite_to: must name the host as it is`},
		{places(257), `url_rewrites: name 257 hosts and APIs; at most 256 are allowed`},
		{to("svc://$1/x"), `url_rewrites[1].rewrite_to: must name the host as it is`},
		{to("svc://a:80/x"), `url_rewrites[1].rewrite_to: must name an API behind svc://`},
		{to("svc://a/x?method=POST"), `url_rewrites[1].rewrite_to: must not hold the parameter method`},
		{to("http://user@other/x"), `url_rewrites[1].rewrite_to: must not hold a user or password`},
		{to("http:///x"), `url_rewrites[1].rewrite_to: must name a host`},
		{to("http://other:99999/x"), `url_rewrites[1].rewrite_to: must have a port from 1`},
		{to("http://other/a/../b"), `url_rewrites[1].rewrite_to: must not hold the segment ".."`},
		{to("/a b"), `url_rewrites[1].rewrite_to: must not hold ' ' (byte 2)`},
		{to("/a\r\nX: 1"), `url_rewrites[1].rewrite_to: must not hold '\r' (byte 2)`},
		{to("/a#b"), `url_rewrites[1].rewrite_to: must not hold '#'`},
		{to("/a/../b"), `url_rewrites[1].rewrite_to: must not hold the segment ".."`},
		{to("/a%2/b"), `url_rewrites[1].rewrite_to: has a % at byte 2`},
		{to("/a%"), `url_rewrites[1].rewrite_to: has a % at byte 2`},
		{to("/$2"), `url_rewrites[1].rewrite_to: refers to $2, and match_pattern has 1 groups`},
		{trigger(`"on": "some", "options": {"header_matches": {"A": {"match_rx": "b"}}}`), `url_rewrites[0].triggers[0].on: must be "all" or "any"`},
		{trigger(`"options": {}`), `url_rewrites[0].triggers[0].options: must hold a condition`},
		{trigger(`"options": {"header_matches": {"A": {"match_rx": "("}}}`), `url_rewrites[0].triggers[0].options.header_matches["A"].match_rx: error parsing regexp`},
		{trigger(`"options": {"path_part_matches": {"A": {}}}`), `url_rewrites[0].triggers[0].options.path_part_matches["A"].match_rx: is required`},
		{trigger(`"options": {"payload_matches": {"match_rx": "b"}}`), `url_rewrites[0].triggers[0].options.payload_matches: asks for a feature that this release does not have`},
	} {
		_, faults := readExtended(c.raw)
		if got := joined(faults); !strings.Contains(got, c.want) {
			t.Errorf("%.200s:\n got %s\nwant %s", c.raw, got, c.want)
		}
	}
}

func TestTransformsAreReadWithoutThoseDisabled(t *testing.T) {
	v, faults := readExtended(`{
		"transform_headers": [{"path": "/a", "method": "GET", "add_headers": {"A": "b"}, "act_on": false}, {"path": "", "disabled": true}],
		"transform_response_headers": [{"path": "^/b$", "delete_headers": ["Server"], "ignore_case": true}],
		"url_rewrites": [{"path": "/x", "disabled": true}, {"path": "/c/{id}", "match_pattern": "/c/(\\d+)", "rewrite_to": "/d/$1?e=%20$svc_context.headers_A",
			"triggers": [{"on": "any", "options": {"header_matches": {"A": {"match_rx": "b", "reverse": true}}, "payload_matches": {"match_rx": ""}}, "rewrite_to": "/e"}]}]}`)
	if len(faults) > 0 {
		t.Fatal(joined(faults))
	}
	headers, responses, rewrites := v.HeaderRules(), v.ResponseHeaderRules(), v.Rewrites()
	if len(headers) != 1 || headers[0].Add["A"] != "b" || len(responses) != 1 || !responses[0].IgnoreCase ||
		len(rewrites) != 1 || rewrites[0].Path != "/c/{id}" || !rewrites[0].Triggers[0].Options.Headers["A"].Reverse {
		t.Errorf("%+v", v.ExtendedPaths)
	}
}

func TestHeadersOfAllCallsAreChecked(t *testing.T) {
	var p Problems
	v := &Version{GlobalHeaders: map[string]string{"Host": "a", "X": "b"}, GlobalHeadersRemove: []string{"a", ""}}
	p.checkGlobalHeaders("", v)
	if got := p.Error(); !strings.Contains(got, `global_headers["Host"]: must not be Host`) || !strings.Contains(got, "global_headers_remove[1]: must be a header name") {
		t.Error(got)
	}
	p, v.GlobalHeadersDisabled = nil, true
	if p.checkGlobalHeaders("", v); len(p) > 0 {
		t.Error(p.Error())
	}
}

func TestManyFaultsAreBounded(t *testing.T) {
	names := make([]string, 900)
	if faults := checkNames("global_headers_remove", names); len(faults) > object.MaxFaults+1 {
		t.Errorf("%d faults", len(faults))
	}
	if got := joined(checkNames("global_headers_remove", make([]string, 1001))); !strings.Contains(got, "has 1001 entries") {
		t.Error(got)
	}
}
