package cli

import (
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

var entryKind = portalKind{
	one: "entry", many: "entries of the catalogue in their order", path: "/api/portal/catalogue/entries",
	columns: []column{
		{"id", "id"}, {"name", "name"}, {"policy", "policy_id"}, {"api", "api_id"}, {"auth", "auth_type"}, {"shown", "show"}, {"description", "short_description"},
	},
	filters: []filter{
		{"search", "q", "`TEXT` that the name begins with"},
		{"policy", "policy_id", "only those of the policy with this `ID`"},
		{"api", "api_id", "only those of the API with this `ID`"},
	},
	gone: "Keys that came of it go on working.",
}

// wantedEntry is what the flags of catalogue add set.
type wantedEntry struct {
	file, name, policy, api, auth, short, documentation string
	hidden, keyless                                     bool
}

func (r *portal) catalogueCommand() *cobra.Command {
	var w wantedEntry
	add := &cobra.Command{
		Use: "add", Short: "Offer an API by a policy", Long: "Adds an entry at the end of the catalogue, and prints its id.\n\n" + shell.AdminHelp,
		Example: "  sluice portal catalogue add --name Orders --policy gold --api orders\n  sluice portal catalogue add -f entry.json --hidden",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.addEntry(cmd, &w) },
	}
	f := add.Flags()
	f.StringVarP(&w.file, "file", "f", "", "`FILE` with the entry as JSON, - for standard input; the other flags add to it")
	f.StringVar(&w.name, "name", "", "`NAME` that developers read")
	f.StringVar(&w.policy, "policy", "", "`ID` of the policy that a key gets")
	f.StringVar(&w.api, "api", "", "`ID` of the API that is offered")
	f.StringVar(&w.auth, "auth-type", "", "`KIND` of credentials: authToken, basic or oauth")
	f.StringVar(&w.short, "description", "", "`TEXT` in one line")
	f.StringVar(&w.documentation, "documentation", "", "`ID` of its documentation")
	f.BoolVar(&w.hidden, "hidden", false, "do not show it yet")
	f.BoolVar(&w.keyless, "keyless", false, "the API needs no key")
	r.target.AdminFlags(add)
	return shell.Group("catalogue", "List what the portal offers, add and delete entries",
		r.listCommand(&entryKind), r.showCommand(&entryKind), add,
		r.shownCommand("hide", "Offer an entry no more", false), r.shownCommand("unhide", "Offer an entry again", true), r.removeCommand(&entryKind))
}

func (r *portal) addEntry(cmd *cobra.Command, w *wantedEntry) error {
	object, err := r.objectIn(w.file)
	if err != nil {
		return err
	}
	if _, said := object["show"]; !said || w.hidden {
		object["show"] = !w.hidden
	}
	given(cmd, "name", object, "name", w.name)
	given(cmd, "policy", object, "policy_id", w.policy)
	given(cmd, "api", object, "api_id", w.api)
	given(cmd, "auth-type", object, "auth_type", w.auth)
	given(cmd, "description", object, "short_description", w.short)
	given(cmd, "documentation", object, "documentation", w.documentation)
	given(cmd, "keyless", object, "is_keyless", w.keyless)
	if name, _ := object["name"].(string); name == "" {
		return shell.Exit(shell.ExitUsage, "say what is offered: --name NAME with --policy ID, or -f FILE")
	}
	return r.add(cmd, &entryKind, object)
}

// shownCommand shows or hides an entry.
func (r *portal) shownCommand(use, short string, shown bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ID", Short: short, Long: short + ".\n\n" + shell.AdminHelp, Args: shell.OneArg("ID, as catalogue ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.edit(cmd, entryKind.of(args[0]), func(object map[string]any) { object["show"] = shown },
				map[bool]string{true: "entry " + args[0] + " is shown", false: "entry " + args[0] + " is hidden"}[shown])
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

func (r *portal) configurationCommand() *cobra.Command {
	const path = "/api/portal/configuration"
	show := &cobra.Command{
		Use: "show", Short: "Print the portal's configuration", Long: "Prints the portal's configuration; without an id it is the default.\n\n" + shell.AdminHelp, Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: path}, nil)
			if err != nil {
				return err
			}
			return r.ShowWhole(answer)
		},
	}
	file := ""
	set := &cobra.Command{
		Use: "set -f FILE", Short: "Replace the portal's configuration", Args: shell.NoArgs,
		Long:    "Replaces the portal's configuration by the JSON in a file, or makes the first one.\n\n" + shell.AdminHelp,
		Example: "  sluice portal configuration show -o json > portal.json\n  sluice portal configuration set -f portal.json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.configure(cmd, path, file) },
	}
	set.Flags().StringVarP(&file, "file", "f", "", "`FILE` with the configuration as JSON, - for standard input")
	r.target.AdminFlags(show, set)
	return shell.Group("configuration", "Print or replace how the portal works", show, set)
}

func (r *portal) configure(cmd *cobra.Command, path, file string) error {
	if file == "" {
		return shell.Exit(shell.ExitUsage, "say what it shall be: -f FILE")
	}
	object, err := r.objectIn(file)
	if err != nil {
		return err
	}
	var now struct {
		ID string `json:"id"`
	}
	if _, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: path}, &now); err != nil {
		return err
	}
	method := "PUT"
	if now.ID == "" {
		method = "POST"
	}
	return r.change(cmd, shell.Request{Method: method, Path: path, Body: object}, "the portal's configuration is replaced")
}
