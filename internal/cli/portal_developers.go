package cli

import (
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

var developerKind = portalKind{
	one: "developer", many: "developers by their addresses", path: "/api/portal/developers",
	columns: []column{
		{"id", "id"}, {"email", "email"}, {"inactive", "inactive"}, {"verified", "verified"}, {"keys", "keys"}, {"created", "date_created"}, {"last_login", "last_login_date"},
	},
	filters: []filter{
		{"search", "q", "`TEXT` that the address begins with"},
		{"inactive", "inactive", "only those that are inactive: `true` or false"},
		{"sort", "sort", "`ORDER`: email or created_at, with - in front for the other direction"},
	},
	gone: "Their keys end everywhere, and their requests go too.",
}

func escape(segment string) string { return url.PathEscape(segment) }

// wantedDeveloper is what the flags of developer create set.
type wantedDeveloper struct {
	file, email  string
	fields       map[string]string
	unverified   bool
	withPassword bool
}

func (r *portal) developerCommand() *cobra.Command {
	var w wantedDeveloper
	create := &cobra.Command{
		Use: "create", Short: "Make a developer",
		Long: `Makes a developer for whose address you answer. Without a password they ask for a
letter to choose one. It is printed which id they have.

` + shell.AdminHelp,
		Example: "  sluice portal developer create --email ann@example.com --field company=Example\n  sluice portal developer create -f ann.json",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.createDeveloper(cmd, &w) },
	}
	f := create.Flags()
	f.StringVarP(&w.file, "file", "f", "", "`FILE` with the developer as JSON, - for standard input; the other flags add to it")
	f.StringVar(&w.email, "email", "", "`ADDRESS` of the developer")
	f.StringToStringVar(&w.fields, "field", nil, "`NAME=VALUE` that sign-up would ask for; may be repeated")
	f.BoolVar(&w.unverified, "unverified", false, "the address is still to be verified")
	f.BoolVar(&w.withPassword, "password", false, "ask for a password, or read it from standard input")
	password := &cobra.Command{
		Use: "password ID", Short: "Give a developer another password; all their sessions end",
		Long: "Asks for a password, or reads it from standard input, and gives it to a developer.\nAll their sessions end.\n\n" + shell.AdminHelp,
		Args: shell.OneArg("ID, as developer ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.setPassword(cmd, args[0]) },
	}
	r.target.AdminFlags(create, password)
	return shell.Group("developer", "List developers, make, change and delete them",
		r.listCommand(&developerKind), r.showCommand(&developerKind), create, password,
		r.inactiveCommand("deactivate", "End that a developer can log in; their keys stay", true),
		r.inactiveCommand("activate", "Let a developer log in again", false), r.removeCommand(&developerKind))
}

func (r *portal) createDeveloper(cmd *cobra.Command, w *wantedDeveloper) error {
	object, err := r.objectIn(w.file)
	if err != nil {
		return err
	}
	given(cmd, "email", object, "email", w.email)
	given(cmd, "field", object, "fields", w.fields)
	given(cmd, "unverified", object, "verified", !w.unverified)
	if email, _ := object["email"].(string); strings.TrimSpace(email) == "" {
		return shell.Exit(shell.ExitUsage, "say whose account it is: --email ADDRESS, or -f FILE")
	}
	if w.withPassword {
		if object["password"], err = r.Secret(cmd.Context(), "password"); err != nil {
			return shell.Exit(shell.ExitUsage, err.Error())
		}
	}
	return r.add(cmd, &developerKind, object)
}

func (r *portal) setPassword(cmd *cobra.Command, id string) error {
	password, err := r.Secret(cmd.Context(), "password")
	if err != nil {
		return shell.Exit(shell.ExitUsage, err.Error())
	}
	return r.change(cmd, shell.Request{
		Method: "POST", Path: "/api/portal/developers/password/" + escape(id), Body: map[string]string{"password": password},
	}, "developer "+id+" has another password")
}

// inactiveCommand activates or deactivates a developer.
func (r *portal) inactiveCommand(use, short string, inactive bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ID", Short: short, Long: short + ".\n\n" + shell.AdminHelp, Args: shell.OneArg("ID, as developer ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.edit(cmd, developerKind.of(args[0]), func(object map[string]any) { object["inactive"] = inactive },
				map[bool]string{true: "developer " + args[0] + " is inactive", false: "developer " + args[0] + " is active"}[inactive])
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

// edit changes an existing object.
func (r *portal) edit(cmd *cobra.Command, path string, with func(map[string]any), done string) error {
	var object map[string]any
	if _, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: path}, &object); err != nil {
		return err
	}
	with(object)
	return r.change(cmd, shell.Request{Method: "PUT", Path: path, Body: object}, done)
}
