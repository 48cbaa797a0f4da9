package control

import (
	"os"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func TestAPolicyIsStoredAtOnceAndInForceAfterAReload(t *testing.T) {
	b := onFiles(t)
	const gold = `{"id":"gold","rate":10,"per":1,"x-note":{"<b>":1}}`
	b.want("GET", "/svc/policies", "", 200, `[]`)
	b.want("POST", "/svc/policies", gold, 200, done("gold", "added"))
	b.want("POST", "/svc/policies", `{"_id":"5ed4","rate":1,"per":1}`, 200, done("5ed4", "added"))
	b.want("GET", "/svc/policies", "", 200, `[]`)
	b.want("GET", "/svc/policies/gold", "", 404, failed("Policy not found"))
	b.reload()
	if got := decoded[[]definition.Policy](t, b.call("GET", "/svc/policies", "")); len(got) != 2 || got[0].Key() != "5ed4" || got[1].Key() != "gold" {
		t.Errorf("got %+v", got)
	}
	if got := b.call("GET", "/svc/policies/gold", ""); got.status != 200 || !strings.Contains(got.body, `"x-note":{"<b>":1}`) || !strings.Contains(got.body, `"rate":10,`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	b.want("PUT", "/svc/policies/gold", `{"id":"gold","rate":20,"per":1}`, 200, done("gold", "modified"))
	b.want("DELETE", "/svc/policies/5ed4", "", 200, done("5ed4", "deleted"))
	b.want("DELETE", "/svc/policies/5ed4", "", 500, failed("Delete failed"))
	b.reload()
	if got := b.live.Policies(); got.Len() != 1 || got.Get("gold").Rate != 20 {
		t.Errorf("got %+v", got.All())
	}
}

func TestInvalidPoliciesAreRefused(t *testing.T) {
	b := onFiles(t)
	const mismatch = "Request ID does not match that in policy! For Update operations these must match."
	for _, c := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/svc/policies", `{"id":`, 400, "Request malformed"},
		{"POST", "/svc/policies", `{"rate":1,"per":1}`, 400, "Unable to create policy without id."},
		{"POST", "/svc/policies", `{"id":"a/b"}`, 400, "Validation of Policy failed. Reason: id: must consist of"},
		{"POST", "/svc/policies", `{"id":"a","rate":"x","per":[]}`, 400, "Validation of Policy failed. Reason: rate: must be a number, not a string; per: must be a number, not an array."},
		{"PUT", "/svc/policies/a", `{"id":`, 400, "Request malformed"},
		{"PUT", "/svc/policies/a", `{"id":"b"}`, 400, mismatch},
		{"PUT", "/svc/policies/a", `{}`, 400, mismatch},
		{"PUT", "/svc/policies/a", `{"id":"a"}`, 404, "Policy not found"},
		{"DELETE", "/svc/policies/a", ``, 500, "Delete failed"},
		{"GET", "/svc/policies/a", ``, 404, "Policy not found"},
	} {
		got := b.call(c.method, c.path, c.body)
		if said := decoded[outcome](t, got); got.status != c.status || said.Status != "error" || !strings.HasPrefix(said.Message, c.message) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.status, got.body)
		}
	}
	if _, err := os.Stat(b.policies); err == nil {
		t.Error("a policies file was written")
	}
}

func TestAPolicyLeavesTheOthersAsTheyWereWritten(t *testing.T) {
	b := onFiles(t)
	if err := os.WriteFile(b.policies, []byte("\xef\xbb\xbf"+`{"odd":{"rate":"broken","x":[1, 2]},"gold":{"rate":1,"per":1}}`), 0o604); err != nil {
		t.Fatal(err)
	}
	b.want("POST", "/svc/policies", `{"id":"silver"}`, 200, done("silver", "added"))
	data, err := os.ReadFile(b.policies)
	if err != nil {
		t.Fatal(err)
	}
	all := decoded[map[string]struct{ Rate any }](t, response{body: string(data)})
	if namesOf(all) != "gold odd silver" || all["odd"].Rate != "broken" || all["gold"].Rate != 1.0 {
		t.Errorf("got %s", data)
	}
	if info, err := os.Stat(b.policies); err != nil || info.Mode().Perm() != 0o604 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAPoliciesFileThatCannotBeReadIsNotReplaced(t *testing.T) {
	b := onFiles(t)
	for _, content := range []string{`[]`, `null`, `{"gold":`, `5`} {
		if err := os.WriteFile(b.policies, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got := b.call("POST", "/svc/policies", `{"id":"silver"}`)
		if got.status != 500 || !strings.Contains(got.body, "The policies file must be a JSON object") {
			t.Errorf("%s: %d %s", content, got.status, got.body)
		}
		if data, err := os.ReadFile(b.policies); err != nil || string(data) != content {
			t.Errorf("%s became %s: %v", content, data, err)
		}
	}
}

func TestWithoutAPoliciesFileNoneIsSaved(t *testing.T) {
	b := onFiles(t, func(d *Deps) {
		d.Definitions.(*Files).opts.PoliciesFile = ""
	})
	b.want("POST", "/svc/policies", `{"id":"gold"}`, 500, failed("There is no file for policies: set gateway.policies_file"))
	b.want("DELETE", "/svc/policies/gold", "", 500, failed("There is no file for policies: set gateway.policies_file"))
}
