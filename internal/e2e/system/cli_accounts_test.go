package system

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestOrganisationsAndUsersAreKeptByCommands(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), settings{"gateway.organisations": "acme"}).StartReady()
	s.CLI("org", "create").Wants(t, 2, "NAME")
	s.CLI("org", "create", "Acme", "--id", "a/b").Wants(t, 6, "id: must consist of")
	s.CLI("org", "create", "Acme", "--id", "acme", "--admin", "ann@acme.example").Wants(t, 0, "acme", "access key  sla_")
	s.CLI("org", "create", "Acme", "--id", "acme").Wants(t, 6)
	s.CLI("org", "rename", "acme", "Acme Ltd").Wants(t, 0, "is named Acme Ltd")
	s.CLI("org", "ls").Wants(t, 0, "acme", "Acme Ltd")
	limited := s.CLI("org", "limits", "acme", "--quota", "1000", "--renewal", "3600", "--rate", "50", "--per", "2").Wants(t, 0, "has these limits")
	if !strings.Contains(limited.Stderr, "enforce_org_quotas is off") {
		t.Errorf("limits without a warning: %s", limited.Stderr)
	}
	s.CLI("org", "show", "acme").Wants(t, 0, "quota_remaining: 1000", "rate: 50")
	s.CLI("org", "limits", "acme").Wants(t, 2, "--none")
	s.CLI("org", "limits", "acme", "--none").Wants(t, 0, "has no limits")

	eve := s.CLI("user", "create", "eve@acme.example", "--role", "editor", "--org", "acme", "-q").Wants(t, 0).LastWord()
	s.CLI("user", "ls", "--org", "acme").Wants(t, 0, "ann@acme.example", "eve@acme.example")
	if own := s.CLI("user", "ls").Wants(t, 0, "admin@localhost"); strings.Contains(own.Stdout, "eve") {
		t.Errorf("users of another organisation are listed: %s", own.Stdout)
	}
	id := ""
	for line := range strings.SplitSeq(s.CLI("user", "ls", "--org", "acme", "--search", "eve").Wants(t, 0).Stdout, "\n") {
		if strings.Contains(line, "eve@") {
			id = strings.Fields(line)[0]
		}
	}
	s.CLI("user", "role", id, "viewer", "--org", "acme").Wants(t, 0, "has the role viewer")
	s.CLI("user", "show", id, "--org", "acme").Wants(t, 0, "role: \"viewer\"")
	s.CLI("user", "deactivate", id, "--org", "acme").Wants(t, 0, "is inactive")
	if a := rig.Call(t, http.MethodGet, s.Admin+"/api/users/me", nil, "Authorization", eve); a.Status != 401 {
		t.Errorf("a user who is inactive: %s", a)
	}
	s.CLI("user", "activate", id, "--org", "acme").Wants(t, 0, "is active")
	fresh := s.CLI("user", "reset-key", id, "--org", "acme", "-q").Wants(t, 0).LastWord()
	if a := rig.Call(t, http.MethodGet, s.Admin+"/api/users/me", nil, "Authorization", fresh); a.Status != 200 || !strings.Contains(a.Body, `"org_id":"acme"`) {
		t.Errorf("with the new key: %s", a)
	}
	s.CLI("user", "rm", id, "--org", "acme", "--yes").Wants(t, 0, "is deleted")

	// Gateways serve the organisations that they are told.
	r := s.Rest()
	theirs, ours := rig.APIDef("theirs", "http://"+up, false), rig.APIDef("ours", "http://"+up, true)
	theirs["org_id"] = "acme"
	r.Do(http.MethodPost, "/api/apis", ours)
	r.Do(http.MethodPost, "/api/apis", theirs)
	s.CLI("api", "ls", "--org", "acme").Wants(t, 0, "theirs")
	r.Do(http.MethodPost, "/api/policies", object{"id": "gold", "name": "gold", "org_id": "acme", "access_rights": rig.AccessTo("theirs")})
	key := s.CLI("key", "create", "--policy", "gold", "--org", "acme", "-q").Wants(t, 0).LastWord()
	if a := s.AwaitUse("/theirs/", key); a.Status != 200 {
		t.Fatalf("%s", a)
	}
	if a := rig.Call(t, http.MethodGet, s.Traffic+"/ours/", nil); a.Status != 404 {
		t.Errorf("an API of an organisation that is not served: %s", a)
	}

	s.CLI("org", "end", "acme", "--yes").Wants(t, 6, "1 API, 1 policy, 1 key", "say --force")
	s.CLI("org", "end", "acme", "--yes", "--force").Wants(t, 0, "has ended")
	rig.Eventually(t, "the end of its API", func() error {
		return rig.Lacks(rig.Call(t, http.MethodGet, s.Traffic+"/theirs/", nil, "Authorization", key).String(), "404")
	})
}

func TestCertificatesAreKeptByCommands(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte(testenv.NewAuthority(t, "ca").PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.CLI("cert", "add").Wants(t, 2, "FILE")
	s.CLI("cert", "add", "-").Wants(t, 6, "pem: ")
	id := s.CLI("cert", "add", file, "-q").Wants(t, 0).LastWord()
	s.CLI("cert", "ls").Wants(t, 0, id, "SERVED")
	s.CLI("cert", "show", id).Wants(t, 0, "has_private: false", "may_serve: false")
	s.CLI("cert", "rm", id, "--yes").Wants(t, 0, "is deleted")
	s.CLI("cert", "show", id).Wants(t, 6)
}
