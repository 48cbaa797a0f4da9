package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

func TestOperatorsWordWhatClientsRead(t *testing.T) {
	var w pipeline.Wording
	w.Set(pipeline.TextFieldMissing, `No key & no "entry"`, 418)
	w.Set(pipeline.TextKeyNotFound, "", 404)
	w.Set(pipeline.TextKeyInvalid, "This is no key", 0)
	g, addr := serve(t, func(d *gateway.Deps) { d.Config.Wording, d.Config.ShowReason, d.Config.Refusals = &w, true, 10 })
	g.Apply(bundle("1", within(t, "o", "a", "http://127.0.0.1:1", "")))
	for _, c := range []struct {
		key    string
		code   int
		reason string
		body   string
	}{
		{"", 418, "auth_missing", "{\n    \"error\": \"No key & no \\\"entry\\\"\"\n}"},
		{"nobodys-key", 404, "auth_unknown", "{\n    \"error\": \"Access to this API has been disallowed\"\n}"},
		{"x", 403, "auth_unknown", "{\n    \"error\": \"This is no key\"\n}"},
	} {
		var headers []string
		if c.key != "" {
			headers = []string{"Authorization", c.key}
		}
		if code, reason, body := ask(t, addr, "/a/", headers...); code != c.code || reason != c.reason || body != c.body {
			t.Errorf("%q: %d %s %s, want %d %s", c.key, code, reason, body, c.code, c.body)
		}
		told := g.Explain(describe(t, `{"url":"/a/","key":"`+c.key+`"}`)).Outcome
		if told.Status != c.code || told.Body != c.body {
			t.Errorf("%q is explained with %d %s", c.key, told.Status, told.Body)
		}
	}
	req, _ := http.NewRequest("GET", "http://"+addr+"/a/", strings.NewReader("<a/>"))
	req.Header.Set("Content-Type", "text/xml")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if known, ok := g.Refusal(resp.Header.Get("X-Request-Id")); resp.StatusCode != 418 || !ok || known.Status != 418 {
		t.Errorf("%d, remembered as %+v", resp.StatusCode, known)
	}
}
