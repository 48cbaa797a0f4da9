package cli

import (
	"fmt"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

var requestKind = portalKind{
	one: "key request", many: "key requests, newest first", path: "/api/portal/requests",
	columns: []column{
		{"id", "id"}, {"state", "state"}, {"developer", "portal_developer.email"}, {"plan", "for_plan"}, {"policies", "apply_policies"}, {"asked", "date_created"}, {"decided_by", "decided_by"},
	},
	filters: []filter{
		{"state", "state", "only those that are `STATE`: pending, approved or rejected"},
		{"developer", "by_user", "only those of the developer with this `ID`"},
		{"plan", "for_plan", "only those for the policy with this `ID`"},
		{"search", "q", "`TEXT` that the developer's address begins with, or the id of a request"},
	},
	gone: "A key that it came to stays.",
}

func (r *portal) requestCommand() *cobra.Command {
	approve := &cobra.Command{
		Use: "approve ID", Short: "Approve a key request; the credential is shown this once",
		Long: `Approves a key request. The credential that it comes to is made, works at every
gateway within a second, and is printed this once: a second approval is refused and
shows none. With -q nothing but the credential is printed; of a user name and
password, or a client's id and secret, one on each line.

` + shell.AdminHelp,
		Example: "  sluice request ls --state pending\n  sluice request approve 3fa9...",
		Args:    shell.OneArg("ID, as request ls lists it"),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.approve(cmd, args[0]) },
	}
	reason := ""
	reject := &cobra.Command{
		Use: "reject ID", Short: "Reject a key request", Long: "Rejects a key request. The developer receives the reason.\n\n" + shell.AdminHelp,
		Example: `  sluice request reject 3fa9... --reason "ask for the smaller plan first"`,
		Args:    shell.OneArg("ID, as request ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]string{"reason": reason}
			return r.change(cmd, shell.Request{Method: "PUT", Path: "/api/portal/requests/reject/" + escape(args[0]), Body: body}, "key request "+args[0]+" is rejected")
		},
	}
	reject.Flags().StringVar(&reason, "reason", "", "`TEXT` that the developer receives")
	r.target.AdminFlags(approve, reject)
	return shell.Group("request", "List key requests of developers, approve and reject them",
		r.listCommand(&requestKind), r.showCommand(&requestKind), approve, reject, r.removeCommand(&requestKind))
}

// approve approves a request and prints the credential, which is shown only once.
func (r *portal) approve(cmd *cobra.Command, id string) error {
	var view struct{ RawKey, Password string }
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "PUT", Path: "/api/portal/requests/approve/" + escape(id)}, &view)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		switch {
		case view.RawKey == "":
			return r.Remark("approved: the key that the developer has is changed")
		case view.Password == "" && r.Quiet:
			return r.Write(view.RawKey + "\n")
		case view.Password == "":
			return r.Write(fmt.Sprintf("key  %s   (shown once)\n", view.RawKey))
		case r.Quiet:
			return r.Write(view.RawKey + "\n" + view.Password + "\n")
		}
		return r.Write(fmt.Sprintf("name      %s\npassword  %s   (shown once)\n", view.RawKey, view.Password))
	})
}
