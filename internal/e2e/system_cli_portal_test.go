package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// lastWord is what a command prints alone.
func (r result) lastWord() string {
	fields := strings.Fields(r.stdout)
	if len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1]
}

func TestKeyRequestsAreDecidedByCommands(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	r.do(http.MethodPost, "/api/apis", apiDef("orders", "http://"+up, false))
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": accessTo("orders")})

	s.own("portal", "catalogue", "add").wants(t, 2, "--name NAME")
	entry := s.own("portal", "catalogue", "add", "--name", "Orders", "--policy", "gold", "--api", "orders", "--description", "all of them", "-q").wants(t, 0).lastWord()
	s.own("portal", "catalogue", "ls").wants(t, 0, entry, "Orders", "gold", "all of them")
	s.own("portal", "catalogue", "hide", entry).wants(t, 0, "is hidden")
	s.own("portal", "catalogue", "show", entry, "-o", "json").wants(t, 0, `"show": false`)
	s.own("portal", "catalogue", "unhide", entry).wants(t, 0, "is shown")

	s.own("portal", "developer", "create").wants(t, 2, "--email ADDRESS")
	s.own("portal", "developer", "create", "--email", "no address").wants(t, 6, "email")
	ann := s.own("portal", "developer", "create", "--email", "ann@example.com", "--field", "company=Example", "-q").wants(t, 0).lastWord()
	s.own("portal", "developer", "ls", "--search", "ann").wants(t, 0, ann, "ann@example.com")
	s.own("portal", "developer", "deactivate", ann).wants(t, 0, "is inactive")
	s.own("portal", "developer", "show", ann).wants(t, 0, "inactive: true", "company")
	s.own("portal", "developer", "activate", ann).wants(t, 0, "is active")

	var asked [3]string
	for i := range asked {
		var made struct{ Message string }
		r.do(http.MethodPost, "/api/portal/requests", object{"by_user": ann, "for_plan": "gold", "apply_policies": []string{"gold"}}).into(t, &made)
		asked[i] = made.Message
		if i == 0 { // of one policy a developer has one key
			s.own("request", "ls", "--state", "pending").wants(t, 0, asked[0], "ann@example.com", "gold")
			s.own("request", "reject", asked[0], "--reason", "too much").wants(t, 0, "is rejected")
			s.own("request", "show", asked[0]).wants(t, 0, "too much", "rejected")
			s.own("request", "approve", asked[0]).wants(t, 6)
		}
		if i == 1 {
			key := s.own("-q", "request", "approve", asked[1]).wants(t, 0).stdout
			if a := s.awaitUse("/orders/", strings.TrimSpace(key)); a.status != 200 {
				t.Fatalf("the key that was shown: %s", a)
			}
			if strings.Contains(s.run.stdout.String()+s.run.stderr.String(), strings.TrimSpace(key)) {
				t.Error("the server logs the key")
			}
			if again := s.own("request", "approve", asked[1]).wants(t, 6); strings.Contains(again.stdout+again.stderr, strings.TrimSpace(key)) {
				t.Error("the key is shown twice")
			}
			break
		}
	}
	s.own("request", "ls", "--state", "approved").wants(t, 0, asked[1])
	s.own("request", "ls", "--state", "odd").wants(t, 6, "state must be")
	s.own("request", "show", "none").wants(t, 6)
	s.own("request", "rm", asked[0]).wants(t, 2, "--yes")
	s.own("request", "rm", asked[0], "--yes").wants(t, 0, "is deleted")
	s.own("portal", "developer", "rm", ann, "--yes").wants(t, 0, "is deleted")
	s.own("portal", "catalogue", "rm", entry, "--yes").wants(t, 0, "is deleted")
}

func TestThePortalIsSetUpByCommands(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	file := filepath.Join(t.TempDir(), "portal.json")
	var now object
	text := s.own("portal", "configuration", "show", "-o", "json").wants(t, 0, "require_key_approval").stdout
	if err := json.Unmarshal([]byte(text), &now); err != nil {
		t.Fatal(err)
	}
	now["disable_signup"] = true
	saveJSON(t, file, now)
	s.own("portal", "configuration", "set").wants(t, 2, "-f FILE")
	s.own("portal", "configuration", "set", "-f", file).wants(t, 0, "is replaced")
	s.own("portal", "configuration", "show", "-o", "json").wants(t, 0, `"disable_signup": true`)
	s.own("portal", "configuration", "set", "-f", file).wants(t, 0, "is replaced")

	s.own("portal", "webhook", "add", "--url", "https://example.com/hook").wants(t, 6, "events")
	hook := s.own("portal", "webhook", "add", "--name", "audit", "--url", "https://example.com/hook", "--event", "key_event.created").wants(t, 0, "secret  whsec_", "shown once")
	id := strings.Fields(hook.stdout)[1]
	s.own("portal", "webhook", "ls").wants(t, 0, id, "audit", "key_event.created")
	rotated := s.own("portal", "webhook", "rotate", id, "--grace", "1h").wants(t, 0, "secret  whsec_")
	if strings.Fields(rotated.stdout)[1] == strings.Fields(hook.stdout)[3] {
		t.Error("the secret is the same")
	}
	s.own("portal", "webhook", "disable", id).wants(t, 0, "is disabled")
	s.own("portal", "webhook", "enable", id).wants(t, 0, "is enabled")
	s.own("portal", "delivery", "ls").wants(t, 0, "ID")
	s.own("portal", "mailbox", "ls", "-o", "json").wants(t, 0, "Data")
	s.own("portal", "webhook", "rm", id, "--yes").wants(t, 0, "is deleted")
	s.own("portal", "webhook", "show", id).wants(t, 6)
}
