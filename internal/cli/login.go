package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

// defaultProfile is the profile used without --profile.
const defaultProfile = "default"

// logins are the commands that log in to admins, and out again.
type logins struct{ *shell.Shell }

// loginCommands returns login, logout and profile.
func loginCommands(s *shell.Shell) []*cobra.Command {
	r := &logins{s}
	return []*cobra.Command{r.loginCommand(), r.logoutCommand(), r.profileCommand()}
}

func (r *logins) loginCommand() *cobra.Command {
	var t shell.Target
	cmd := &cobra.Command{
		Use:   "login [URL]",
		Short: "Store the URL and access key of an admin for later commands",
		Long: `Prompts for the URL and the access key of an admin, verifies the key, and
stores both in a file that only you can read (~/.config/sluice/profiles.json, or
below XDG_CONFIG_HOME). Later commands use the last login if neither flags nor
variables name a server; --profile distinguishes several logins.

--ca, --client-cert and --client-key are stored as well, as paths, for an admin with
a certificate of a private authority, or one that requires client certificates.

The key is taken from --token or SLUICE_TOKEN, or entered without
echo; without a terminal it is the first line of standard input.`,
		Example: "  sluice login https://admin.example:8081\n  sluice login --profile staging --server https://staging.example:8081 < key",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && t.Server != "" && args[0] != t.Server {
				return errors.New("want one URL")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				t.Server = args[0]
			}
			return r.login(cmd.Context(), &t)
		},
	}
	t.ServerFlags(cmd)
	return cmd
}

// profiles reads the user's profiles.
func (r *logins) profiles() (all *shell.Profiles, path string, err error) {
	path, err = shell.ProfilePath(r.Lookup)
	if err == nil {
		all, err = shell.ReadProfiles(path)
	}
	if err != nil {
		return nil, "", shell.Exit(shell.ExitUsage, err.Error())
	}
	return all, path, nil
}

func (r *logins) login(ctx context.Context, t *shell.Target) error {
	name := r.ProfileName()
	if name == "" {
		name = defaultProfile
	}
	if err := shell.CheckProfileName(name); err != nil {
		return shell.InFlag("--profile", err)
	}
	all, path, err := r.profiles()
	if err != nil {
		return err
	}
	if err := r.complete(ctx, t, all.Named[name].Server); err != nil {
		return err
	}
	c, err := shell.NewAdmin(t.Server, t.Token)
	if err != nil {
		return shell.InFlag("URL", err)
	}
	r.Trusted(&t.TLS)
	if t.TLS, err = t.TLS.Absolute(); err != nil {
		return err
	}
	if err := c.Trust(t.TLS); err != nil {
		return err
	}
	who, err := whoIs(ctx, c)
	if err != nil {
		return err
	}
	if inTheClear(t.Server) {
		_, _ = fmt.Fprintf(r.Stderr, "sluice: %s is not encrypted: others on the way can read the key\n", t.Server)
	}
	all.Named[name], all.Current = shell.Profile{Server: c.Base(), User: who.Email, Key: t.Token, Trust: t.TLS}, name
	if err := all.Write(path); err != nil {
		return err
	}
	return r.Remark("logged in to %s as %s (%s), profile %s", c.Base(), who.Email, who.Role, name)
}

// complete prompts for missing values. before is the profile's current server.
func (r *logins) complete(ctx context.Context, t *shell.Target, before string) error {
	if t.Server == "" {
		t.Server = r.Variable("SLUICE_SERVER")
	}
	if t.Server == "" && shell.IsTerminal(r.Stdin) {
		question := "URL of the admin: "
		if before != "" {
			question = fmt.Sprintf("URL of the admin [%s]: ", before)
		}
		t.Server = r.Question(question)
	}
	if t.Server == "" {
		t.Server = before
	}
	if t.Server == "" {
		return shell.Exit(shell.ExitUsage, "say where to log in: sluice login URL")
	}
	from := "--token"
	if t.Token == "" {
		t.Token, from = r.Variable("SLUICE_TOKEN"), "SLUICE_TOKEN"
	}
	if t.Token == "" {
		var err error
		from = "the access key"
		if t.Token, err = r.Secret(ctx, "access key of "+t.Server); err != nil {
			return shell.Exit(shell.ExitUsage, err.Error()+"; it can also be given as SLUICE_TOKEN")
		}
	}
	if strings.ContainsAny(t.Token, " \t\r\n") {
		return shell.Exit(shell.ExitUsage, from+": is no access key, which is one word without spaces")
	}
	return shell.CheckCredential(from, t.Token)
}

// identity is the owner of a key.
type identity struct {
	Email string `json:"email_address"`
	Role  string `json:"role"`
}

// whoIs returns the user that an admin authenticates.
func whoIs(ctx context.Context, c *shell.Client) (*identity, error) {
	answer, err := c.Call(ctx, "GET", "/api/users/me", nil)
	if refused, ok := errors.AsType[*shell.RefusedError](err); ok && refused.Status == 401 {
		return nil, shell.Exit(shell.ExitRefused, c.Base()+" does not know this access key; nothing was kept")
	}
	if err != nil {
		return nil, shell.AsExit(err)
	}
	who := new(identity)
	if err := json.Unmarshal(answer, who); err != nil || who.Email == "" {
		return nil, shell.Exit(shell.ExitRefused, c.Base()+" answers, but not as an admin does: is it the URL of one?")
	}
	return who, nil
}

// inTheClear reports whether a key would be sent without encryption.
func inTheClear(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func (r *logins) logoutCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "Delete the stored access key of a login",
		Long: `Deletes the stored access key of --profile, or of the last login. The admin still
accepts the key; to revoke it, reset it (sluice user reset-key ID).`,
		Args: shell.NoArgs,
		RunE: func(*cobra.Command, []string) error { return r.logout(all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "delete every login")
	return cmd
}

func (r *logins) logout(everything bool) error {
	all, path, err := r.profiles()
	if err != nil {
		return err
	}
	name := r.ProfileName()
	if name == "" {
		name = all.Current
	}
	gone := []string{name}
	switch _, there := all.Named[name]; {
	case everything:
		gone = all.Names()
	case name == "" && len(all.Named) > 0:
		return shell.Exit(shell.ExitUsage, "say which login to forget with --profile: "+strings.Join(all.Names(), ", "))
	case !there && name != "":
		return shell.Exit(shell.ExitUsage, (&shell.UnknownProfileError{Name: name, Have: all.Names()}).Error())
	}
	if len(all.Named) == 0 {
		return r.Remark("there is no login")
	}
	for _, one := range gone {
		all.Remove(one)
	}
	if err := all.Write(path); err != nil {
		return err
	}
	return r.Remark("forgot %s", strings.Join(gone, ", "))
}

func (r *logins) profileCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "ls", Short: "List the logins", Args: shell.NoArgs,
		RunE: func(*cobra.Command, []string) error { return r.list() },
	}
	use := &cobra.Command{
		Use: "use NAME", Short: "Choose the login that commands use", Args: shell.OneArg("NAME, as profile ls lists it"),
		RunE: func(_ *cobra.Command, args []string) error { return r.use(args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return r.Profiles(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	return shell.Group("profile", "List the logins, and choose one", list, use)
}

func (r *logins) list() error {
	all, _, err := r.profiles()
	if err != nil {
		return err
	}
	data := shell.Rows{Columns: []string{"name", "server", "user", "current"}}
	for _, name := range all.Names() {
		one := all.Named[name]
		data.Cells = append(data.Cells, []any{name, one.Server, one.User, name == all.Current})
	}
	return r.Print(data)
}

func (r *logins) use(name string) error {
	all, path, err := r.profiles()
	if err != nil {
		return err
	}
	one, err := all.Find(name)
	if err != nil {
		return shell.Exit(shell.ExitUsage, err.Error())
	}
	all.Current = name
	if err := all.Write(path); err != nil {
		return err
	}
	return r.Remark("commands call %s now", one.Server)
}
