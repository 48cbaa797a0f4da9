package cli

import (
	"strings"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

var secretKind = portalKind{
	one: "secret", many: "secrets that definitions can refer to; values are never shown", path: "/api/secrets",
	columns: []column{{"name", "name"}, {"changed", "updated_at"}, {"by", "updated_by"}, {"used by", "used_by"}},
}

// secretCommand returns the command for secrets that definitions refer to.
func (r *portal) secretCommand() *cobra.Command {
	file := "-"
	set := &cobra.Command{
		Use: "set NAME", Short: "Set a secret, which gateways then use at once",
		Long: `Sets a secret that definitions refer to by {secret:NAME}, in jwt_source, in the
values of headers that go to upstreams, health checks and webhooks, and in URLs of
webhooks. It is stored encrypted and never shown again. The value is read from
standard input, without the line end at its end, or entered without being shown.

` + shell.AdminHelp,
		Example: "  sluice secret set orders-token < token\n  sluice secret set orders-token --file token",
		Args:    shell.OneArg("NAME of the secret"),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.setSecret(cmd, args[0], file) },
	}
	set.Flags().StringVarP(&file, "file", "f", "-", "`FILE` with the value, - for standard input")
	r.target.AdminFlags(set)
	list, remove := r.listCommand(&secretKind), r.removeCommand(&secretKind)
	list.Aliases, remove.Aliases = []string{"list"}, []string{"delete"}
	return shell.Group("secret", "List secrets of definitions, set and delete them", list, set, remove)
}

func (r *portal) setSecret(cmd *cobra.Command, name, file string) error {
	value, err := r.secretValue(cmd, name, file)
	if err != nil {
		return err
	}
	return r.change(cmd, shell.Request{Method: "PUT", Path: secretKind.of(name), Body: map[string]string{"value": value}}, "secret "+name+" is set")
}

func (r *portal) secretValue(cmd *cobra.Command, name, file string) (string, error) {
	if file == "-" && shell.IsTerminal(r.Stdin) {
		return r.Secret(cmd.Context(), "the value of "+name)
	}
	text, err := r.ReadInput(file)
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
}
