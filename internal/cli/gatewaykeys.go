package cli

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

// gatewayUser is a user with the role gateway as the admin returns it.
type gatewayUser struct {
	ID        string `json:"id"`
	Name      string `json:"first_name"`
	Email     string `json:"email_address"`
	Role      string `json:"role"`
	Active    bool   `json:"active"`
	CreatedAt string `json:"created_at"`
}

// gatewayDomain is the domain of the addresses of gateways, which have to have one and
// get no mail. No host has it (RFC 2606).
const gatewayDomain = "@gateway.invalid"

// usersAtOnce is the number of users on a page.
const usersAtOnce = 500

var gatewayNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// gatewayKeyCommand returns the commands on the access keys of gateways.
func (s *session) gatewayKeyCommand() *cobra.Command {
	t, yes := new(shell.Target), false
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "Create the access key of a gateway, which is shown only once",
		Long: `Creates an access key for one gateway, to be its gateway.token: a user of the role
gateway, who can read the configuration and nothing else. A gateway with a key of its
own can be shut out without the others. With -q nothing but the key is printed.

To change the key of a gateway without a gap, create another one under a new name,
restart the gateway with it as gateway.token and the former one as
gateway.former_token, and revoke the former one.

` + shell.AdminHelp,
		Example: "  sluice gateway key create edge-1 -q > token\n  sluice gateway key revoke edge-1",
		Args:    gatewayNameArg,
		RunE:    func(cmd *cobra.Command, args []string) error { return s.createGatewayKey(cmd, t, args[0]) },
	}
	list := &cobra.Command{
		Use: "ls", Short: "List the gateways that have an access key of their own",
		Long: "Lists the gateways that have an access key of their own.\n\n" + shell.AdminHelp,
		Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.listGatewayKeys(cmd, t) },
	}
	revoke := &cobra.Command{
		Use: "revoke NAME", Short: "End the access key of a gateway",
		Long: `Ends the access key of a gateway. The gateway goes on with the configuration that it
has, and gets no other.

` + shell.AdminHelp,
		Args: gatewayNameArg,
		RunE: func(cmd *cobra.Command, args []string) error { return s.revokeGatewayKey(cmd, t, args[0], yes) },
	}
	revoke.Flags().BoolVar(&yes, "yes", false, "do not ask")
	t.AdminFlags(create, list, revoke)
	return shell.Group("key", "Create, list and revoke the access keys of gateways", create, list, revoke)
}

// gatewayNameArg requires one argument that names a gateway.
func gatewayNameArg(_ *cobra.Command, args []string) error {
	if len(args) != 1 || !gatewayNamePattern.MatchString(args[0]) {
		return errors.New("want one NAME of a gateway such as edge-1: at most 64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

func (s *session) createGatewayKey(cmd *cobra.Command, t *shell.Target, name string) error {
	var made struct {
		ID  string `json:"Meta"`
		Key string `json:"access_key"`
	}
	body := map[string]string{"first_name": name, "email_address": name + gatewayDomain, "role": "gateway"}
	if _, err := s.Ask(cmd, t, shell.Request{Method: "POST", Path: "/api/users", Body: body}, &made); err != nil {
		return err
	}
	if s.Quiet && s.Output == "table" {
		return s.Write(made.Key + "\n")
	}
	return s.Print(shell.Rows{Columns: []string{"name", "id", "access_key"}, Cells: [][]any{{name, made.ID, made.Key}}})
}

// gatewayUsers returns the users with the role gateway.
func (s *session) gatewayUsers(cmd *cobra.Command, t *shell.Target) (all []gatewayUser, err error) {
	for page, pages := 1, 1; page <= pages; page++ {
		var view struct {
			Users []gatewayUser `json:"users"`
			Pages int           `json:"pages"`
		}
		path := fmt.Sprintf("/api/users?p=%d&page_size=%d", page, usersAtOnce)
		if _, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: path}, &view); err != nil {
			return nil, err
		}
		for _, u := range view.Users {
			if u.Role == "gateway" {
				all = append(all, u)
			}
		}
		pages = view.Pages
	}
	return all, nil
}

// name returns the name that the commands know a gateway by.
func (u *gatewayUser) name() string {
	if name, ours := strings.CutSuffix(u.Email, gatewayDomain); ours {
		return name
	}
	return u.Email
}

func (s *session) listGatewayKeys(cmd *cobra.Command, t *shell.Target) error {
	all, err := s.gatewayUsers(cmd, t)
	if err != nil {
		return err
	}
	data := shell.Rows{Columns: []string{"name", "id", "active", "created_at"}}
	for _, u := range all {
		data.Cells = append(data.Cells, []any{u.name(), u.ID, u.Active, u.CreatedAt})
	}
	return s.Print(data)
}

func (s *session) revokeGatewayKey(cmd *cobra.Command, t *shell.Target, name string, yes bool) error {
	all, err := s.gatewayUsers(cmd, t)
	if err != nil {
		return err
	}
	for _, u := range all {
		if u.name() != name {
			continue
		}
		if err := s.Confirm(yes, "end the access key of gateway "+name); err != nil {
			return err
		}
		if _, err := s.Ask(cmd, t, shell.Request{Method: "DELETE", Path: "/api/users/" + url.PathEscape(u.ID)}, nil); err != nil {
			return err
		}
		return s.Remark("the key of %s has ended", name)
	}
	return shell.Exit(shell.ExitRefused, "no gateway has a key under the name "+name+"; sluice gateway key ls lists them")
}
