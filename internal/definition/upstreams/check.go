package upstreams

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A Check is a call that is made again and again to find out whether a target is
// well.
type Check struct {
	URL     string // of an address by itself; "" for one of every target
	At      string // path of URL in the definition
	Path    string // on every target, with a query if there is one
	Method  string
	Headers map[string]string
	Body    []byte

	Interval  time.Duration // between two of them, give or take a fifth
	Timeout   time.Duration // for the head of the answer
	Healthy   int           // good answers in a row after which a target is well again
	Unhealthy int           // bad ones after which it is not
	Expected  []int         // statuses of good answers; empty: 200 to 399
}

// Defaults of checks.
const (
	checkInterval = 10 * time.Second
	checkTimeout  = 2 * time.Second
	checkGood     = 2
	checkBad      = 3
	maxChecks     = 256
)

// checked is the common part of both forms.
type checked struct {
	Method    string            `json:"method"`
	Headers   map[string]string `json:"headers"`
	Interval  float64           `json:"interval"`
	Healthy   int               `json:"healthy"`
	Unhealthy int               `json:"unhealthy"`
	Expected  []int             `json:"expected"`
}

func (r *reader) healthCheck(path string, raw json.RawMessage) *Check {
	var one struct {
		checked
		Disabled bool    `json:"disabled"`
		Path     string  `json:"path"`
		Timeout  float64 `json:"timeout"`
	}
	if !decode(r, path, raw, &one) || one.Disabled {
		return nil
	}
	c := r.check(path, one.checked)
	c.Path = one.Path
	u, err := url.ParseRequestURI(one.Path)
	if err != nil || !strings.HasPrefix(one.Path, "/") || u.Host != "" || strings.ContainsAny(one.Path, "# ") {
		r.Add(path+".path", `must be a path on the target, such as "/health"`)
	}
	c.Timeout = r.within(path+".timeout", one.Timeout, 0.01, 60, min(checkTimeout, c.Interval))
	if one.Timeout != 0 && c.Timeout > c.Interval {
		r.Addf(path+".timeout", "must not be above the interval of %g seconds", c.Interval.Seconds())
	}
	return c
}

// check reads what both forms have.
func (r *reader) check(path string, one checked) *Check {
	if one.Method == "" {
		one.Method = "GET"
	}
	if !isMethod(one.Method) || one.Method == "CONNECT" {
		r.Add(path+".method", "must be a method in upper case such as GET or HEAD")
	}
	for _, name := range object.SortedKeys(one.Headers) {
		if !isToken(name) || strings.ContainsAny(one.Headers[name], "\r\n\x00") {
			r.Add(object.Entry(path+".headers", name), "must be a header name with a value of one line")
		}
	}
	for i, status := range one.Expected {
		if status < 100 || status > 599 {
			r.Add(object.Item(path+".expected", i), "must be a status from 100 to 599")
		}
	}
	return &Check{
		Method: one.Method, Headers: one.Headers, Expected: one.Expected,
		Interval:  r.within(path+".interval", one.Interval, 0.1, 3600, checkInterval),
		Healthy:   r.count(path+".healthy", one.Healthy, 100, checkGood),
		Unhealthy: r.count(path+".unhealthy", one.Unhealthy, 100, checkBad),
	}
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// uptime reads checks in the form that names addresses: URLs, or objects whose
// timeout is in nanoseconds, or a text such as "500ms".
func (r *reader) uptime(path string, raw json.RawMessage) []Check {
	var one struct {
		Disabled bool              `json:"disabled"`
		List     []json.RawMessage `json:"check_list"`
		Config   struct {
			Discovery struct {
				Use bool `json:"use_discovery_service"`
			} `json:"service_discovery"`
		} `json:"config"`
	}
	if !decode(r, path, raw, &one) || one.Disabled {
		return nil
	}
	if one.Config.Discovery.Use {
		r.Add(path+".config.service_discovery.use_discovery_service", "must not be true: this release does not look targets up in a registry; list them")
	}
	path = object.Member(path, "check_list")
	r.Count(path, len(one.List), maxChecks)
	var checks []Check
	for i, entry := range one.List {
		if c := r.uptimeEntry(object.Item(path, i), entry); c != nil {
			checks = append(checks, *c)
		}
	}
	return checks
}

func (r *reader) uptimeEntry(at string, raw json.RawMessage) *Check {
	var one struct {
		checked
		URL      string            `json:"url"`
		Body     string            `json:"body"`
		Protocol string            `json:"protocol"`
		Proxied  bool              `json:"enable_proxy_protocol"`
		Commands []json.RawMessage `json:"commands"`
		Timeout  json.RawMessage   `json:"timeout"`
	}
	if raw[0] == '"' {
		one.URL = object.Unquote(raw)
	} else if !decode(r, at, raw, &one) {
		return nil
	}
	c := r.check(at, one.checked)
	c.URL, c.At = one.URL, at+".url"
	if raw[0] == '"' {
		c.At = at
	}
	body, err := base64.StdEncoding.DecodeString(one.Body)
	if err != nil {
		r.Add(at+".body", "must be Base64")
	}
	c.Body = body
	if protocol := strings.ToLower(one.Protocol); protocol != "" && protocol != "http" && protocol != "https" {
		r.Add(at+".protocol", "must be http or https: this release makes no other checks")
	}
	if len(one.Commands) > 0 || one.Proxied {
		r.Add(at, "must have no commands and no PROXY protocol: this release makes checks by HTTP alone")
	}
	c.Timeout = r.duration(at+".timeout", one.Timeout, min(checkTimeout, c.Interval))
	return c
}

// duration reads nanoseconds, or a text with a unit.
func (r *reader) duration(path string, raw json.RawMessage, otherwise time.Duration) time.Duration {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "0" || string(raw) == `""` {
		return otherwise
	}
	var d time.Duration
	var err error
	if raw[0] == '"' {
		d, err = time.ParseDuration(object.Unquote(raw))
	} else {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil || d < time.Millisecond || d > time.Minute {
		r.Add(path, `must be from 1 ms to 1 min: a number of nanoseconds, or a text such as "500ms"`)
		return otherwise
	}
	return d
}
