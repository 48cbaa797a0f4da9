package cli

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/client"
	"github.com/sluicegate/sluice/internal/config"
)

// A target says which server a command calls.
type target struct {
	server  string // of an admin
	gateway string // of a gateway API
	token   string // access key of a user of the admin
}

// dataDir tells where servers of this machine keep their secrets.
var dataDir = setting{"data-dir", "data_dir", "`DIR` where a server of this machine keeps its secrets"}

// flags adds the flags that choose a server.
func (t *target) flags(cmd *cobra.Command) {
	addSettings(cmd, []setting{dataDir})
	cmd.Flags().StringVar(&t.server, "server", "", "`URL` of the admin (SLUICE_SERVER)")
	cmd.Flags().StringVar(&t.token, "token", "", "access `KEY` of a user of the admin; rather set SLUICE_TOKEN, which nobody else sees")
	cmd.Flags().StringVar(&t.gateway, "gateway", "", "`URL` of a gateway's own API, in place of the admin; its secret is SLUICE_SECRET or that of the configuration")
}

// targetHelp is what commands that call a server say of that.
const targetHelp = `The admin at --server is asked, or the gateway at --gateway. Without either it is
the admin of this machine if its key can be read (data_dir/admin.key, or
SLUICE_TOKEN), else the gateway of this machine if its secret is configured.`

var errNoServer = errors.New("no server to ask: name an admin with --server and SLUICE_TOKEN, or a gateway with --gateway and SLUICE_SECRET")

// client returns what calls the server, and whether that is an admin.
func (s *session) client(cmd *cobra.Command, t *target) (c *client.Client, admin bool, err error) {
	if t.server != "" && t.gateway != "" {
		return nil, false, &usageError{err: errors.New("--server and --gateway are both given; keep one"), command: cmd.CommandPath()}
	}
	if t.server == "" && t.gateway == "" {
		t.server = s.variable("SLUICE_SERVER")
	}
	if t.token == "" {
		t.token = s.variable("SLUICE_TOKEN")
	}
	if t.server != "" && t.token != "" {
		c, err = client.NewAdmin(t.server, t.token)
		return c, true, inFlag("--server", err)
	}
	cfg, _, err := s.load(cmd, config.AnyRole, dataDir)
	if err != nil {
		return nil, false, err
	}
	return t.local(cfg)
}

// local finds what is not given in the configuration and the data of this
// machine.
func (t *target) local(cfg *config.Config) (c *client.Client, admin bool, err error) {
	if t.token == "" {
		t.token = secretFile(cfg.DataDir, "admin.key")
	}
	if t.gateway == "" && t.token != "" {
		if t.server == "" {
			t.server = urlOf(cfg.Admin.Listen)
		}
		c, err = client.NewAdmin(t.server, t.token)
		return c, true, inFlag("--server", err)
	}
	if t.server != "" {
		return nil, false, &exitError{ExitUsage, "no access key for " + t.server + ": set SLUICE_TOKEN"}
	}
	secret := cfg.Secret.Reveal()
	if secret == "" {
		secret = secretFile(cfg.DataDir, "gateway.secret")
	}
	switch {
	case secret == "" && t.gateway == "":
		return nil, false, &exitError{ExitUsage, errNoServer.Error()}
	case secret == "":
		return nil, false, &exitError{ExitUsage, "no secret for " + t.gateway + ": set SLUICE_SECRET to the gateway's"}
	case t.gateway == "" && cfg.Gateway.ControlListen != "":
		t.gateway = urlOf(cfg.Gateway.ControlListen)
	case t.gateway == "":
		t.gateway = urlOf(cfg.Gateway.Listen)
	}
	c, err = client.NewGateway(t.gateway, secret)
	return c, false, inFlag("--gateway", err)
}

func inFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{ExitUsage, name + ": " + err.Error()}
}

// variable returns a variable of the environment.
func (s *session) variable(name string) string {
	i := slices.IndexFunc(s.process.Env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	if i < 0 {
		return ""
	}
	return s.process.Env[i][len(name)+1:]
}

// secretFile returns a secret that a server on this machine keeps, "" when it
// cannot be read.
func secretFile(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// urlOf is where a listener of this machine is reached.
func urlOf(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// asExit gives an error of a server the exit code that it stands for.
func asExit(err error) error {
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		return &exitError{ExitUnreachable, err.Error()}
	}
	if _, ok := errors.AsType[*client.RefusedError](err); ok {
		return &exitError{ExitRefused, err.Error()}
	}
	return err
}
