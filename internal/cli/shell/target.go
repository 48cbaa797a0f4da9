package shell

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/spf13/cobra"
)

// A Target is the server that a command calls.
type Target struct {
	Server  string // URL of an admin
	Gateway string // URL of a gateway API
	Token   string // access key of a user of the admin
	Org     string // id of the organisation that calls of the admin are about; "": the user's
	TLS     Trust

	tokenFrom string // name of the place that Token is from; "": the flag --token
}

// dataDir is the directory where servers of this machine keep their secrets.
var dataDir = Setting{"data-dir", "data_dir", "`DIR` where a server of this machine keeps its secrets"}

// Flags adds the flags that choose an admin or a gateway.
func (t *Target) Flags(cmd *cobra.Command) {
	AddSettings(cmd, []Setting{dataDir})
	t.AdminFlags(cmd)
	cmd.Flags().StringVar(&t.Gateway, "gateway", "", "`URL` of a gateway's own API, in place of the admin; its secret is SLUICE_SECRET or that of the configuration")
}

// AdminFlags adds the flags that choose an admin and an organisation.
func (t *Target) AdminFlags(cmds ...*cobra.Command) {
	t.ServerFlags(cmds...)
	for _, cmd := range cmds {
		cmd.Flags().StringVar(&t.Org, "org", "", "`ID` of the organisation to act for; admins of the first one may act for all")
	}
}

// ServerFlags adds the flags that choose an admin.
func (t *Target) ServerFlags(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.Flags().StringVar(&t.Server, "server", "", "`URL` of the admin (SLUICE_SERVER)")
		cmd.Flags().StringVar(&t.Token, "token", "", "access `KEY` of a user of the admin; SLUICE_TOKEN or a login is safer, because other users can see arguments")
		t.TLS.Flags(cmd)
	}
}

// TargetHelp describes in the help how a server is chosen.
const TargetHelp = `Calls the admin at --server, or the gateway at --gateway. Without either it is
the admin of --profile or of the last login, else the one of this machine if its
key can be read (data_dir/admin.key, or SLUICE_TOKEN), else the gateway of this
machine if its secret is configured.`

// AdminHelp describes in the help how an admin is chosen.
const AdminHelp = `Calls the admin at --server, or that of --profile or of the last login, or the
one of this machine if its key can be read (data_dir/admin.key, or SLUICE_TOKEN).`

var (
	errNoServer  = errors.New("no server to ask: name an admin with sluice login, or with --server and SLUICE_TOKEN, or a gateway with --gateway and SLUICE_SECRET")
	errNoCert    = errors.New("is the private key of a client certificate, which is not given; name it with --client-cert")
	errAdminOnly = errors.New("a gateway cannot do that; name an admin with sluice login, or with --server and SLUICE_TOKEN")
)

// Client returns a client of the server, and whether it is an admin.
func (s *Shell) Client(cmd *cobra.Command, t *Target) (c *Client, admin bool, err error) {
	if t.Server != "" && t.Gateway != "" {
		return nil, false, &UsageError{Cause: errors.New("--server and --gateway are both given; keep one"), Command: cmd.CommandPath()}
	}
	if t.Server == "" && t.Gateway == "" {
		t.Server = s.Variable("SLUICE_SERVER")
	}
	if t.Token == "" {
		t.Token, t.tokenFrom = s.Variable("SLUICE_TOKEN"), "SLUICE_TOKEN"
	}
	s.Trusted(&t.TLS)
	if t.Gateway == "" {
		if err := s.loggedIn(t); err != nil {
			return nil, false, Exit(ExitUsage, err.Error())
		}
	}
	if t.Server != "" && t.Token != "" {
		c, err = t.admin()
		return c, true, err
	}
	cfg, _, err := s.Load(cmd, config.AnyRole, dataDir)
	if err != nil {
		return nil, false, err
	}
	return t.local(cfg)
}

// ProfileName returns the name of the selected profile, "" for none.
func (s *Shell) ProfileName() string {
	if s.Profile != "" {
		return s.Profile
	}
	return s.Variable("SLUICE_PROFILE")
}

// loggedIn completes the target from the user's profiles. A key is only sent to the
// server that it belongs to.
func (s *Shell) loggedIn(t *Target) error {
	name := s.ProfileName()
	if name == "" && t.Token != "" {
		return nil
	}
	path, err := ProfilePath(s.Lookup)
	if errors.Is(err, errNoHome) && name == "" {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := ReadProfiles(path)
	if err != nil {
		return err
	}
	one, err := all.Find(name)
	if name == "" && t.Server != "" {
		one, err = all.Of(t.Server), nil
	}
	if err != nil || one == nil {
		return err
	}
	if t.Server != "" && !sameServer(t.Server, one.Server) {
		return fmt.Errorf("profile %s is of %s, and not of %s: leave out one of the two", name, one.Server, t.Server)
	}
	if t.Server = one.Server; t.Token == "" {
		t.Token, t.tokenFrom = one.Key, "key of profile "+one.name
	}
	t.TLS.ofProfile(one)
	return nil
}

// local completes the target from the configuration and data of this machine.
func (t *Target) local(cfg *config.Config) (c *Client, admin bool, err error) {
	file := ""
	if t.Token == "" {
		t.Token, file = secretFile(cfg.DataDir, adminKeyFile), filepath.Join(cfg.DataDir, adminKeyFile)
		t.tokenFrom = file
	}
	if t.Gateway == "" && t.Token != "" {
		if t.Server == "" {
			t.Server = URLOf(cfg.Admin.Listen, cfg.Admin.TLS.On())
			t.TLS.OfThisMachine(&cfg.Admin.TLS)
		}
		if c, err = t.admin(); err == nil {
			c.keyFile = file
		}
		return c, true, err
	}
	if t.Org != "" {
		return nil, false, Exit(ExitUsage, "--org: a gateway acts for no single organisation; name an admin with --server")
	}
	if t.Server != "" {
		return nil, false, Exit(ExitUsage, "no access key for "+t.Server+": set SLUICE_TOKEN, or run sluice login "+t.Server)
	}
	credential, up := cfg.Secret.Reveal(), !cfg.Gateway.Alone()
	if credential == "" {
		credential = secretFile(cfg.DataDir, gatewaySecretFile)
		up = up || credential != "" // which only up keeps
	}
	control := cfg.Gateway.ControlAddress(up)
	switch {
	case credential == "" && t.Gateway == "":
		return nil, false, Exit(ExitUsage, errNoServer.Error())
	case credential == "":
		return nil, false, Exit(ExitUsage, "no secret for "+t.Gateway+": set SLUICE_SECRET to the gateway's")
	case t.Gateway == "" && control != "":
		t.Gateway = URLOf(control, false)
	case t.Gateway == "":
		t.Gateway = URLOf(cfg.Gateway.Listen, false)
	}
	if err := CheckCredential(filepath.Join(cfg.DataDir, gatewaySecretFile), credential); err != nil { // that of the configuration is checked
		return nil, false, err
	}
	if c, err = NewGateway(t.Gateway, credential); err != nil {
		return nil, false, InFlag("--gateway", err)
	}
	return c, false, c.Trust(t.TLS)
}

// admin returns a client of the admin.
func (t *Target) admin() (*Client, error) {
	if err := CheckCredential(cmp.Or(t.tokenFrom, "--token"), t.Token); err != nil {
		return nil, err
	}
	c, err := NewAdmin(t.Server, t.Token)
	if err != nil {
		return nil, InFlag("--server", err)
	}
	c.org = t.Org
	return c, c.Trust(t.TLS)
}

// CheckCredential refuses a credential that cannot be sent in a header. from names the
// place that it is from.
func CheckCredential(from, credential string) error {
	return InFlag(from, secret.CheckHeader(credential))
}

// Files in data_dir with credentials.
const (
	adminKeyFile      = "admin.key"      // access key of the first admin
	gatewaySecretFile = "gateway.secret" // secret of the gateway API
)

// secretFile returns a secret that a server on this machine keeps, "" if it cannot be
// read.
func secretFile(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// URLOf returns the URL of a listener of this machine. secure: it speaks TLS.
func URLOf(listen string, secure bool) string {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return scheme + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}

// Admin returns a client of an admin.
func (s *Shell) Admin(cmd *cobra.Command, t *Target) (*Client, error) {
	c, isAdmin, err := s.Client(cmd, t)
	if err == nil && !isAdmin {
		err = Exit(ExitUsage, errAdminOnly.Error())
	}
	return c, err
}

// A Request is a call of an admin.
type Request struct {
	Method, Path string
	Body         any // sent as JSON, unless it is nil
}

// Ask calls an admin and decodes the response into view, which may be nil.
func (s *Shell) Ask(cmd *cobra.Command, t *Target, r Request, view any) (answer []byte, err error) {
	c, err := s.Admin(cmd, t)
	if err != nil {
		return nil, err
	}
	if answer, err = c.Call(cmd.Context(), r.Method, r.Path, r.Body); err != nil {
		return nil, AsExit(err)
	}
	if view != nil {
		if err := json.Unmarshal(answer, view); err != nil {
			return nil, fmt.Errorf("reading what %s answers: %w", c.Base(), err)
		}
	}
	return answer, nil
}

// Profiles returns the names of the user's logins, for completion.
func (s *Shell) Profiles() []string {
	path, err := ProfilePath(s.Lookup)
	if err != nil {
		return nil
	}
	all, err := ReadProfiles(path)
	if err != nil {
		return nil
	}
	return all.Names()
}
