package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	counts "github.com/sluicegate/sluice/internal/usage"
)

// handRefusals hands over records of refused requests, with their counts.
func (b *bench) handRefusals(sequence int64, list ...counts.Refusal) {
	b.t.Helper()
	batch := counts.Batch{Gateway: "gw-1", Boot: "boot", Sequence: sequence}
	for i := range list {
		r := &list[i]
		if r.At.IsZero() {
			r.At = time.Now()
		}
		if r.Org == "" {
			r.Org = b.orgOf()
		}
		batch.Rows = append(batch.Rows, counts.Row{Minute: r.At.Unix() / 60 * 60, Org: r.Org, API: r.API, Key: r.Key, Status: r.Status, Reason: r.Reason, Hits: 7})
	}
	batch.Refusals = list
	body, err := json.Marshal(batch)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Call("POST", "/api/gateway/usage", gatewayToken, string(body)).Want(200).Says("Usage counted")
}

func TestRefusalsAreListedByKeyAPIReasonAndTime(t *testing.T) {
	b := start(t)
	b.handRefusals(
		1,
		counts.Refusal{ID: "one", API: "a", APIName: "Orders", Key: "k1", KeyName: "k", Status: 403, Reason: "quota_exceeded", Stage: "limit", Path: "/orders/7", Upstream: "10.0.0.1:80"},
		counts.Refusal{ID: "two", API: "b", Key: "k1", Status: 429, Reason: "rate_limit", Stage: "limit"},
		counts.Refusal{ID: "three", API: "a", Status: 401, Reason: "auth_missing", Stage: "auth", At: time.Now().Add(-30 * time.Hour)},
		counts.Refusal{ID: "theirs", API: "a", Key: "k1", Status: 401, Reason: "auth_missing", Stage: "auth", Org: "second"},
	)
	list := func(query string) (ids string, all map[string]any) {
		t.Helper()
		var page struct{ Data []counts.Refusal }
		body := b.Call("GET", "/api/refusals"+query, b.viewer, "").Want(200).Body
		for _, into := range []any{&page, &all} {
			if err := json.Unmarshal(body, into); err != nil {
				t.Fatal(err)
			}
		}
		var found []string
		for _, r := range page.Data {
			found = append(found, r.ID)
		}
		return strings.Join(found, " "), all
	}
	day := "from=" + time.Now().Add(-2*24*time.Hour).UTC().Format(time.RFC3339)
	for query, want := range map[string]string{
		"": "two one", "?api=a": "one", "?key=k1": "two one", "?key=": "", "?reason=rate_limit": "two", "?api=none": "",
		"?" + day: "two one three", "?key=&" + day: "three", "?page_size=1": "two", "?page_size=1&p=2": "one", "?page_size=1&p=3": "",
	} {
		if got, _ := list(query); got != want && got != strings.Join(reversed(strings.Fields(want)), " ") {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	_, all := list("?reason=quota_exceeded&page_size=1")
	if fmt.Sprint(all["counts"]) != "[map[calls:7 reason:quota_exceeded]]" || all["total"] != 1.0 || all["Pages"] != 1.0 {
		t.Errorf("%v", all)
	}
	b.Call("GET", "/api/refusals/one", b.viewer, "").Want(200).Says(`"api_name":"Orders"`, `"gateway":"gw-1"`, `"path":"/orders/7"`, `"upstream":"10.0.0.1:80"`, `"key_hash":"k1"`)
	b.Call("GET", "/api/refusals/theirs", b.viewer, "").Want(404).Says("usage.retention_refusals")
	b.Call("GET", "/api/refusals/theirs", b.other, "").Want(200)
	b.Call("GET", "/api/refusals/none", b.viewer, "").Want(404)
	for query, says := range map[string]string{
		"from=x": "from must be a time", "from=2030-01-01T00:00:00Z": "from must be before to", "from=1970-01-01T00:00:00Z": "at most 90 days apart", "p=-1": "p must be a page",
	} {
		b.Call("GET", "/api/refusals?"+query, b.viewer, "").Want(400).Says(says)
	}
}

func reversed(list []string) (all []string) {
	for _, one := range list {
		all = append([]string{one}, all...)
	}
	return all
}

// rememberer is a gateway that remembers one refused request.
type rememberer struct{ org, key string }

func (r rememberer) Explain(_ context.Context, org string, description []byte) (any, error) {
	if org != r.org || string(description) != `{"id":"fresh"}` {
		return nil, store.ErrNotFound
	}
	return json.RawMessage(`{"refusal":{"id":"fresh","at":"2026-01-02T03:04:05Z","stage":"access","status":403,"reason":"access_denied","key":"` + r.key + `","api":{"id":"a","org_id":"` + org + `","name":"Orders"}}}`), nil
}

func TestARefusalThatWasNotHandedOverIsAskedOfTheGateways(t *testing.T) {
	gateway := new(rememberer)
	b := start(t, func(d *Deps) { d.Explain = gateway })
	gateway.org = b.orgOf()
	b.Call("GET", "/api/refusals/fresh", b.viewer, "").Want(200).Says(`"api_id":"a"`, `"api_name":"Orders"`, `"reason":"access_denied"`)

	// Gateways remember the beginning of the hash.
	b.createAPI(b.editor, "a", "/a/")
	hash := b.Call("POST", "/api/keys", b.editor, aKey).Want(200).Text("key_hash")
	gateway.key = hash[:12]
	b.Call("GET", "/api/refusals/fresh", b.viewer, "").Want(200).Says(`"key_hash":"` + hash + `"`)
	for _, name := range []string{"%", "___________%", strings.Repeat("0", 12), hash[:4]} {
		gateway.key = name
		if got := b.Call("GET", "/api/refusals/fresh", b.viewer, "").Want(200); strings.Contains(string(got.Body), "key_hash") {
			t.Errorf("key %q: %s", name, got.Body)
		}
	}
	b.Call("GET", "/api/refusals/fresh", b.other, "").Want(404)
	b.Call("GET", "/api/refusals/stale", b.viewer, "").Want(404)
}

func TestDevelopersSeeTheRefusalsOfTheirOwnKeysAndNothingElse(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords = passwords() })
	b.createAPI(b.editor, "a", "/a/")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
	ada, session := b.aDeveloper("ada")
	_, other := b.aDeveloper("bob")
	id := b.Call("POST", "/api/portal/developers/"+ada+"/keys", b.editor, `{"apply_policies":["p"]}`).Want(200).Text("key_id")
	b.handRefusals(
		1,
		counts.Refusal{
			ID: "own", API: "a", Key: id, KeyName: id[:12], Status: 502, Reason: "upstream_error", Stage: "upstream", Path: "/a/7", Client: "203.0.113.9", Policy: "p",
			Revision: "42", Upstream: "10.9.8.7:80", Cause: "dial tcp 10.9.8.7:80: refused", Limits: []counts.Counted{{Kind: "quota", Max: 10, Remaining: 3}},
		},
		counts.Refusal{ID: "foreign", API: "a", Key: "another", Status: 429, Reason: "rate_limit", Stage: "limit"},
	)
	path := "/api/portal/me/keys/" + id + "/refusals"
	got := b.Call("GET", path, session, "").Want(200).
		Says(`"id":"own"`, `"path":"/a/7"`, `"upstream":true`, `"max":10`, `"total":1`, `"counts":[{"reason":"upstream_error","calls":7}]`)
	for _, inner := range []string{"10.9.8.7", "foreign", "another", "gw-1", "203.0.113.9", `"42"`} {
		if strings.Contains(string(got.Body), inner) {
			t.Errorf("a developer sees %s: %s", inner, got.Body)
		}
	}
	b.Call("GET", path+"?reason=rate_limit", session, "").Want(200).Says(`"Data":[]`)
	b.Call("GET", path, other, "").Want(404)
	b.Call("GET", "/api/portal/me/keys/none/refusals", session, "").Want(404)
	b.Call("GET", path+"?from=x", session, "").Want(400)
	b.Call("GET", "/api/refusals", session, "").Want(403)
}
