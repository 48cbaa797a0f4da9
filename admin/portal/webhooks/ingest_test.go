package webhooks

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

const (
	connector = "the secret of a connector" // of every API here, unless a test says otherwise
	ordersAPI = "orders"
)

// streaming is a definition whose stream sends events of some types to the portal. A
// fan-out takes several.
func streaming(id, secret string, keyless bool, types ...string) string {
	var outputs []string
	for _, event := range types {
		outputs = append(outputs, fmt.Sprintf(`{"portal_webhook":{"event_type":%q,"portal_url":"https://portal.example.org/portal/events","secret":%q}}`, event, secret))
	}
	return fmt.Sprintf(`{"api_id":%[1]q,"name":%[1]q,"org_id":"","use_keyless":%[2]v,"proxy":{"listen_path":"/%[1]s/","target_url":""},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default"}}},
		"x-svc-streaming":{"streams":{"out":{"input":{"http_server":{"path":"/in"}},"output":{"broker":{"pattern":"fan_out","outputs":[%[3]s]}}}}}}`,
		id, keyless, strings.Join(outputs, ","))
}

// publish changes the configuration of an organisation.
func (b *bench) publish(org string, change func(context.Context, *store.Change) error) {
	b.t.Helper()
	if _, err := b.store.Publish(b.t.Context(), store.Author{Org: org, Name: "test", Kind: "system", Source: "api"}, change); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) parsed(body string) *definition.API {
	b.t.Helper()
	api, err := definition.ParseAPI([]byte(body))
	if err != nil {
		b.t.Fatal(err)
	}
	return api
}

func (b *bench) createAPI(org, body string) {
	b.t.Helper()
	api := b.parsed(body)
	b.publish(org, func(ctx context.Context, c *store.Change) error { return c.CreateAPI(ctx, api) })
}

func (b *bench) updateAPI(org, body string) {
	b.t.Helper()
	api := b.parsed(body)
	b.publish(org, func(ctx context.Context, c *store.Change) error {
		_, err := c.UpdateAPI(ctx, api, 0)
		return err
	})
}

// giveKey gives a developer a key with a session, as JSON.
func (b *bench) giveKey(hash, developer, session string) {
	b.t.Helper()
	s := new(definition.Session)
	if err := json.Unmarshal([]byte(session), s); err != nil {
		b.t.Fatal(err)
	}
	apis := []string{}
	for api := range s.AccessRights {
		apis = append(apis, api)
	}
	b.Exec(`insert into keys (key_hash, org_id, active, expires_at, apis, policies, body) values ($1, 'o', $2, case when $3 > 0 then to_timestamp($3) end, $4, $5, $6::text::json)`,
		hash, !s.IsInactive, s.Expires, apis, append([]string{}, s.Policies()...), session)
	b.Exec(`insert into developer_keys (key_hash, org_id, developer_id, policies) values ($1, 'o', $2, $3)`, hash, developer, append([]string{}, s.Policies()...))
}

const ordersKey = `{"org_id":"o","access_rights":{"orders":{"api_id":"orders"}}}`

// withOrders is a bench with an API whose stream sends order.created, and a developer who
// may call it.
func withOrders(t testing.TB, o options) *bench {
	b := start(t, o)
	b.createAPI("o", streaming(ordersAPI, connector, false, "order.created"))
	b.giveKey("k1", "d1", ordersKey)
	return b
}

// subscribe adds a webhook for events of a stream.
func (b *bench) subscribe(who, url string, events ...string) added {
	b.t.Helper()
	list, err := json.Marshal(events)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.add(who, me, fmt.Sprintf(`{"url":%q,"events":%s}`, url, list))
}

// A sent event is a message of a portal_webhook output. Members that are empty have what is
// right.
type sentEvent struct {
	id, body, secret, stamp, signature string
	at                                 time.Time
	without                            string // a header that is left out
}

const orderBody = `{"type":"order.created","timestamp":"2026-01-02T03:04:05Z","api_id":"orders","stream":"out","data":{"id":1.50,"text":"<ü>"}}`

func (b *bench) send(e sentEvent) *admintest.Answer {
	b.t.Helper()
	or := func(text *string, usual string) {
		if *text == "" {
			*text = usual
		}
	}
	or(&e.id, "m-1")
	or(&e.body, orderBody)
	or(&e.secret, connector)
	if e.at.IsZero() {
		e.at = time.Now()
	}
	or(&e.stamp, strconv.FormatInt(e.at.Unix(), 10))
	or(&e.signature, webhooksign.Sign([][]byte{webhooksign.Key(e.secret)}, e.id, e.stamp, []byte(e.body)))
	var headers []string
	for _, h := range [][2]string{{webhooksign.IDHeader, e.id}, {webhooksign.TimestampHeader, e.stamp}, {webhooksign.SignatureHeader, e.signature}} {
		if h[0] != e.without {
			headers = append(headers, h[0], h[1])
		}
	}
	return b.Call("POST", EventsPath, "", e.body, headers...)
}

// taken is what the portal says of an event that it took.
func (b *bench) taken(e sentEvent) Taken {
	b.t.Helper()
	var answer struct{ Meta Taken }
	b.send(e).Want(202).Into(&answer)
	return answer.Meta
}

// counted is how many messages of streams had a result.
func (b *bench) counted(result string) float64 {
	b.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.service.Metrics())
	all, err := registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func serve(t testing.TB, r *receiver) string {
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAnEventOfAStreamReachesSubscribedDevelopers(t *testing.T) {
	b := withOrders(t, options{private: true})
	b.giveKey("k2", "d2", ordersKey)
	var mine, theirs, others, star receiver
	hook := b.subscribe(dev, serve(t, &mine), "order.created")
	b.subscribe(dev2, serve(t, &theirs), "order.created", "*")
	b.subscribe(dev2, serve(t, &star), "*")
	b.add(editor, here, fmt.Sprintf(`{"url":%q,"events":["*"]}`, serve(t, &others)))
	if got := b.taken(sentEvent{}); got != (Taken{Queued: 2}) {
		t.Errorf("taken %+v", got)
	}
	wait.Until(t, "both have it", func() bool { return len(mine.messages()) == 1 && len(theirs.messages()) == 1 })
	m := mine.messages()[0]
	if want := `{"type":"order.created","timestamp":"2026-01-02T03:04:05Z","api_id":"orders","data":{"id":1.50,"text":"<ü>"}}`; m.body != want {
		t.Errorf("it says %s", m.body)
	}
	if err := verify(hook.Meta.Secret, m.header, m.body, time.Now()); err != nil {
		t.Error(err)
	}
	if other := theirs.messages()[0]; other.header.Get("webhook-id") == m.header.Get("webhook-id") || other.body != m.body {
		t.Errorf("another webhook got %s %s", other.header.Get("webhook-id"), other.body)
	}
	b.stop()
	if len(star.messages())+len(others.messages()) > 0 {
		t.Error("* stands for events of streams")
	}
	if n := b.counted("queued"); n != 1 {
		t.Errorf("%v counted", n)
	}
}

func TestAnIDIsTakenOnceForEachWebhook(t *testing.T) {
	b := withOrders(t, options{private: true})
	var r receiver
	hook := b.subscribe(dev, serve(t, &r), "order.created")
	const many = 8
	var queued, repeated int64
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range many { // at the same time
		calls.Go(func() {
			got := b.taken(sentEvent{})
			mu.Lock()
			defer mu.Unlock()
			queued, repeated = queued+got.Queued, repeated+got.Repeated
		})
	}
	calls.Wait()
	if queued != 1 || b.Count("select count(*) from deliveries") != 1 {
		t.Errorf("queued %d times, repeated %d", queued, repeated)
	}
	wait.Until(t, "it is done", func() bool { return b.deliveries(hook.ID)[0].State == store.MessageDone })
	later := sentEvent{body: strings.Replace(orderBody, "03:04:05", "09:09:09", 1)} // taken in once more by the gateway
	if got := b.taken(later); got != (Taken{Repeated: 1}) {
		t.Errorf("taken %+v", got)
	}
	var second receiver
	b.subscribe(dev, serve(t, &second), "order.created")
	if got := b.taken(later); got != (Taken{Queued: 1, Repeated: 1}) {
		t.Errorf("with another webhook: taken %+v", got)
	}
	wait.Until(t, "the other has it", func() bool { return len(second.messages()) == 1 })
	if got := b.taken(sentEvent{id: "m-2"}); got != (Taken{Queued: 2}) {
		t.Errorf("another id: taken %+v", got)
	}
	wait.Until(t, "both have it", func() bool { return len(r.messages()) == 2 && len(second.messages()) == 2 })
}

func TestOutputsOfAFanOutAreNotRepetitions(t *testing.T) {
	b := start(t, options{private: true})
	b.createAPI("o", streaming(ordersAPI, connector, false, "order.created", "audit.written"))
	b.giveKey("k1", "d1", ordersKey)
	var r receiver
	b.subscribe(dev, serve(t, &r), "order.created", "audit.written")
	for _, body := range []string{orderBody, strings.Replace(orderBody, "order.created", "audit.written", 1)} {
		if got := b.taken(sentEvent{body: body}); got != (Taken{Queued: 1}) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestAnEventThatNobodyWantsIsTaken(t *testing.T) {
	b := withOrders(t, options{})
	if got := b.taken(sentEvent{}); got != (Taken{}) {
		t.Errorf("taken %+v", got)
	}
	if n := b.counted("unwanted"); n != 1 {
		t.Errorf("%v counted", n)
	}
}

func TestEventsThatAreNotSignedByTheConnectorAreRefused(t *testing.T) {
	now := time.Now()
	b := withOrders(t, options{now: func() time.Time { return now }})
	b.createAPI("other", streaming("theirs", "the secret of another organisation", false, "order.created"))
	b.subscribe(dev, "https://example.com/", "order.created")
	sign := func(id string) string {
		return webhooksign.Sign([][]byte{[]byte(connector)}, id, strconv.FormatInt(now.Unix(), 10), []byte(orderBody))
	}
	with := func(member, value string) string {
		return strings.Replace(orderBody, member, value, 1)
	}
	for name, c := range map[string]struct {
		e      sentEvent
		status int
		says   string
	}{
		"no signature":         {sentEvent{without: webhooksign.SignatureHeader}, 401, "has no signature of version v1"},
		"no id":                {sentEvent{without: webhooksign.IDHeader}, 400, "webhook-id: must be"},
		"no time":              {sentEvent{without: webhooksign.TimestampHeader}, 400, "webhook-timestamp: must be"},
		"a long id":            {sentEvent{id: strings.Repeat("x", 257)}, 400, "webhook-id: must be"},
		"a time that is none":  {sentEvent{stamp: "soon"}, 400, "webhook-timestamp: must be"},
		"a fraction":           {sentEvent{stamp: "1700000000.5"}, 400, "webhook-timestamp: must be"},
		"too old":              {sentEvent{at: now.Add(-5*time.Minute - time.Second)}, 401, "more than 5 minutes off"},
		"too early":            {sentEvent{at: now.Add(5*time.Minute + 2*time.Second)}, 401, "more than 5 minutes off"},
		"another version":      {sentEvent{signature: "v2," + strings.TrimPrefix(sign("m-1"), "v1,")}, 401, "has no signature"},
		"garbage":              {sentEvent{signature: "v1,garbage"}, 401, "in base64"},
		"another secret":       {sentEvent{secret: "not the secret of a connector"}, 401, "The signature is not that"},
		"another organisation": {sentEvent{secret: "the secret of another organisation"}, 401, "The signature is not that"},
		"of another id":        {sentEvent{signature: sign("m-2")}, 401, "The signature is not that"},
		"of another body":      {sentEvent{body: with("1.50", "1.51"), signature: sign("m-1")}, 401, "The signature is not that"},
		"another type":         {sentEvent{body: with("order.created", "order.deleted")}, 401, "The signature is not that"},
		"another stream":       {sentEvent{body: with(`"out"`, `"in"`)}, 401, "The signature is not that"},
		"another API":          {sentEvent{body: with(`"orders"`, `"theirs"`)}, 401, "The signature is not that"},
		"an API that is not":   {sentEvent{body: with(`"orders"`, `"nothing"`)}, 401, "The signature is not that"},
		"no JSON":              {sentEvent{body: "{"}, 400, "must be an object"},
		"no type":              {sentEvent{body: with(`"type":"order.created",`, "")}, 400, "type: must be"},
		"no data":              {sentEvent{body: `{"type":"a","timestamp":"2026-01-02T03:04:05Z","api_id":"orders","stream":"out"}`}, 400, "data: is missing"},
		"no timestamp":         {sentEvent{body: with(`"2026-01-02T03:04:05Z"`, `"now"`)}, 400, "timestamp: must be"},
		"an encoding":          {sentEvent{body: with(`"stream"`, `"data_encoding":"hex","stream"`)}, 400, "data_encoding: must be"},
		"too large":            {sentEvent{body: with("1.50", `"`+strings.Repeat("x", maxEvent)+`"`)}, 413, "larger than"},
		"too large as it is":   {sentEvent{body: with("1.50", `"`+strings.Repeat("x", delivery.MaxPayload-20)+`"`)}, 413, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.e.at.IsZero() {
				c.e.at = now
			}
			b.send(c.e).Want(c.status).Says(c.says)
		})
	}
	if n := b.Count("select count(*) from deliveries"); n != 0 {
		t.Errorf("%d deliveries", n)
	}
	if n := b.counted("refused"); n < 20 {
		t.Errorf("%v counted", n)
	}
	b.send(sentEvent{at: now.Add(-5*time.Minute + 2*time.Second)}).Want(202)
	b.send(sentEvent{id: "m-2", signature: "v1a,zzz v1," + strings.Repeat("A", 43) + "= " + sign("m-2"), at: now}).Want(202)
}

func TestSecretsAreThoseOfTheStoredDefinitions(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	b := start(t, options{now: clock})
	set := func(value string) {
		sealed, err := b.key.Seal([]byte(value), store.SecretPlace("o", "portal"))
		if err != nil {
			t.Fatal(err)
		}
		b.publish("o", func(ctx context.Context, c *store.Change) error {
			_, err := c.PutSecret(ctx, "portal", sealed)
			return err
		})
	}
	from := func(secret string) sentEvent { return sentEvent{secret: secret, at: clock()} }
	set("first secret of the portal")
	b.createAPI("o", streaming(ordersAPI, "{secret:portal}", false, "order.created"))
	b.send(from("first secret of the portal")).Want(202)
	b.send(from("{secret:portal}")).Want(401)

	const second = "whsec_c2Vjb25kIHNlY3JldCBvZiB0aGUgcG9ydGFs"
	set(second)
	b.send(from(second)).Want(202)
	b.send(from("second secret of the portal")).Want(202)
	b.send(from("first secret of the portal")).Want(202) // a stream that is being stopped
	pass(formerGrace + time.Second)
	b.send(from("first secret of the portal")).Want(401)
	b.send(from(second)).Want(202)

	b.updateAPI("o", streaming(ordersAPI, "a secret in the definition", false, "order.created"))
	b.send(from("a secret in the definition")).Want(202)
	b.publish("o", func(ctx context.Context, c *store.Change) error { return c.DeleteAPI(ctx, ordersAPI, 0, true) })
	b.send(from("a secret in the definition")).Want(401)
	b.createAPI("o", streaming(ordersAPI, "of an API made again", false, "order.created"))
	b.send(from("of an API made again")).Want(202)
	b.updateAPI("o", streaming(ordersAPI, "{env:SLUICE_SECRET_PORTAL}", false, "order.created"))
	b.send(from("{env:SLUICE_SECRET_PORTAL}")).Want(401)
	if log := b.log.String(); !strings.Contains(log, "is read by gateways alone") || strings.Contains(log, "of an API made again") {
		t.Errorf("log %s", log)
	}
}

func TestWhoMayCallTheAPIGetsItsEvents(t *testing.T) {
	b := withOrders(t, options{})
	b.createAPI("o", streaming("open", connector, true, "order.created"))
	for id, body := range map[string]string{
		"grants":  `{"access_rights":{"orders":{"api_id":"orders"}}}`,
		"refuses": `{"access_rights":{"open":{"api_id":"open"}}}`,
		"quota":   `{"access_rights":{"orders":{"api_id":"orders"}},"partitions":{"quota":true}}`,
		"denies":  `{"state":"deny","access_rights":{"orders":{"api_id":"orders"}}}`,
		"off":     `{"is_inactive":true,"access_rights":{"orders":{"api_id":"orders"}}}`,
	} {
		text := fmt.Sprintf(`{"id":%[1]q,"name":%[1]q,"org_id":"o",%s`, id, body[1:])
		policy, err := definition.ParsePolicy([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b.publish("o", func(ctx context.Context, c *store.Change) error { return c.CreatePolicy(ctx, policy) })
	}
	soon := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	developers := map[string]struct {
		session string
		want    bool
	}{
		"none":      {"", false},
		"own":       {ordersKey, true},
		"expires":   {`{"org_id":"o","expires":` + soon + `,"access_rights":{"orders":{"api_id":"orders"}}}`, true},
		"expired":   {`{"org_id":"o","expires":1000,"access_rights":{"orders":{"api_id":"orders"}}}`, false},
		"inactive":  {`{"org_id":"o","is_inactive":true,"access_rights":{"orders":{"api_id":"orders"}}}`, false},
		"others":    {`{"org_id":"o","access_rights":{"open":{"api_id":"open"}}}`, false},
		"master":    {`{"org_id":"o"}`, false},
		"plan":      {`{"org_id":"o","apply_policies":["grants"]}`, true},
		"two plans": {`{"org_id":"o","apply_policies":["refuses","grants"]}`, true},
		"instead":   {`{"org_id":"o","apply_policies":["refuses"],"access_rights":{"orders":{"api_id":"orders"}}}`, false},
		"quota":     {`{"org_id":"o","apply_policies":["quota"]}`, false},
		"denied":    {`{"org_id":"o","apply_policies":["denies"]}`, false},
		"off":       {`{"org_id":"o","apply_policies":["off"]}`, false},
		"gone":      {`{"org_id":"o","apply_policies":["gone"],"access_rights":{"orders":{"api_id":"orders"}}}`, false},
	}
	hooks := make(map[string]string)
	for name, d := range developers {
		id := strings.ReplaceAll(name, " ", "-")
		b.Exec(`insert into developers (id, org_id, email) values ($1, 'o', $1 || '@example.com')`, "of-"+id)
		if d.session != "" {
			b.giveKey("hash-"+id, "of-"+id, d.session)
		}
		b.Exec(`insert into webhooks (id, org_id, developer_id, url, events, sealed_secret) values ($1, 'o', $2, 'https://example.com/', '{order.created}', '')`, "hook-"+id, "of-"+id)
		hooks[name] = "hook-" + id
	}
	check := func(message string, want func(name string) bool) {
		t.Helper()
		b.stop() // nothing is sent
		for name, hook := range hooks {
			got := b.Count("select count(*) from deliveries where target = $1", hook) == 1
			if got != want(name) {
				t.Errorf("%s: %s: queued is %v", message, name, got)
			}
		}
		b.Exec("delete from deliveries")
	}
	b.send(sentEvent{}).Want(202)
	check("by keys", func(name string) bool { return developers[name].want })
	b.send(sentEvent{}).Want(202)
	check("as remembered", func(name string) bool { return developers[name].want })

	// What was decided does not outlive what it was decided on.
	b.Exec(`update keys set body = '{"org_id":"o","is_inactive":true,"access_rights":{"orders":{"api_id":"orders"}}}', active = false, version = version + 1 where key_hash = 'hash-own'`)
	b.publish("o", func(ctx context.Context, c *store.Change) error {
		refuses, err := definition.ParsePolicy([]byte(`{"id":"grants","name":"grants","org_id":"o","access_rights":{"open":{"api_id":"open"}}}`))
		if err != nil {
			return err
		}
		_, err = c.UpdatePolicy(ctx, refuses, 0)
		return err
	})
	b.send(sentEvent{}).Want(202)
	check("after changes", func(name string) bool { return name == "expires" })

	open := sentEvent{body: strings.Replace(orderBody, `"orders"`, `"open"`, 1)}
	b.send(open).Want(202)
	check("keyless, and in no catalogue", func(name string) bool {
		return slices.Contains([]string{"others", "plan", "two plans", "instead"}, name)
	})
	b.Exec(`insert into catalogue_entries (id, org_id, position, name, api_id, shown, body) values ('e', 'o', 0, 'Open', 'open', true, '{}')`)
	b.send(open).Want(202)
	check("keyless and offered", func(string) bool { return true })
}

func TestDevelopersSeeTheEventsThatTheyCanSubscribeTo(t *testing.T) {
	b := withOrders(t, options{})
	b.createAPI("o", streaming("invoices", connector, false, "invoice.paid", "order.created"))
	b.createAPI("o", streaming("hidden", connector, false, "secret.thing"))
	b.Exec(`insert into catalogue_entries (id, org_id, position, name, api_id, shown, body) values ('e', 'o', 0, 'Invoices', 'invoices', true, '{}')`)
	list := func(who, query string) (all []string) {
		var known Types
		b.Call("GET", here+"/events"+query, who, "").Want(200).Into(&known)
		for _, one := range known.Data {
			for _, api := range one.APIs {
				all = append(all, fmt.Sprintf("%s %s %v", one.Type, api.ID, api.Access))
			}
		}
		return all
	}
	if got := list(dev, ""); !slices.Equal(got, []string{"invoice.paid invoices false", "order.created invoices false", "order.created orders true"}) {
		t.Errorf("a developer sees %q", got)
	}
	if got := list(dev2, ""); !slices.Equal(got, []string{"invoice.paid invoices false", "order.created invoices false"}) {
		t.Errorf("another sees %q", got)
	}
	if got := list(dev2, "?developer=d1"); len(got) != 2 {
		t.Errorf("a developer sees what another may call: %q", got)
	}
	if got := list(viewer, "?developer=d1"); len(got) != 3 {
		t.Errorf("an operator sees %q for the developer", got)
	}
	if got := list(viewer, ""); len(got) != 0 {
		t.Errorf("an operator sees %q", got)
	}
	b.Call("POST", me, dev, `{"url":"https://example.com/","events":["secret.thing"]}`).Want(400).Says("events[0]:")
	b.Call("POST", here, editor, `{"url":"https://example.com/","events":["order.created"]}`).Want(400).Says("events[0]:")
	b.Call("POST", here, approver, `{"url":"https://example.com/","events":["order.created"],"developer_id":"d1"}`).Want(201)

	// A webhook keeps the events that it has when the API is gone.
	hook := b.subscribe(dev, "https://example.com/", "order.created")
	b.publish("o", func(ctx context.Context, c *store.Change) error { return c.DeleteAPI(ctx, ordersAPI, 0, true) })
	b.publish("o", func(ctx context.Context, c *store.Change) error { return c.DeleteAPI(ctx, "invoices", 0, true) })
	b.Call("PUT", me+"/"+hook.ID, dev, `{"name":"renamed","url":"https://example.com/","events":["order.created"]}`).Want(200)
	b.Call("POST", me, dev, `{"url":"https://example.com/","events":["order.created"]}`).Want(400)
}

func TestWhatAWebhookHasNoRoomForIsCountedAndItsOwnerNotified(t *testing.T) {
	b := withOrders(t, options{})
	b.stop()
	full := b.subscribe(dev, "https://example.com/full", "order.created")
	heavy := b.subscribe(dev, "https://example.com/heavy", "order.created")
	free := b.subscribe(dev, "https://example.com/free", "order.created")
	b.Exec(`insert into deliveries (id, org_id, kind, target, event, payload, sealed, state)
		select 'm' || n, 'o', 'webhook', $1, 'e', '', false, 'pending' from generate_series(1, 10000) n`, full.ID)
	b.Exec(`insert into deliveries (id, org_id, kind, target, event, payload, sealed, state)
		select 'h' || n, 'o', 'webhook', $1, 'e', convert_to(repeat('x', 262144), 'UTF8'), false, 'pending' from generate_series(1, 256) n`, heavy.ID)
	for i := range 3 {
		if got := b.taken(sentEvent{id: fmt.Sprint("m-", i)}); got != (Taken{Queued: 1, Missed: 2}) {
			t.Errorf("taken %+v", got)
		}
	}
	if got := b.taken(sentEvent{id: "m-0"}); got != (Taken{Repeated: 1, Missed: 2}) {
		t.Errorf("once more: taken %+v", got)
	}
	for _, hook := range []added{full, heavy} {
		if w := b.webhook(hook.ID); w.Missed != 4 || w.MissedAt == nil || !w.Enabled {
			t.Errorf("webhook %+v", w)
		}
	}
	if w := b.webhook(free.ID); w.Missed != 0 || w.MissedAt != nil {
		t.Errorf("webhook %+v", w)
	}
	letters := b.letters.letters()
	if len(letters) != 2 || letters[0].Event != "webhook_event.missed" || letters[0].To != "one@example.com" || !strings.Contains(letters[0].Reason, "too much waits for it") {
		t.Errorf("letters %+v", letters)
	}
	b.Exec("update webhooks set missed_letter_at = now() - interval '25 hours'")
	b.send(sentEvent{id: "m-9"}).Want(202)
	if n := len(b.letters.letters()); n != 4 {
		t.Errorf("%d letters after a day", n)
	}
	// The portal's own messages still have room.
	b.emit(created())
	b.Call("POST", me+"/"+full.ID+"/ping", dev, "").Want(200)
}

// Endpoints that hang do not keep others waiting.
func TestEndpointsOfEventsGoWrongAlone(t *testing.T) {
	over := make(chan struct{})
	b := withOrders(t, options{private: true, queue: func(o *delivery.Options) {
		o.Timeout, o.Pauses = 20*time.Second, []time.Duration{time.Hour}
	}})
	defer close(over)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	hangs := receiver{answer: func(_ http.ResponseWriter, r *http.Request) { holdOpen(r, over) }}
	fails := receiver{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }}
	redirects := receiver{answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }}
	gone := receiver{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }}
	var works receiver
	hooks := make(map[string]added)
	for name, r := range map[string]*receiver{"hangs": &hangs, "fails": &fails, "redirects": &redirects, "gone": &gone, "works": &works} {
		hooks[name] = b.subscribe(dev, serve(t, r), "order.created")
	}
	const many = 20
	for i := range many {
		b.send(sentEvent{id: fmt.Sprint("m-", i)}).Want(202)
	}
	wait.Until(t, "the one that works has all", func() bool { return len(works.messages()) == many })
	if n := len(hangs.messages()); n > 4 {
		t.Errorf("%d messages at a time for the one that hangs", n)
	}
	wait.Until(t, "the one that is gone is disabled", func() bool { return !b.webhook(hooks["gone"].ID).Enabled })
	if letters := b.letters.letters(); len(letters) != 1 || letters[0].To != "one@example.com" || letters[0].Event != "webhook_event.disabled" {
		t.Errorf("letters %+v", letters)
	}
	for name, status := range map[string]int{"fails": 500, "redirects": 302} {
		wait.Until(t, name+" is tried", func() bool {
			return slices.ContainsFunc(b.deliveries(hooks[name].ID), func(e delivery.Entry) bool { return e.Status == status && e.State == store.MessagePending })
		})
	}
	// What failed can be sent again by hand, as it was.
	id := b.deliveries(hooks["works"].ID)[0].ID
	b.Call("POST", "/api/portal/me/deliveries/"+id+"/replay", dev, "").Want(200)
	wait.Until(t, "it came again", func() bool { return len(works.messages()) == many+1 })
	again := works.messages()[many]
	if again.header.Get("webhook-id") != id || !slices.ContainsFunc(works.messages()[:many], func(m got) bool {
		return m.header.Get("webhook-id") == id && m.body == again.body
	}) {
		t.Errorf("it came as %v %s", again.header, again.body)
	}
	b.Call("POST", "/api/portal/me/deliveries/"+id+"/replay", dev2, "").Want(404)
}

func TestEventsAreNotSentToPrivateAddressesOfDevelopers(t *testing.T) {
	b := withOrders(t, options{private: true, public: true})
	var r receiver
	url := strings.Replace(serve(t, &r), "127.0.0.1", "localhost", 1)
	b.Exec(`insert into webhooks (id, org_id, developer_id, url, events, sealed_secret) values ('hook', 'o', 'd1', $1, '{order.created}', $2)`, url, b.sealed(t, "hook"))
	b.send(sentEvent{}).Want(202)
	wait.Until(t, "it is given up", func() bool { return b.deliveries("hook")[0].State == store.MessageFailed })
	if e := b.deliveries("hook")[0]; !strings.Contains(e.Error, "its address is none that messages may be sent to") || len(r.messages()) > 0 {
		t.Errorf("entry %+v", e)
	}
}

// sealed is a secret of a webhook as it is stored.
func (b *bench) sealed(t testing.TB, id string) []byte {
	sealed, err := b.service.seal(newSecret(), id, secretColumn)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestBytesOfEventsAreMarked(t *testing.T) {
	b := withOrders(t, options{private: true})
	var r receiver
	b.subscribe(dev, serve(t, &r), "order.created")
	b.send(sentEvent{body: `{"type":"order.created","timestamp":"2026-01-02T03:04:05Z","api_id":"orders","stream":"out","data":"/wA=","data_encoding":"base64","from_a_newer_gateway":1}`}).Want(202)
	wait.Until(t, "it arrives", func() bool { return len(r.messages()) == 1 })
	if m := r.messages()[0]; !strings.HasSuffix(m.body, `"data":"/wA=","data_encoding":"base64"}`) {
		t.Errorf("it says %s", m.body)
	}
}

func FuzzIngest(f *testing.F) {
	b := withOrders(f, options{})
	b.stop()
	f.Add("v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32)), orderBody, "1700000000")
	f.Add("v1,", "{}", "0")
	f.Add("", `{"type":"order.created","api_id":"orders"}`, "-1")
	f.Fuzz(func(t *testing.T, signature, body, stamp string) {
		if strings.ContainsAny(signature+stamp, "\r\n\x00") {
			return // no header
		}
		front := b.Front
		front.T = t
		answer := front.Call("POST", EventsPath, "", body, webhooksign.IDHeader, "m", webhooksign.TimestampHeader, stamp, webhooksign.SignatureHeader, signature)
		if answer.Status != 400 && answer.Status != 401 && answer.Status != 413 {
			t.Fatalf("status %d: %s", answer.Status, answer.Body)
		}
	})
}
