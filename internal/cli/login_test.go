package cli_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/cli"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/spf13/cobra"
)

const planted = "sla_planted0key"

// terminalUser is a user at a terminal, with a home directory of their own.
type terminalUser struct {
	t           *testing.T
	home, stdin string
	env         []string
}

// does runs one command, and returns its exit code and output.
func (u *terminalUser) does(args ...string) (code int, text string) {
	u.t.Helper()
	var out bytes.Buffer
	code = cli.Run(context.Background(), cli.Process{
		Args: args, Env: append([]string{"HOME=" + u.home}, u.env...), Stdin: strings.NewReader(u.stdin), Stdout: &out, Stderr: &out,
	})
	if strings.Contains(out.String(), planted) {
		u.t.Errorf("%v prints the key: %s", args, out.String())
	}
	return code, out.String()
}

func (u *terminalUser) wants(code int, says string, args ...string) {
	u.t.Helper()
	if got, text := u.does(args...); got != code || !strings.Contains(text, says) {
		u.t.Errorf("%v: code %d, want %d, with %q in: %s", args, got, code, says, text)
	}
}

// newAdmin returns the URL of an admin that accepts one key.
func newAdmin(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/users/me" || r.Header.Get("Authorization") != "Bearer "+planted {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"email_address": "ann@example.com", "role": "editor"})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestALoginIsKeptForItsUserAlone(t *testing.T) {
	admin := newAdmin(t)
	u := &terminalUser{t: t, home: t.TempDir(), stdin: planted + "\n"}
	u.wants(0, "as ann@example.com (editor), profile default", "login", admin+"/")
	file := filepath.Join(u.home, ".config", "sluice", "profiles.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", dir, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 1 {
		t.Errorf("files left behind: %v", entries)
	}
	u.wants(0, admin+"  ann@example.com  true", "profile", "ls")

	u.stdin, u.env = "", []string{"SLUICE_TOKEN=" + planted, "SLUICE_SERVER=" + admin, "SLUICE_PROFILE=second"}
	u.wants(0, "profile second", "login")
	u.env = nil
	u.wants(0, admin, "profile", "use", "default")
	u.wants(2, `profile "third" is not there; there is default, second`, "profile", "use", "third")
	u.wants(0, "forgot default", "logout")
	u.wants(0, "second", "profile", "ls")
	u.wants(2, `"default" is not there`, "logout", "--profile", "default")
	u.wants(0, "forgot second", "logout") // the only one left took its place
	u.wants(0, "there is no login", "logout")
	data, err := os.ReadFile(file)
	if err != nil || bytes.Contains(data, []byte(planted)) {
		t.Errorf("%v, %s", err, data)
	}
}

func TestALoginThatIsRefusedLeavesWhatWasThere(t *testing.T) {
	admin := newAdmin(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer web.Close()
	u := &terminalUser{t: t, home: t.TempDir(), stdin: planted}
	u.wants(0, "logged in", "login", admin)
	before, err := os.ReadFile(filepath.Join(u.home, ".config/sluice/profiles.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code  int
		says  string
		stdin string
		args  []string
	}{
		{6, "does not know this access key", "sla_other", []string{"login", admin}},
		{6, "is it the URL of one?", planted, []string{"login", web.URL}},
		{7, "cannot be reached", planted, []string{"login", "http://127.0.0.1:1"}},
		{2, "is not a URL", planted, []string{"login", "127.0.0.1:8081"}},
		{2, "standard input is empty", "", []string{"login", admin}},
		{2, "one word", "two words", []string{"login", admin}},
		{2, "no name of a profile", planted, []string{"login", admin, "--profile", "../x"}},
		{2, "want one URL", planted, []string{"login", admin, admin}},
		{2, "the access key: has a line break or another control character", planted + "\x1b", []string{"login", admin}},
		{2, "--token: is no access key", "", []string{"login", admin, "--token", planted + "\nx"}},
	} {
		u.stdin = c.stdin
		u.wants(c.code, c.says, c.args...)
	}
	after, err := os.ReadFile(filepath.Join(u.home, ".config/sluice/profiles.json"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("%v: %s, was %s", err, after, before)
	}
}

// A credential that no header can hold is refused before a call, by the name of its place.
func TestCredentialsThatCannotBeSentAreRefusedByName(t *testing.T) {
	const broken = planted + "\nsecond line"
	dataDir := t.TempDir()
	u := &terminalUser{t: t, home: t.TempDir(), env: []string{"SLUICE_DATA_DIR=" + dataDir}}
	all := &shell.Profiles{Current: "work", Named: map[string]shell.Profile{"work": {Server: "http://127.0.0.1:1", Key: broken}}}
	if err := all.Write(filepath.Join(u.home, ".config/sluice/profiles.json")); err != nil {
		t.Fatal(err)
	}
	const why = ": has a line break"
	u.wants(2, "key of profile work"+why, "api", "ls")
	u.wants(2, "key of profile work"+why, "api", "ls", "--server", "http://127.0.0.1:1")
	u.wants(2, "--token"+why, "api", "ls", "--token", broken)
	u.wants(2, "--secret"+why, "import", "--from", "http://127.0.0.1:1", "--secret", broken)
	for variable, args := range map[string][]string{
		"SLUICE_TOKEN":         {"api", "ls"},
		"SLUICE_IMPORT_SECRET": {"import", "--from", "http://127.0.0.1:1"},
	} {
		before := u.env
		u.env = append(u.env, variable+"="+broken)
		u.wants(2, variable+why, args...)
		u.env = before
	}
	u.home = t.TempDir()
	for _, file := range []string{"gateway.secret", "admin.key"} {
		path := filepath.Join(dataDir, file)
		if err := os.WriteFile(path, []byte(broken+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		u.wants(2, path+why, "key", "ls")
	}
}

func TestProfilesThatCannotBeTrustedAreNotRead(t *testing.T) {
	u := &terminalUser{t: t, home: t.TempDir()}
	dir := filepath.Join(u.home, ".config", "sluice")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "profiles.json")
	for _, c := range []struct {
		says, content string
		mode          os.FileMode
	}{
		{"others may read its keys", `{"profiles":{}}`, 0o644},
		{"is damaged", `{"profiles":`, 0o600},
		{"is damaged", `{"profiles":null}`, 0o600},
	} {
		if err := os.WriteFile(file, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		u.wants(2, c.says, "profile", "ls")
	}
	u.home = ""
	u.wants(2, "neither XDG_CONFIG_HOME nor HOME", "profile", "ls")
}

func TestAKeyGoesToNoOtherServer(t *testing.T) {
	home := t.TempDir()
	all := &shell.Profiles{Current: "a", Named: map[string]shell.Profile{
		"a": {Server: "http://a:1", Key: planted}, "b": {Server: "http://b:1", Key: "sla_b"},
	}}
	if err := all.Write(filepath.Join(home, ".config/sluice/profiles.json")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env           []string
		target        shell.Target
		profile       string
		server, wrong string
	}{
		"the last login":                {server: "http://a:1"},
		"a login by its name":           {profile: "b", server: "http://b:1"},
		"a login by its server":         {target: shell.Target{Server: "http://b:1/"}, server: "http://b:1"},
		"a variable before the login":   {env: []string{"SLUICE_SERVER=http://b:1"}, server: "http://b:1"},
		"a server without a login":      {target: shell.Target{Server: "http://c:1"}, wrong: "no access key for http://c:1"},
		"a server that is another's":    {target: shell.Target{Server: "http://a:1"}, profile: "b", wrong: "profile b is of http://b:1"},
		"a login that is not there":     {profile: "c", wrong: `profile "c" is not there`},
		"a key that is given":           {target: shell.Target{Server: "http://c:1", Token: "sla_c"}, server: "http://c:1"},
		"a key alone is of the machine": {env: []string{"SLUICE_TOKEN=sla_c"}, server: "http://127.0.0.1:8081"},
	} {
		s := &shell.Shell{Env: append([]string{"HOME=" + home, "SLUICE_DATA_DIR=" + t.TempDir()}, c.env...), Profile: c.profile}
		cmd := &cobra.Command{}
		target := c.target
		target.Flags(cmd)
		target.Server, target.Token = c.target.Server, c.target.Token
		shell.AddSettings(cmd, []shell.Setting{{Flag: "log-level", Key: "log.level"}, {Flag: "log-format", Key: "log.format"}})
		got, err := s.Admin(cmd, &target)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", name, err, c.wrong)
			}
		case err != nil || got.Base() != c.server:
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.server)
		}
	}
}

// What a profile says about TLS completes what flags and the environment say, member by
// member.
func TestEachMemberOfAProfileIsUsedOnItsOwn(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "ours")
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	id, other := authority.Client("ann"), testenv.NewAuthority(t, "theirs")
	ca, otherCA := file("ca.pem", authority.PEM()), file("other-ca.pem", other.PEM())
	cert, key, both := file("cert.pem", id.CertPEM), file("key.pem", id.KeyPEM), file("both.pem", id.CertPEM+id.KeyPEM)
	otherCert, otherKey := file("other.pem", other.Client("ben").CertPEM), file("other-key.pem", other.Client("ben").KeyPEM)

	issued := authority.Server("127.0.0.1")
	serving, err := tls.X509KeyPair([]byte(issued.CertPEM), []byte(issued.KeyPEM))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"apis":[]}`)) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	u := &terminalUser{t: t, home: t.TempDir()}
	for name, c := range map[string]struct {
		profile shell.Trust
		env     []string
		args    []string
		code    int
		says    string
	}{
		"all of the profile":                      {profile: shell.Trust{CA: ca, Cert: cert, Key: key}},
		"an authority beside a certificate":       {profile: shell.Trust{CA: otherCA, Cert: cert, Key: key}, args: []string{"--ca", ca}},
		"an authority beside none":                {profile: shell.Trust{Cert: both}, env: []string{"SLUICE_CA=" + ca}},
		"a certificate beside an authority":       {profile: shell.Trust{CA: ca}, args: []string{"--client-cert", both}},
		"a certificate in place of another":       {profile: shell.Trust{CA: ca, Cert: otherCert, Key: otherKey}, env: []string{"SLUICE_CLIENT_CERT=" + both}},
		"a private key in place of another":       {profile: shell.Trust{CA: ca, Cert: cert, Key: otherKey}, args: []string{"--client-key", key}},
		"an authority of the profile that fails":  {shell.Trust{CA: key, Cert: both}, nil, nil, 2, "ca of profile work: " + key},
		"an authority of the environment":         {shell.Trust{CA: ca, Cert: both}, []string{"SLUICE_CA=" + key}, nil, 2, "SLUICE_CA: " + key},
		"an authority of a flag":                  {shell.Trust{CA: ca, Cert: both}, nil, []string{"--ca", key}, 2, "--ca: " + key},
		"a certificate that is not there":         {shell.Trust{CA: ca, Cert: dir + "/none"}, nil, nil, 2, "client_cert of profile work: "},
		"a private key of another certificate":    {shell.Trust{CA: ca, Cert: cert, Key: otherKey}, nil, nil, 2, "client_cert of profile work, client_key of profile work: "},
		"a private key of none":                   {shell.Trust{CA: ca, Key: key}, nil, nil, 2, "client_key of profile work: is the private key of a client certificate"},
		"a certificate without the profile's key": {shell.Trust{CA: ca, Cert: cert, Key: key}, nil, []string{"--client-cert", cert}, 2, "--client-cert: " + cert + ": has no private key"},
	} {
		all := &shell.Profiles{Current: "work", Named: map[string]shell.Profile{"work": {Server: server.URL, Key: planted, Trust: c.profile}}}
		if err := all.Write(filepath.Join(u.home, ".config/sluice/profiles.json")); err != nil {
			t.Fatal(err)
		}
		u.env = c.env
		if code, text := u.does(append([]string{"api", "ls"}, c.args...)...); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: code %d, want %d, with %q in: %s", name, code, c.code, c.says, text)
		}
	}
}
