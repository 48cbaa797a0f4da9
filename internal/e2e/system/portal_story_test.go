package system

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// portalStory is the way from asking for access to its end.
type portalStory struct {
	*split
	portal                // as the first user
	approver    portal    // as somebody who may decide, and no more
	ada         *rig.Rest // as the developer
	hook        *listener
	hookSecret  string
	travel      map[string]*measured // how long changes took to every gateway, by what they were
	calls       map[string]int64     // answered, by the id of the key that they were known to be of
	developerID string
}

// storyQuota is what each policy of the story allows.
const storyQuota = 5

const storyMail, storyPassword = "ada@dev.example", "correct horse battery"

// One story by REST and through two gateways that share a store: what is offered,
// who signs up, who asks, who approves, what comes of it, and how it ends; with a
// key, with a user and with an OAuth client.
func TestAPortalsStoryWithTwoGateways(t *testing.T) {
	t.Parallel()
	tellPortalStory(t, newUsage(t, 2))
}

// The same in one process.
func TestAPortalsStoryInOneProcess(t *testing.T) {
	t.Parallel()
	up := rig.NewUp(t, rig.DataDir(t), settings{"usage.flush": usageFlush.String()}).StartReady()
	tellPortalStory(t, &split{t: t, admin: up, gateways: []*rig.Server{up}, rest: up.Rest(), origin: "http://" + testenv.Origin(t, rig.Echo)})
}

func tellPortalStory(t *testing.T, s *split) {
	p := &portalStory{
		split: s, portal: portal{s.rest}, hook: &listener{address: rig.FreeAddress(t)},
		travel: make(map[string]*measured), calls: make(map[string]int64),
	}
	p.hook.listen(t)
	p.setUp()
	p.signUp()
	p.storyOfAKey()
	p.storyOfAUser()
	p.storyOfAClient()
	for _, m := range p.travel {
		m.report()
	}
	all := s.gateways
	if s.admin != s.gateways[0] {
		all = append(all, s.admin)
	}
	for _, one := range all {
		if code := one.Stop(); code != 0 {
			t.Errorf("%s stopped with code %d, want 0", one, code)
		}
	}
}

// setUp is what operators do: three APIs, one for each kind of credential, with a
// plan and an entry in the catalogue, who decides, and who is told.
func (p *portalStory) setUp() {
	kinds := map[string]object{"shop": nil, "users": {"use_basic_auth": true}, "apps": {"use_oauth2": true}}
	for id, auth := range kinds {
		def := rig.APIDef(id, p.origin, false)
		maps.Copy(def, auth)
		p.Do("POST", "/api/apis", def)
		p.policy(id+"-plan", storyQuota, id)
	}
	p.policy("other-plan", storyQuota, "shop")
	for id, kind := range map[string]string{"shop": "authToken", "users": "basic", "apps": "oauth"} {
		p.Expect(201, "POST", "/api/portal/catalogue/entries", object{
			"name": "Offer of " + id, "api_id": id, "policy_id": id + "-plan", "show": true, "auth_type": kind,
		}, `"Status":"OK"`)
	}
	p.Expect(200, "POST", "/api/portal/configuration", object{
		"signup_fields": []string{"company"}, "key_request_fields": []string{"purpose"}, "require_key_approval": true, "oauth_usage_limit": 1,
		"mail_options": object{"email_copy": object{"welcome_email": object{"enabled": true}, "key_email": object{"enabled": true}, "reset_password_email": object{"enabled": true}}},
	}, `"Status":"OK"`)
	var made struct {
		Key string `json:"access_key"`
	}
	p.Do("POST", "/api/users", object{"email_address": "bob@example.com", "role": "approver"}).Into(p.t, &made)
	p.approver = portal{rig.NewRest(p.t, p.admin.Admin, rig.Plant(made.Key))}
	var hook struct{ Meta struct{ Secret string } }
	p.Do("POST", "/api/portal/webhooks", object{"name": "ops", "url": "http://" + p.hook.address + "/", "events": []string{"*"}}).Into(p.t, &hook)
	p.hookSecret = rig.Plant(hook.Meta.Secret)
	// What an API and a policy are reaches a gateway with the next configuration; a
	// key of each that is not counted here tells when it is there.
	p.everywhere("the plan", "/shop/x", p.NewKey(object{"apply_policies": []string{"shop-plan"}}), limited(storyQuota))
	for _, id := range []string{"users", "apps"} {
		p.everywhere("the API", "/"+id+"/x", "", status(401))
	}
}

// signUp is how ada comes: what she sees before, the form, the letter, the log-in.
func (p *portalStory) signUp() {
	visitor := rig.NewRest(p.t, p.admin.Admin, "")
	visitor.Expect(200, "GET", "/api/portal/public/catalogue", nil, `"name":"Offer of shop"`, `"auth_type":"basic"`, `"auth_type":"oauth"`, `"5 requests an hour"`)
	visitor.Expect(200, "GET", "/api/portal/public/configuration", nil, `"signup_fields":["company"]`, `"key_request_fields":["purpose"]`)
	form := object{"email": storyMail, "password": rig.Plant(storyPassword)}
	visitor.Expect(400, "POST", "/api/portal/signup", form, "company")
	form["fields"] = object{"company": "Example"}
	visitor.Expect(200, "POST", "/api/portal/signup", form, "A letter is on its way")
	visitor.Expect(401, "POST", "/api/portal/login", loginOf(storyMail, storyPassword), "not verified")
	// The refused log-in sent another letter.
	token := rig.Plant(tokenIn(p.t, p.LetterTo(storyMail, "verify_email")))
	visitor.Expect(401, "POST", "/api/portal/verify", object{"token": token, "password": storyPassword + "?"}, "not the one")
	visitor.Expect(200, "POST", "/api/portal/verify", object{"token": token, "password": storyPassword}, `"access_key":"slp_`)
	visitor.Expect(404, "POST", "/api/portal/verify", object{"token": token, "password": storyPassword})
	p.ada = p.login(storyMail, storyPassword)
	var me struct{ ID string }
	p.ada.Expect(200, "GET", "/api/portal/me", nil, `"email":"`+storyMail+`"`, `"company":"Example"`, `"verified":true`, `"keys":{}`).Into(p.t, &me)
	p.developerID = me.ID
	p.LetterTo(storyMail, "welcome_email")
}

func loginOf(email, password string) object {
	return object{"email": email, "password": password}
}

// request asks for a plan, and looks at the request as all see it.
func (p *portalStory) request(plan string) (id string) {
	p.t.Helper()
	body := object{"for_plan": plan, "version": "v2"}
	p.ada.Expect(400, "POST", "/api/portal/me/requests", body, "fields: must have purpose")
	body["fields"] = object{"purpose": "a story"}
	var made struct{ Message string }
	p.ada.Expect(200, "POST", "/api/portal/me/requests", body, `"Status":"OK"`, `"Meta":null`).Into(p.t, &made)
	id = made.Message
	pending := []string{`"id":"` + id + `"`, `"state":"pending"`, `"approved":false`, `"purpose":"a story"`, `"key":""`}
	p.ada.Expect(200, "GET", "/api/portal/me/requests/"+id, nil, pending...)
	p.approver.Expect(200, "GET", "/api/portal/requests?state=pending", nil, append(pending, `"by_user":"`+p.developerID+`"`, storyMail)...)
	p.ada.Expect(403, "PUT", "/api/portal/requests/approve/"+id, nil)
	p.told("key_request_event.submitted", id)
	return id
}

// decide approves a request, and looks for all that comes with it: the credential
// once, the record, the letter, the message.
func (p *portalStory) decide(id string) (c credential) {
	p.t.Helper()
	p.approver.Expect(200, "PUT", "/api/portal/requests/approve/"+id, nil).Into(p.t, &c)
	secret := c.RawKey // else it is a user's name or a client's id
	if c.Password != "" {
		secret = c.Password
	}
	if rig.Plant(secret) == "" {
		p.t.Fatalf("approving request %s came to no credential", id)
	}
	again := p.approver.Expect(409, "PUT", "/api/portal/requests/approve/"+id, nil)
	shown := p.ada.Expect(200, "GET", "/api/portal/me/requests/"+id, nil, `"state":"approved"`, `"approved":true`, `"key":""`)
	record := p.approver.Expect(200, "GET", "/api/portal/requests/"+id, nil, `"state":"approved"`, `"decided_by":"bob@example.com"`)
	message := p.told("key_request_event.approved", id)
	for where, text := range map[string]string{"a second approval": again.Body, "the developer's view": shown.Body, "the record": record.Body, "the message": message} {
		if strings.Contains(text, secret) {
			p.t.Errorf("%s shows the credential again: %s", where, text)
		}
	}
	if letter := p.LetterTo(storyMail, "key_email"); !strings.Contains(letter, c.RawKey) || !strings.Contains(letter, c.Password) {
		p.t.Errorf("the letter has no credential: %s", letter)
	}
	return c
}

// told waits for a signed message about an object.
func (p *portalStory) told(kind, id string) (body string) {
	p.t.Helper()
	p.admin.Await("the message "+kind, func() error {
		for _, m := range p.hook.messages() {
			if strings.Contains(m.body, `"type":"`+kind+`"`) && strings.Contains(m.body, `"`+id+`"`) {
				body = m.body
				return signed(m, p.hookSecret)
			}
		}
		return errors.New("it has not come")
	})
	return body
}

// reaches waits until a change is known at every gateway, within its bound, and
// counts the calls that were known to be a key's.
func (p *portalStory) reaches(what, path, authorization, key string, said func(rig.Answer) error) {
	p.t.Helper()
	if p.travel[what] == nil {
		p.travel[what] = &measured{t: p.split.t, what: what}
	}
	p.travel[what].add(p.everywhere(what, path, authorization, func(got rig.Answer) error {
		p.note(key, got)
		return said(got)
	}))
}

func (p *portalStory) note(key string, got rig.Answer) {
	switch got.Reason() {
	case "auth_unknown", "auth_failed", "auth_missing":
	default:
		p.calls[key]++
	}
}

// use calls n times, over all gateways in turn, each with what said expects.
func (p *portalStory) use(n int, path, authorization, key string, said func(rig.Answer) error) {
	p.t.Helper()
	for i := range n {
		got := rig.Call(p.t, "GET", p.gateways[i%len(p.gateways)].Traffic+path, nil, "Authorization", authorization)
		p.note(key, got)
		if err := said(got); err != nil {
			p.t.Errorf("call %d of %d to %s: %v", i+1, n, path, err)
		}
	}
}

// overQuota expects the refusal of one call too many.
func overQuota(got rig.Answer) error {
	if err := refused("quota_exceeded")(got); err != nil {
		return err
	}
	if got.Status != 403 || !strings.Contains(got.Body, `"error": "Quota exceeded"`) {
		return fmt.Errorf("%s, want 403 Quota exceeded", got)
	}
	return nil
}

// exhausts uses up what is left of a quota, of which used is gone, and shows it to
// all who may see it.
func (p *portalStory) exhausts(path, authorization, key string, used int) {
	p.t.Helper()
	p.use(storyQuota-used, path, authorization, key, status(200))
	p.use(2*len(p.gateways), path, authorization, key, overQuota)
	if shown := p.shownKey(key); shown.Remaining == nil || *shown.Remaining != 0 || *shown.Used != storyQuota {
		p.t.Errorf("of the exhausted quota the developer sees %+v", shown)
	}
}

// shownKey is the quota of the only API of a key, as its developer sees it.
func (p *portalStory) shownKey(key string) (shown struct{ Used, Remaining *int64 }) {
	p.t.Helper()
	for _, one := range keysOf(p.ada).Data {
		if one.ID == key && one.State == "active" && len(one.APIs) == 1 {
			shown.Used, shown.Remaining = one.APIs[0].Used, one.APIs[0].Remaining
		}
	}
	if shown.Used == nil {
		p.t.Fatalf("the developer does not see key %s", key)
	}
	return shown
}

// onlyKey is the id of the only key that the developer has.
func (p *portalStory) onlyKey() string {
	p.t.Helper()
	list := keysOf(p.ada).Data
	if len(list) != 1 {
		p.t.Fatalf("the developer has %d keys, want 1", len(list))
	}
	p.ada.Expect(200, "GET", "/api/portal/me", nil, `"`+list[0].ID+`":["`)
	return list[0].ID
}

// countedAs waits until the statistics have the calls of a key, as operators see
// them, and what of them was refused for want of quota.
func (p *portalStory) countedAs(api, key string) {
	p.t.Helper()
	hits := p.calls[key]
	p.counted("/api/usage?api="+api+"&key="+key, hits)
	u := p.Usage("/api/usage?api=" + api + "&group_by=key,reason&key=" + key)
	var refusals int64
	for _, row := range u.Data {
		if row.Key != key {
			p.t.Errorf("usage of another key: %+v", row)
		}
		if row.Reason == "quota_exceeded" {
			refusals = row.Hits
		}
	}
	rejected := p.Usage("/api/usage/rejections?api=" + api + "&reason=quota_exceeded&group_by=status&key=" + key)
	if refusals == 0 || rejected.Totals.Hits != refusals || len(rejected.Data) != 1 || rejected.Data[0].Status != 403 {
		p.t.Errorf("%d refusals for want of quota in the usage, among the rejections %+v", refusals, rejected)
	}
}

// countedForOwner is what the developer sees of it: the same.
func (p *portalStory) countedForOwner(key string) {
	p.t.Helper()
	if got := p.ada.Usage("/api/portal/me/keys/" + key + "/usage").Totals.Hits; got != p.calls[key] {
		p.t.Errorf("the developer sees %d calls, want %d", got, p.calls[key])
	}
}

// gone expects that a key that was valid is not.
func (p *portalStory) gone(what, path, authorization, key string, code int) {
	p.t.Helper()
	p.reaches(what, path, authorization, key, func(got rig.Answer) error {
		if got.Status != code || got.Reason() == "quota_exceeded" {
			return fmt.Errorf("%s, want %d for want of a valid credential", got, code)
		}
		return nil
	})
}

// storyOfAKey is that of auth_type authToken.
func (p *portalStory) storyOfAKey() {
	const path = "/shop/x"
	p.ada.Expect(400, "POST", "/api/portal/me/requests", object{"for_plan": "other-plan", "version": "v2", "fields": object{"purpose": "x"}}, "is not offered")
	c := p.decide(p.request("shop-plan"))
	if !strings.HasPrefix(c.RawKey, "slk_") || c.Password != "" {
		p.t.Errorf("approved as a key, with a password %v", c.Password != "")
	}
	key := p.onlyKey()
	p.reaches("an approved key", path, c.RawKey, key, limited(storyQuota))
	p.told("key_event.created", key)
	p.exhausts(path, c.RawKey, key, len(p.gateways))
	p.countedAs("shop", key)
	p.countedForOwner(key)

	p.ada.Expect(403, "POST", "/api/portal/developers/"+p.developerID+"/keys/"+key+"/reset_quota", nil)
	p.approver.Expect(200, "POST", "/api/portal/developers/"+p.developerID+"/keys/"+key+"/reset_quota", nil, "Quota reset")
	p.reaches("a reset quota", path, c.RawKey, key, status(200))
	var next credential
	p.ada.Expect(400, "POST", "/api/portal/me/keys/"+key+"/rotate", object{}, "grace")
	p.ada.Expect(200, "POST", "/api/portal/me/keys/"+key+"/rotate", object{"grace": "1h"}).Into(p.t, &next)
	if rig.Plant(next.RawKey) == c.RawKey || next.ID != key || next.Password != "" {
		p.t.Errorf("the successor is of key %s, the same: %v", next.ID, next.RawKey == c.RawKey)
	}
	p.told("key_event.rotated", key)
	before := p.calls[key]
	p.reaches("a successor", path, next.RawKey, key, limited(storyQuota))
	used := len(p.gateways) + int(p.calls[key]-before)
	p.use(1, path, c.RawKey, key, status(200)) // beside it, of one quota
	p.exhausts(path, next.RawKey, key, used+1)
	p.use(len(p.gateways), path, c.RawKey, key, overQuota)
	if list := p.ada.Expect(200, "GET", "/api/portal/me/keys", nil, `"grace_until":"20`); strings.Contains(list.Body, c.RawKey) || strings.Contains(list.Body, next.RawKey) {
		p.t.Errorf("the list shows a key")
	}
	p.countedAs("shop", key)
	p.countedForOwner(key)

	unknown := p.Usage("/api/usage/rejections?api=shop&reason=auth_unknown").Totals.Hits
	p.ada.Expect(200, "DELETE", "/api/portal/me/keys/"+key, nil, "Data deleted")
	p.gone("a revoked key", path, next.RawKey, key, 403)
	p.gone("a revoked key's predecessor", path, c.RawKey, key, 403)
	p.told("key_event.revoked", key)
	p.ada.Expect(404, "DELETE", "/api/portal/me/keys/"+key, nil)
	p.ada.Expect(404, "GET", "/api/portal/me/keys/"+key+"/usage", nil)
	p.ada.Expect(200, "GET", "/api/portal/me/keys", nil, `"Data":[]`)
	p.admin.Await("the refusals of the revoked key", func() error {
		if now := p.Usage("/api/usage/rejections?api=shop&reason=auth_unknown").Totals.Hits; now < unknown+2 {
			return fmt.Errorf("%d, before %d", now, unknown)
		}
		return nil
	})
	p.countedAs("shop", key) // what was is not forgotten
}

// basic is the value of Authorization for a user.
func basic(c credential) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.RawKey+":"+c.Password))
}

// storyOfAUser is that of auth_type basic.
func (p *portalStory) storyOfAUser() {
	const path = "/users/x"
	c := p.decide(p.request("users-plan"))
	if c.RawKey == "" || len(c.Password) < 20 {
		p.t.Errorf("approved as user %q with a password of %d bytes", c.RawKey, len(c.Password))
	}
	key := p.onlyKey()
	p.reaches("an approved user", path, basic(c), key, limited(storyQuota))
	p.use(1, path, basic(credential{RawKey: c.RawKey, Password: "wrong"}), key, status(401))
	p.use(1, path, basic(c), key, status(200))

	p.ada.Expect(400, "POST", "/api/portal/me/keys/"+key+"/rotate", object{"grace": "1h"}, "0s")
	next := credential{}
	p.ada.Expect(200, "POST", "/api/portal/me/keys/"+key+"/rotate", object{"grace": "0s"}).Into(p.t, &next)
	if rig.Plant(next.Password) == c.Password || next.RawKey != c.RawKey {
		p.t.Errorf("the user's name was %q and is %q, the password the same: %v", c.RawKey, next.RawKey, next.Password == c.Password)
	}
	p.gone("a replaced password", path, basic(c), key, 401)
	// Until a gateway knew, calls with the replaced password were of the quota: the
	// rest of the story is told of a whole one.
	p.reaches("the end of a quota", path, basic(next), key, overQuota)
	p.approver.Expect(200, "POST", "/api/portal/developers/"+p.developerID+"/keys/"+key+"/reset_quota", nil, "Quota reset")
	p.reaches("a new password", path, basic(next), key, limited(storyQuota))
	used := p.shownKey(key).Used
	p.exhausts(path, basic(next), key, int(*used))
	p.countedAs("users", key)
	p.countedForOwner(key)

	p.approver.Expect(404, "DELETE", "/api/portal/developers/nobody/keys/"+key, nil)
	p.approver.Expect(200, "DELETE", "/api/portal/developers/"+p.developerID+"/keys/"+key, nil, "Data deleted")
	p.gone("a revoked user", path, basic(next), key, 401)
	p.told("key_event.revoked", key)
	p.countedAs("users", key)
}

// token asks for an access token by the client credentials grant.
func (p *portalStory) token(c credential) (string, rig.Answer) {
	p.t.Helper()
	got := rig.Call(p.t, "POST", p.admin.Admin+"/oauth/token", "grant_type=client_credentials",
		"Authorization", basic(c), "Content-Type", "application/x-www-form-urlencoded")
	var made struct {
		Token   string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(got.Body), &made); err != nil {
		p.t.Fatalf("%v: %s", err, got)
	}
	if got.Status == 200 {
		if rig.Plant(made.Token); made.Type != "Bearer" || made.Expires != 3600 || made.Token == "" || got.Header.Get("Cache-Control") != "no-store" {
			p.t.Errorf("a token is answered as %s of %d s, Cache-Control %q", made.Type, made.Expires, got.Header.Get("Cache-Control"))
		}
	}
	return "Bearer " + made.Token, got
}

// storyOfAClient is that of auth_type oauth.
func (p *portalStory) storyOfAClient() {
	const path = "/apps/x"
	c := p.decide(p.request("apps-plan"))
	key := p.onlyKey()
	p.ada.Expect(200, "GET", "/api/portal/me/oauth-clients", nil, `"client_id":"`+c.RawKey+`"`, `"secret":""`, `"policy_id":"apps-plan"`, `"key_id":"`+key+`"`)
	second := p.request("apps-plan")
	p.approver.Expect(409, "PUT", "/api/portal/requests/approve/"+second, nil, "oauth_usage_limit")
	p.approver.Expect(200, "PUT", "/api/portal/requests/reject/"+second, object{"reason": "one is enough"})
	p.ada.Expect(200, "GET", "/api/portal/me/requests/"+second, nil, `"state":"rejected"`, "one is enough")
	p.told("key_request_event.rejected", second)
	if letter := p.LetterTo(storyMail, "key_rejected_email"); !strings.Contains(letter, "one is enough") {
		p.t.Errorf("the letter does not say why: %s", letter)
	}

	if _, got := p.token(credential{RawKey: c.RawKey, Password: "wrong"}); got.Status != 401 || !strings.Contains(got.Body, "invalid_client") {
		p.t.Errorf("with a wrong secret: %s", got)
	}
	one, got := p.token(c)
	other, again := p.token(c)
	if got.Status != 200 || again.Status != 200 || one == other {
		p.t.Fatalf("two tokens: %d and %d, the same: %v", got.Status, again.Status, one == other)
	}
	p.use(1, path, "Bearer "+c.RawKey, key, func(got rig.Answer) error { return errors.Join(status(403)(got), refused("auth_unknown")(got)) })
	p.reaches("an access token", path, one, key, limited(storyQuota))
	p.reaches("another token of the client", path, other, key, limited(storyQuota))
	p.exhausts(path, other, key, int(*p.shownKey(key).Used))
	p.use(len(p.gateways), path, one, key, overQuota)
	p.countedAs("apps", key)
	p.countedForOwner(key)

	ended := rig.Call(p.t, "POST", p.admin.Admin+"/oauth/revoke", url.Values{"token": {strings.TrimPrefix(one, "Bearer ")}}.Encode(),
		"Authorization", basic(c), "Content-Type", "application/x-www-form-urlencoded")
	if ended.Status != http.StatusOK {
		p.t.Fatalf("ending a token: %s", ended)
	}
	p.gone("a revoked token", path, one, key, 403)
	p.use(len(p.gateways), path, other, key, overQuota)

	var renewed struct{ Secret string }
	p.ada.Expect(200, "POST", "/api/portal/me/oauth-clients/"+c.RawKey+"/secret", nil).Into(p.t, &renewed)
	if _, got := p.token(c); got.Status != 401 {
		p.t.Errorf("with the former secret: %s", got)
	}
	c.Password = rig.Plant(renewed.Secret)
	third, _ := p.token(c)
	p.reaches("a token of the renewed secret", path, third, key, overQuota)

	p.ada.Expect(200, "DELETE", "/api/portal/me/oauth-clients/"+c.RawKey, nil, "Data deleted")
	p.gone("a token of a deleted client", path, other, key, 403)
	p.gone("a token of a deleted client", path, third, key, 403)
	p.told("key_event.revoked", key)
	if _, got := p.token(c); got.Status != 401 || !strings.Contains(got.Body, "invalid_client") {
		p.t.Errorf("a deleted client: %s", got)
	}
	p.ada.Expect(200, "GET", "/api/portal/me/oauth-clients", nil, `"Data":[]`)
	p.ada.Expect(200, "GET", "/api/portal/me/keys", nil, `"Data":[]`)
	p.countedAs("apps", key)
}
