package cli

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

var orgKind = portalKind{
	one: "organisation", many: "the organisations that you may act for", path: "/api/orgs",
	columns: []column{{"id", "id"}, {"name", "name"}, {"created", "created_at"}},
	filters: []filter{{"search", "q", "`TEXT` in the name, or a whole id"}},
}

var userKind = portalKind{
	one: "user", many: "users by their addresses", path: "/api/users",
	columns: []column{{"id", "id"}, {"email", "email_address"}, {"role", "role"}, {"active", "active"}, {"created", "created_at"}},
	filters: []filter{{"search", "q", "`TEXT` in the address"}},
	gone:    "Their access key ends at once.",
}

var certificateKind = portalKind{
	one: "certificate", many: "certificates; private keys are not shown", path: "/api/certs",
	columns: []column{{"id", "id"}, {"subject", "subject"}, {"names", "dns_names"}, {"key", "has_private"}, {"authority", "is_ca"}, {"served", "may_serve"}, {"until", "not_after"}},
	gone:    "APIs that name it refuse its clients.",
}

// acmeKind is listed, and forgotten by its domain.
var acmeKind = portalKind{
	many: "the certificates that gateways obtain by ACME", path: "/api/acme",
	columns: []column{{"domain", "domain"}, {"until", "not_after"}, {"failures", "failures"}, {"next try", "next_try"}, {"error", "error"}},
}

// accountCommands returns the commands org, user, cert and secret.
func accountCommands(s *shell.Shell) []*cobra.Command {
	r := &portal{Shell: s}
	return []*cobra.Command{r.orgCommand(), r.userCommand(), r.certificateCommand(), r.secretCommand()}
}

// wantedOrg is what the flags of org create set.
type wantedOrg struct{ file, id, admin string }

// wantedLimits is what the flags of org limits set.
type wantedLimits struct {
	file             string
	rate, per        float64
	quota, renewal   int64
	none, resetQuota bool
}

func (r *portal) orgCommand() *cobra.Command {
	var w wantedOrg
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an organisation",
		Long: `Creates an organisation and prints its id. With --admin it gets its first user,
whose access key is shown this once. Only admins of the first organisation may.

` + shell.AdminHelp,
		Example: "  sluice org create Acme --id acme --admin ann@acme.example\n  sluice user ls --org acme",
		Args:    shell.OneArg("NAME of the organisation"),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.createOrg(cmd, args[0], &w) },
	}
	create.Flags().StringVar(&w.id, "id", "", "`ID` of the organisation (default: generated)")
	create.Flags().StringVar(&w.admin, "admin", "", "`ADDRESS` of its first admin")
	create.Flags().StringVarP(&w.file, "file", "f", "", "`FILE` with the organisation as JSON, - for standard input; the other flags add to it")
	rename := &cobra.Command{
		Use: "rename ID NAME", Short: "Give an organisation another name", Long: "Gives an organisation another name. Its id stays.\n\n" + shell.AdminHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("want an ID, as ls lists it, and a NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.changeOrg(cmd, orgKind.of(args[0]), map[string]any{"name": args[1]}, "organisation "+args[0]+" is named "+args[1])
		},
	}
	r.target.AdminFlags(create, rename)
	return shell.Group("org", "List organisations, create, change and end them",
		r.listCommand(&orgKind), r.showCommand(&orgKind), create, rename, r.limitsCommand(), r.endCommand())
}

func (r *portal) limitsCommand() *cobra.Command {
	var w wantedLimits
	limits := &cobra.Command{
		Use: "limits ID", Short: "Set or remove the limits that all calls of an organisation share",
		Long: `Sets the limits of an organisation, which all its calls share, with any key or
none. They replace those it had. Gateways enforce them where enforce_org_quotas is
on. org show prints the limits and what is left of the quota.

` + shell.AdminHelp,
		Example: "  sluice org limits acme --rate 100 --per 60 --quota 1000000 --renewal 2592000\n  sluice org limits acme --none",
		Args:    shell.OneArg("ID, as org ls lists it"),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.limitOrg(cmd, args[0], &w) },
	}
	f := limits.Flags()
	f.StringVarP(&w.file, "file", "f", "", "`FILE` with the limits as JSON, - for standard input; the other flags add to it")
	f.Float64Var(&w.rate, "rate", 0, "`CALLS` in each --per")
	f.Float64Var(&w.per, "per", 1, "`SECONDS` of --rate")
	f.Int64Var(&w.quota, "quota", 0, "`CALLS` in each --renewal")
	f.Int64Var(&w.renewal, "renewal", 0, "`SECONDS` after which the quota renews (default: never)")
	f.BoolVar(&w.none, "none", false, "remove the limits")
	f.BoolVar(&w.resetQuota, "reset-quota", false, "begin the quota anew")
	r.target.AdminFlags(limits)
	return limits
}

func (r *portal) endCommand() *cobra.Command {
	yes, force := false, false
	end := &cobra.Command{
		Use: "end ID", Short: "End an organisation", Args: shell.OneArg("ID, as org ls lists it"),
		Long: `Ends an organisation for good: its users are deleted and its id is never used again.
Its history and its usage stay. One that still has APIs, policies, keys, developers
or certificates ends only with --force, which deletes them.

` + shell.AdminHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "end organisation " + args[0] + " for good"
			path := orgKind.of(args[0])
			if force {
				what, path = what+", with all that it has", path+"?force=true"
			}
			if err := r.Confirm(yes, what); err != nil {
				return err
			}
			err := r.change(cmd, shell.Request{Method: "DELETE", Path: path}, "organisation "+args[0]+" has ended")
			return sayForce(err)
		},
	}
	end.Flags().BoolVar(&yes, "yes", false, "do not ask")
	end.Flags().BoolVar(&force, "force", false, "delete all that it still has")
	r.target.AdminFlags(end)
	return end
}

// createdAccount is the response to a created organisation or user.
type createdAccount struct {
	ID        string   `json:"Meta"`
	AccessKey string   `json:"access_key"`
	Warnings  []string `json:"Warnings"`
}

// addAccount adds an organisation or user. With --quiet only the access key is printed, or
// the id if there is none.
func (r *portal) addAccount(cmd *cobra.Command, path string, object map[string]any) error {
	var made createdAccount
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "POST", Path: path, Body: object}, &made)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		r.warn(made.Warnings)
		switch {
		case r.Quiet && made.AccessKey != "":
			return r.Write(made.AccessKey + "\n")
		case r.Quiet:
			return r.Write(made.ID + "\n")
		case made.AccessKey != "":
			return r.Write(fmt.Sprintf("id          %s\naccess key  %s   (shown once)\n", made.ID, made.AccessKey))
		}
		return r.Write("id  " + made.ID + "\n")
	})
}

// warn prints what a server warns of to standard error.
func (r *portal) warn(warnings []string) {
	for _, one := range warnings {
		_, _ = fmt.Fprintln(r.Stderr, "sluice: warning: "+one)
	}
}

func (r *portal) createOrg(cmd *cobra.Command, name string, w *wantedOrg) error {
	object, err := r.objectIn(w.file)
	if err != nil {
		return err
	}
	object["name"] = name
	given(cmd, "id", object, "id", w.id)
	given(cmd, "admin", object, "admin", map[string]string{"email_address": w.admin})
	return r.addAccount(cmd, orgKind.path, object)
}

// changeOrg makes a change, prints warnings of it and confirms it.
func (r *portal) changeOrg(cmd *cobra.Command, path string, object map[string]any, done string) error {
	var view createdAccount
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "PUT", Path: path, Body: object}, &view)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		r.warn(view.Warnings)
		return r.Remark("%s", done)
	})
}

func (r *portal) limitOrg(cmd *cobra.Command, id string, w *wantedLimits) error {
	path := orgKind.of(id)
	if w.resetQuota {
		path += "?reset_quota=true"
	}
	if w.none {
		return r.changeOrg(cmd, path, map[string]any{"limits": nil}, "organisation "+id+" has no limits")
	}
	limits, err := r.objectIn(w.file)
	if err != nil {
		return err
	}
	given(cmd, "rate", limits, "rate", w.rate)
	given(cmd, "quota", limits, "quota_max", w.quota)
	given(cmd, "renewal", limits, "quota_renewal_rate", w.renewal)
	if cmd.Flags().Changed("rate") || cmd.Flags().Changed("per") {
		limits["per"] = w.per
	}
	if len(limits) == 0 {
		return shell.Exit(shell.ExitUsage, "say which limits: --rate and --per, --quota and --renewal, -f FILE, or --none")
	}
	return r.changeOrg(cmd, path, map[string]any{"limits": limits}, "organisation "+id+" has these limits")
}

// wantedUser is what the flags of user create set.
type wantedUser struct{ role, first, last string }

func (r *portal) userCommand() *cobra.Command {
	var w wantedUser
	create := &cobra.Command{
		Use: "create ADDRESS", Short: "Create a user, whose access key is shown only once",
		Long:    "Creates a user of the admin. The access key is shown this once: only its hash is kept.\n\n" + shell.AdminHelp,
		Example: "  sluice user create ann@example.com --role editor",
		Args:    shell.OneArg("ADDRESS of the user"),
		RunE: func(cmd *cobra.Command, args []string) error {
			object := map[string]any{"email_address": args[0], "role": w.role}
			given(cmd, "first-name", object, "first_name", w.first)
			given(cmd, "last-name", object, "last_name", w.last)
			return r.addAccount(cmd, userKind.path, object)
		},
	}
	f := create.Flags()
	f.StringVar(&w.role, "role", "viewer", "`ROLE`: viewer, approver, editor, admin or gateway")
	f.StringVar(&w.first, "first-name", "", "first `NAME`")
	f.StringVar(&w.last, "last-name", "", "last `NAME`")
	shell.Must(create.RegisterFlagCompletionFunc("role", shell.Fixed("viewer", "approver", "editor", "admin", "gateway")))
	role := &cobra.Command{
		Use: "role ID ROLE", Short: "Give a user another role", Long: "Gives a user another role: viewer, approver, editor, admin or gateway.\n\n" + shell.AdminHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("want an ID, as ls lists it, and a ROLE: viewer, approver, editor, admin or gateway")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.edit(cmd, userKind.of(args[0]), func(object map[string]any) { object["role"] = args[1] }, "user "+args[0]+" has the role "+args[1])
		},
	}
	reset := &cobra.Command{
		Use: "reset-key ID", Short: "Give a user another access key, which is shown only once",
		Long: "Gives a user another access key, which is shown this once. The old one ends at once.\n\n" + shell.AdminHelp,
		Args: shell.OneArg("ID, as user ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.resetUserKey(cmd, args[0]) },
	}
	r.target.AdminFlags(create, role, reset)
	return shell.Group("user", "List users of the admin, create, change and delete them",
		r.listCommand(&userKind), r.showCommand(&userKind), create, r.enterCommand(), role, reset,
		r.activeCommand("deactivate", "End that a user can call the admin", false), r.activeCommand("activate", "Let a user call the admin again", true),
		r.removeCommand(&userKind))
}

// enterCommand prints links that sign in.
func (r *portal) enterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "enter [ADDRESS]", Short: "Print a link that signs a user in once, within ten minutes",
		Long: `Prints a link to the management UI that signs a user in once, within ten minutes:
the one with the address, or without one the user whose access key calls. Links for
others need the role admin.

` + shell.AdminHelp,
		Example: "  sluice user enter\n  sluice user enter ann@example.com",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("want at most one ADDRESS of a user")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := userKind.path + "/me"
			if len(args) == 1 {
				id, err := r.userID(cmd, args[0])
				if err != nil {
					return err
				}
				path = userKind.of(id)
			}
			var made struct {
				Link string `json:"link"`
			}
			answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "POST", Path: path + "/actions/enter"}, &made)
			if err != nil {
				return err
			}
			return r.Show(answer, func() error { return r.Write(made.Link + "\n") })
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

// userID returns the id of the user with an address.
func (r *portal) userID(cmd *cobra.Command, address string) (string, error) {
	var list struct {
		Users []struct {
			ID    string `json:"id"`
			Email string `json:"email_address"`
		} `json:"users"`
	}
	path := userKind.path + "?page_size=500&q=" + url.QueryEscape(address)
	if _, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: path}, &list); err != nil {
		return "", err
	}
	for _, u := range list.Users {
		if strings.EqualFold(u.Email, address) {
			return u.ID, nil
		}
	}
	return "", shell.Exit(shell.ExitFailed, "no user has the address "+address)
}

func (r *portal) resetUserKey(cmd *cobra.Command, id string) error {
	var made createdAccount
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "PUT", Path: userKind.of(id) + "/actions/key/reset"}, &made)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		if r.Quiet {
			return r.Write(made.AccessKey + "\n")
		}
		return r.Write("access key  " + made.AccessKey + "   (shown once)\n")
	})
}

// activeCommand activates or deactivates a user.
func (r *portal) activeCommand(use, short string, active bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ID", Short: short, Long: short + ".\n\n" + shell.AdminHelp, Args: shell.OneArg("ID, as user ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.edit(cmd, userKind.of(args[0]), func(object map[string]any) { object["active"] = active },
				map[bool]string{true: "user " + args[0] + " is active", false: "user " + args[0] + " is inactive"}[active])
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

func (r *portal) certificateCommand() *cobra.Command {
	key := ""
	add := &cobra.Command{
		Use: "add FILE", Short: "Add a certificate, with or without its private key",
		Long: `Adds the certificate in a file in PEM, which may also have those that lead to its
authority and its private key, and prints its id. Definitions refer to it by the id.
A certificate that is there already gets the private key that comes with it.

` + shell.AdminHelp,
		Example: "  sluice cert add server.pem --key server.key\n  sluice cert add clients-ca.pem",
		Args:    shell.OneArg("FILE in PEM, - for standard input"),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.addCertificate(cmd, args[0], key) },
	}
	add.Flags().StringVar(&key, "key", "", "`FILE` with the private key in PEM, if it is in another one")
	r.target.AdminFlags(add)
	return shell.Group("cert", "List certificates, add and delete them",
		r.listCommand(&certificateKind), r.showCommand(&certificateKind), add, r.removeCommand(&certificateKind), r.acmeCommand())
}

func (r *portal) acmeCommand() *cobra.Command {
	forget := &cobra.Command{
		Use: "forget DOMAIN", Short: "Forget the certificate and the failures of a domain",
		Long: `Forgets the certificate and the failures of a domain. Gateways that have the domain in
gateway.acme.domains store the certificate that they serve again, or order one within a
minute if it is due. Use it once the cause of a failure is removed, or for a domain that
is no longer served.

` + shell.AdminHelp,
		Args: shell.OneArg("DOMAIN, as cert acme ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, shell.Request{Method: "DELETE", Path: acmeKind.path + "/domains/" + url.PathEscape(args[0])}, args[0]+" is forgotten")
		},
	}
	r.target.AdminFlags(forget)
	return shell.Group("acme", "List certificates that gateways obtain by ACME, and have them try again", r.listCommand(&acmeKind), forget)
}

func (r *portal) addCertificate(cmd *cobra.Command, file, key string) error {
	text, err := r.ReadInput(file)
	if err != nil {
		return err
	}
	if key != "" {
		private, err := r.ReadInput(key)
		if err != nil {
			return err
		}
		text = append(append(text, '\n'), private...)
	}
	var made struct {
		ID string `json:"ID"`
	}
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "POST", Path: certificateKind.path, Body: map[string]string{"pem": string(text)}}, &made)
	if err != nil {
		return err
	}
	err = r.Show(answer, func() error {
		if r.Quiet {
			return r.Write(made.ID + "\n")
		}
		return r.Write("id  " + made.ID + "\n")
	})
	if added, wrong := certs.Parse(text); err != nil || wrong != nil || added.Key == nil || added.MayServe() {
		return err
	}
	return r.Remark("gateways do not serve this certificate, although its key is known: it is one of an authority (CA:TRUE), or for clients alone")
}

// sayForce replaces the query parameter that an admin names by the flag.
func sayForce(err error) error {
	if refused, ok := errors.AsType[*shell.ExitError](err); ok {
		refused.Message = strings.ReplaceAll(refused.Message, "add ?force=true", "say --force")
	}
	return err
}
