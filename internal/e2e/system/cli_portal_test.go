package system

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestKeyRequestsAreDecidedByCommands(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://"+up, false))
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("orders")})

	s.CLI("portal", "catalogue", "add").Wants(t, 2, "--name NAME")
	entry := s.CLI("portal", "catalogue", "add", "--name", "Orders", "--policy", "gold", "--api", "orders", "--description", "all of them", "-q").Wants(t, 0).LastWord()
	s.CLI("portal", "catalogue", "ls").Wants(t, 0, entry, "Orders", "gold", "all of them")
	s.CLI("portal", "catalogue", "hide", entry).Wants(t, 0, "is hidden")
	s.CLI("portal", "catalogue", "show", entry, "-o", "json").Wants(t, 0, `"show": false`)
	s.CLI("portal", "catalogue", "unhide", entry).Wants(t, 0, "is shown")

	s.CLI("portal", "developer", "create").Wants(t, 2, "--email ADDRESS")
	s.CLI("portal", "developer", "create", "--email", "no address").Wants(t, 6, "email")
	ann := s.CLI("portal", "developer", "create", "--email", "ann@example.com", "--field", "company=Example", "-q").Wants(t, 0).LastWord()
	s.CLI("portal", "developer", "ls", "--search", "ann").Wants(t, 0, ann, "ann@example.com")
	s.CLI("portal", "developer", "deactivate", ann).Wants(t, 0, "is inactive")
	s.CLI("portal", "developer", "show", ann).Wants(t, 0, "inactive: true", "company")
	s.CLI("portal", "developer", "activate", ann).Wants(t, 0, "is active")

	var asked [3]string
	for i := range asked {
		var made struct{ Message string }
		r.Do(http.MethodPost, "/api/portal/requests", object{"by_user": ann, "for_plan": "gold", "apply_policies": []string{"gold"}}).Into(t, &made)
		asked[i] = made.Message
		if i == 0 { // of one policy a developer has one key
			s.CLI("request", "ls", "--state", "pending").Wants(t, 0, asked[0], "ann@example.com", "gold")
			s.CLI("request", "reject", asked[0], "--reason", "too much").Wants(t, 0, "is rejected")
			s.CLI("request", "show", asked[0]).Wants(t, 0, "too much", "rejected")
			s.CLI("request", "approve", asked[0]).Wants(t, 6)
		}
		if i == 1 {
			key := s.CLI("-q", "request", "approve", asked[1]).Wants(t, 0).Stdout
			if a := s.AwaitUse("/orders/", strings.TrimSpace(key)); a.Status != 200 {
				t.Fatalf("the key that was shown: %s", a)
			}
			if strings.Contains(s.Run.Stdout.String()+s.Run.Stderr.String(), strings.TrimSpace(key)) {
				t.Error("the server logs the key")
			}
			if again := s.CLI("request", "approve", asked[1]).Wants(t, 6); strings.Contains(again.Stdout+again.Stderr, strings.TrimSpace(key)) {
				t.Error("the key is shown twice")
			}
			break
		}
	}
	s.CLI("request", "ls", "--state", "approved").Wants(t, 0, asked[1])
	s.CLI("request", "ls", "--state", "odd").Wants(t, 6, "state must be")
	s.CLI("request", "show", "none").Wants(t, 6)
	s.CLI("request", "rm", asked[0]).Wants(t, 2, "--yes")
	s.CLI("request", "rm", asked[0], "--yes").Wants(t, 0, "is deleted")
	s.CLI("portal", "developer", "rm", ann, "--yes").Wants(t, 0, "is deleted")
	s.CLI("portal", "catalogue", "rm", entry, "--yes").Wants(t, 0, "is deleted")
}

func TestThePortalIsSetUpByCommands(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	file := filepath.Join(t.TempDir(), "portal.json")
	var now object
	text := s.CLI("portal", "configuration", "show", "-o", "json").Wants(t, 0, "require_key_approval").Stdout
	if err := json.Unmarshal([]byte(text), &now); err != nil {
		t.Fatal(err)
	}
	now["disable_signup"] = true
	rig.SaveJSON(t, file, now)
	s.CLI("portal", "configuration", "set").Wants(t, 2, "-f FILE")
	s.CLI("portal", "configuration", "set", "-f", file).Wants(t, 0, "is replaced")
	s.CLI("portal", "configuration", "show", "-o", "json").Wants(t, 0, `"disable_signup": true`)
	s.CLI("portal", "configuration", "set", "-f", file).Wants(t, 0, "is replaced")

	s.CLI("portal", "webhook", "add", "--url", "https://example.com/hook").Wants(t, 6, "events")
	hook := s.CLI("portal", "webhook", "add", "--name", "audit", "--url", "https://example.com/hook", "--event", "key_event.created").Wants(t, 0, "secret  whsec_", "shown once")
	id := strings.Fields(hook.Stdout)[1]
	s.CLI("portal", "webhook", "ls").Wants(t, 0, id, "audit", "key_event.created")
	rotated := s.CLI("portal", "webhook", "rotate", id, "--grace", "1h").Wants(t, 0, "secret  whsec_")
	if strings.Fields(rotated.Stdout)[1] == strings.Fields(hook.Stdout)[3] {
		t.Error("the secret is the same")
	}
	s.CLI("portal", "webhook", "disable", id).Wants(t, 0, "is disabled")
	s.CLI("portal", "webhook", "enable", id).Wants(t, 0, "is enabled")
	s.CLI("portal", "delivery", "ls").Wants(t, 0, "ID")
	s.CLI("portal", "mailbox", "ls", "-o", "json").Wants(t, 0, "Data")
	s.CLI("portal", "webhook", "rm", id, "--yes").Wants(t, 0, "is deleted")
	s.CLI("portal", "webhook", "show", id).Wants(t, 6)
}
