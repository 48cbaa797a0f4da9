package traffic

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// errorBody is the body of the gateway's own answers.
func errorBody(text string) string { return "{\n    \"error\": \"" + text + "\"\n}" }

const (
	textMissing  = "Authorization field missing"
	textNoAccess = "Access to this API has been disallowed"
	textNoURL    = "Access to this resource has been disallowed"
	textInactive = "Key is inactive, please renew"
	textExpired  = "Key has expired, please renew"
	textRate     = "Rate Limit Exceeded"
	textQuota    = "Quota exceeded"
)

// rights is a gateway with two keyed APIs and policies.
func rights(t *testing.T, with settings) (*traffic, *scripted) {
	up, address := newScripted(t, noContent)
	off := object{"id": "off", "name": "off", "is_inactive": true, "access_rights": rig.AccessTo("one")}
	free := rig.APIDef("free", "http://"+address, false)
	free["disable_quota"], free["disable_rate_limit"] = true, true
	g := newTraffic(t, with, object{
		"off":  off,
		"ten":  object{"name": "ten", "quota_max": 10, "quota_renewal_rate": 3600, "rate": 1000, "per": 1, "access_rights": rig.AccessTo("one", "two", "free")},
		"slow": object{"name": "slow", "rate": 3, "per": 2, "access_rights": rig.AccessTo("one")},
	}, rig.APIDef("one", "http://"+address, false), rig.APIDef("two", "http://"+address, false), free)
	return g, up
}

// Every row of what a credential can be, with its status, text and shape.
func TestWhatACredentialMayDo(t *testing.T) {
	t.Parallel()
	g, up := rights(t, nil)
	urls := rig.AccessTo("one")
	urls["one"].(object)["allowed_urls"] = []object{{"url": "/allowed/.*", "methods": []string{"GET", "POST"}}}
	tomorrow, yesterday := time.Now().Add(24*time.Hour).Unix(), time.Now().Add(-24*time.Hour).Unix()
	keys := map[string]string{
		"good":     g.newKey(object{"access_rights": rig.AccessTo("one"), "expires": tomorrow}),
		"policy":   g.newKey(object{"apply_policies": []string{"ten"}}),
		"other":    g.newKey(object{"access_rights": rig.AccessTo("two")}),
		"expired":  g.newKey(object{"access_rights": rig.AccessTo("one"), "expires": yesterday}),
		"inactive": g.newKey(object{"access_rights": rig.AccessTo("one"), "is_inactive": true}),
		"off":      g.newKey(object{"apply_policies": []string{"off"}}),
		"urls":     g.newKey(object{"access_rights": urls}),
	}
	torn := keys["good"][:len(keys["good"])-1] + "!"
	for _, c := range []struct {
		method, path, token string
		status              int
		text                string
	}{
		{"GET", "/one/x", "", 401, textMissing},
		{"GET", "/one/x", "Bearer ", 401, textMissing},
		{"GET", "/one/x", "ab", 403, textNoAccess},
		{"GET", "/one/x", "no-such-key", 403, textNoAccess},
		{"GET", "/one/x", torn, 403, textNoAccess},
		{"GET", "/one/x", keys["good"] + keys["good"], 403, textNoAccess},
		{"GET", "/one/x", strings.Repeat("x", 8000), 403, textNoAccess},
		{"GET", "/one/x", keys["good"], 200, ""},
		{"GET", "/one/x", "Bearer " + keys["good"], 200, ""},
		{"GET", "/two/x", keys["good"], 403, textNoAccess},
		{"GET", "/one/x", keys["other"], 403, textNoAccess},
		{"GET", "/one/x", keys["policy"], 200, ""},
		{"GET", "/one/x", keys["expired"], 401, textExpired},
		{"GET", "/one/x", keys["inactive"], 403, textInactive},
		{"GET", "/one/x", keys["off"], 403, textInactive},
		{"GET", "/one/allowed/x", keys["urls"], 200, ""},
		{"POST", "/one/allowed/x", keys["urls"], 200, ""},
		{"DELETE", "/one/allowed/x", keys["urls"], 403, textNoURL},
		{"GET", "/one/denied", keys["urls"], 403, textNoURL},
		{"GET", "/one/%61llowed/x", keys["urls"], 200, ""},
		{"GET", "/one/allowed/../denied", keys["urls"], 400, "The request path is ambiguous or malformed"},
		{"GET", "/none/x", keys["good"], 404, ""},
	} {
		before := len(up.with(""))
		raw := c.method + " " + c.path + " HTTP/1.1\r\nHost: a\r\n"
		if c.token != "" {
			raw += "Authorization: " + c.token + "\r\n"
		}
		got := parse(t, conversation(t, g.addr, raw+"\r\n"), c.method)
		name := fmt.Sprintf("%s %s with %.20q", c.method, c.path, c.token)
		if len(got) != 1 || got[0].Status != c.status || c.text != "" && got[0].Body != errorBody(c.text) {
			t.Errorf("%s: %v, want %d %s", name, got, c.status, c.text)
			continue
		}
		if kind := got[0].Header.Get("Content-Type"); c.text != "" && kind != "application/json" {
			t.Errorf("%s: Content-Type %s", name, kind)
		}
		if reached := len(up.with("")) - before; reached != 0 && c.status != 200 {
			t.Errorf("%s: %d requests reached the upstream", name, reached)
		}
	}
}

// Errors are XML for who sends XML.
func TestErrorsSpeakXMLToWhoSendsIt(t *testing.T) {
	t.Parallel()
	g, _ := rights(t, nil)
	full := g.newKey(object{"access_rights": rig.AccessTo("one"), "quota_max": 1, "quota_renewal_rate": 3600})
	rig.Call(t, "GET", g.Traffic+"/one/x", nil, "Authorization", full)
	for _, kind := range []string{"application/xml", "text/xml", "application/soap+xml", "text/xml; charset=utf-8"} {
		for token, want := range map[string]struct {
			status int
			text   string
		}{"": {401, textMissing}, "unknown": {403, textNoAccess}, full: {403, textQuota}} {
			headers := []string{"Content-Type", kind}
			if token != "" {
				headers = append(headers, "Authorization", token)
			}
			got := rig.Call(t, "POST", g.Traffic+"/one/x", "<x/>", headers...)
			media, _, _ := strings.Cut(kind, ";")
			if body := "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<error>" + want.text + "</error>"; got.Status != want.status || got.Body != body || got.Header.Get("Content-Type") != media {
				t.Errorf("%s, token %.9q: %s", kind, token, got)
			}
		}
	}
	if got := rig.Call(t, "POST", g.Traffic+"/one/x", "<x/>", "Content-Type", "application/xmlish"); got.Body != errorBody(textMissing) {
		t.Errorf("another type: %s", got)
	}
}

// limitsOf are the headers that tell a client its quota.
func limitsOf(a rig.Answer) (limit, remaining string, renewal time.Duration) {
	at, _ := strconv.ParseInt(a.Header.Get("X-RateLimit-Reset"), 10, 64)
	return a.Header.Get("X-RateLimit-Limit"), a.Header.Get("X-RateLimit-Remaining"), time.Until(time.Unix(at, 0))
}

// A quota of ten is ten, over all APIs of the key; the eleventh call is refused
// and costs nothing.
func TestAQuotaIsCountedAndTold(t *testing.T) {
	t.Parallel()
	g, up := rights(t, nil)
	key := g.newKey(object{"apply_policies": []string{"ten"}})
	for i := range 14 {
		path := []string{"/one/x", "/two/x"}[i%2]
		got := rig.Call(t, "GET", g.Traffic+path, nil, "Authorization", key)
		limit, remaining, renewal := limitsOf(got)
		want, left := 200, 9-i
		if i >= 10 {
			want, left = 403, 0
			if got.Body != errorBody(textQuota) {
				t.Errorf("call %d: %s", i+1, got)
			}
		}
		if got.Status != want || limit != "10" || remaining != strconv.Itoa(left) || renewal > time.Hour+time.Second || renewal < 59*time.Minute {
			t.Errorf("call %d: %s; quota %s, %s left, renewed in %s", i+1, got, limit, remaining, renewal)
		}
	}
	if n := len(up.with("")); n != 10 {
		t.Errorf("%d requests reached the upstream", n)
	}
	for range 3 {
		if got := rig.Call(t, "GET", g.Traffic+"/free/x", nil, "Authorization", key); got.Status != 200 {
			t.Errorf("an API that does not count refuses: %s", got)
		}
	}
	if got := rig.Call(t, "POST", g.Control+"/svc/keys/reset/"+key, nil, "X-Svc-Authorization", testSecret); got.Status != 200 {
		t.Fatalf("reset: %s", got)
	}
	if got := rig.Call(t, "GET", g.Traffic+"/one/x", nil, "Authorization", key); got.Status != 200 || got.Header.Get("X-RateLimit-Remaining") != "9" {
		t.Errorf("after the reset: %s", got)
	}
}

// However many ask at once, a quota admits exactly what it says.
func TestAQuotaIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	g, _ := rights(t, nil)
	key := g.newKey(object{"access_rights": rig.AccessTo("one"), "quota_max": 137, "quota_renewal_rate": 3600})
	var admitted, denied atomic.Int64
	var working sync.WaitGroup
	for range 16 {
		working.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for range 25 {
				got, err := rig.SendBy(client, "GET", g.Traffic+"/one/x", nil, "Authorization", key)
				switch {
				case err != nil:
					t.Error(err)
				case got.Status == 200:
					admitted.Add(1)
				case got.Status == 403:
					denied.Add(1)
				default:
					t.Errorf("got %s", got)
				}
			}
		})
	}
	working.Wait()
	if admitted.Load() != 137 || denied.Load() != 400-137 {
		t.Errorf("%d admitted, %d denied", admitted.Load(), denied.Load())
	}
}

// No window of two seconds admits more than three calls, and a refusal says when
// to come again.
func TestARateHoldsInEveryWindow(t *testing.T) {
	t.Parallel()
	g, _ := rights(t, nil)
	key := g.newKey(object{"apply_policies": []string{"slow"}})
	var asked, admitted []time.Time // when a call that was admitted was sent, and when its answer was there
	for end := time.Now().Add(rig.Patience); len(admitted) < 9; {
		sent := time.Now()
		if sent.After(end) {
			t.Fatalf("%d calls were admitted in %s", len(admitted), rig.Patience)
		}
		got := rig.Call(t, "GET", g.Traffic+"/one/x", nil, "Authorization", key)
		switch got.Status {
		case 200:
			asked, admitted = append(asked, sent), append(admitted, time.Now())
		case 429:
			after, err := strconv.Atoi(got.Header.Get("Retry-After"))
			if got.Body != errorBody(textRate) || err != nil || after < 1 || after > 2 {
				t.Fatalf("got %s", got)
			}
		default:
			t.Fatalf("got %s", got)
		}
	}
	for i := 3; i < len(admitted); i++ { // the gateway decided in between
		if window := admitted[i].Sub(asked[i-3]); window < 2*time.Second {
			t.Errorf("four calls within %s", window)
		}
	}
}

// commands returns how often a store was asked, by command.
func commands(s *testenv.Store) map[string]int {
	counts := make(map[string]int)
	for line := range strings.Lines(s.Do("INFO", "commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		counts[name], _ = strconv.Atoi(number)
	}
	return counts
}

// asked is how many commands other than house-keeping came between two counts.
func asked(before, after map[string]int) (sum int, which []string) {
	for name, n := range after {
		switch name {
		case "info", "ping", "hello", "client|tracking", "client|setinfo", "command", "role", "subscribe", "psubscribe", "config|resetstat", "expire":
			continue
		}
		if more := n - before[name]; more > 0 {
			sum += more
			which = append(which, fmt.Sprintf("%s %d", name, more))
		}
	}
	return sum, which
}

// Keys that nobody issued do not reach the store: by their form, by their
// checksum, or because they are known to be unknown.
func TestUnknownKeysDoNotReachTheStore(t *testing.T) {
	t.Parallel()
	store := testenv.Valkey(t)
	g, _ := rights(t, settings{"valkey.url": "redis://" + store.Addr, "valkey.timeout": "5s", "keys.negative_ttl": "60s"})
	good := g.newKey(object{"access_rights": rig.AccessTo("one")})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(token string, want int) {
		t.Helper()
		got, err := rig.SendBy(client, "GET", g.Traffic+"/one/x", nil, "Authorization", token)
		if err != nil || got.Status != want {
			t.Fatalf("%v, %s; want %d", err, got, want)
		}
	}
	ask(good, 200)
	ask("unknown-but-well-formed", 403)
	before := commands(store)
	flooded := time.Now()
	const flood = 2000
	for i := range flood {
		ask(fmt.Sprintf("%s%032x", good[:4], i), 403) // as issued keys look, but for the checksum
		if i%10 == 0 {
			ask("ab", 403)
			ask("unknown-but-well-formed", 403)
		}
	}
	if n, which := asked(before, commands(store)); n > 2+int(time.Since(flooded)/time.Second) {
		t.Errorf("the store was asked %d times: %q", n, which)
	}
	before = commands(store)
	began := time.Now()
	for i := range 300 {
		ask(fmt.Sprintf("custom-id-%d", i), 403)
	}
	probes := 1 + int(time.Since(began)/time.Second) // of the gateway, whether the store answers
	// Each may be an id that somebody chose, so that the store is asked, once.
	if n, which := asked(before, commands(store)); n > 300+probes {
		t.Errorf("the store was asked %d times about 300 different keys: %q", n, which)
	}
	ask(good, 200)
}

// What cannot be served as it is written is refused, by name, and not left to an
// API whose listen path is shorter.
func TestABrokenDefinitionIsServedByNobody(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	all := rig.APIDef("all", "http://"+address, true)
	all["proxy"].(object)["listen_path"] = "/"
	later := rig.APIDef("later", "http://"+address, false)
	later["enable_jwt"] = true
	g := newTraffic(t, nil, nil, all, later)
	got := rig.Call(t, "GET", g.Traffic+"/later/x", nil)
	if got.Status != 503 || got.Reason() != "not_served" || len(up.with("")) != 0 {
		t.Errorf("%s; the upstream was asked %q", got, up.with(""))
	}
	if got := rig.Call(t, "GET", g.Traffic+"/x", nil); got.Status != 200 {
		t.Errorf("the other API: %s", got)
	}
	if err := rig.Lacks(g.logged(), `"reason":"not_served"`); err != nil {
		t.Errorf("the access log does not tell of the refusal")
	}
	g.AwaitLog("jwt_signing_method")
}
