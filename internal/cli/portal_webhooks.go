package cli

import (
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

var webhookKind = portalKind{
	one: "webhook", many: "webhooks", path: "/api/portal/webhooks",
	columns: []column{
		{"id", "id"}, {"name", "name"}, {"url", "url"}, {"events", "events"}, {"enabled", "enabled"}, {"developer", "developer_id"}, {"failing_since", "failing_since"},
	},
	filters: []filter{
		{"search", "q", "`TEXT` that the name begins with"},
		{"developer", "developer", "only those of the developer with this `ID`"},
	},
	gone: "What waits for it is not sent.",
}

var messageKind = portalKind{
	one: "message", many: "messages to webhooks and letters, newest first", path: "/api/portal/deliveries",
	columns: []column{
		{"id", "id"}, {"kind", "kind"}, {"event", "event"}, {"target", "target"}, {"state", "state"}, {"attempts", "attempts"}, {"status", "status"}, {"created", "date_created"}, {"error", "error"},
	},
	filters: []filter{
		{"state", "delivery_state", "only those that are `STATE`: pending, done, failed or kept"},
		{"webhook", "webhook", "only those to the webhook with this `ID`"},
		{"developer", "developer", "only those to the developer with this `ID`"},
	},
}

var letterKind = portalKind{
	one: "letter", many: "letters that no server was there to send", path: "/api/portal/mailbox",
	columns: []column{{"id", "id"}, {"kind", "kind"}, {"to", "to"}, {"created", "created_at"}},
	filters: []filter{{"to", "q", "only those to this `ADDRESS`"}},
}

// wantedWebhook is what the flags of webhook add set.
type wantedWebhook struct {
	file, name, url, developer string
	events                     []string
}

func (r *portal) webhookCommand() *cobra.Command {
	var w wantedWebhook
	add := &cobra.Command{
		Use: "add", Short: "Add a webhook; the secret that its messages are signed with is shown once",
		Long:    "Adds a webhook, of the organisation or of a developer. The secret that its messages\nare signed with is printed this once.\n\n" + shell.AdminHelp,
		Example: "  sluice portal webhook add --url https://example.com/hook --event key_event.created",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.addWebhook(cmd, &w) },
	}
	f := add.Flags()
	f.StringVarP(&w.file, "file", "f", "", "`FILE` with the webhook as JSON, - for standard input; the other flags add to it")
	f.StringVar(&w.name, "name", "", "`NAME` for people")
	f.StringVar(&w.url, "url", "", "`URL` that messages are posted to")
	f.StringArrayVar(&w.events, "event", nil, "`TYPE` of events, * for every one; may be repeated")
	f.StringVar(&w.developer, "developer", "", "`ID` of the developer whose webhook it is (default: the organisation's)")
	grace := 24 * time.Hour
	rotate := &cobra.Command{
		Use: "rotate ID", Short: "Give a webhook another secret, which is shown once",
		Long: "Gives a webhook another secret. Messages are signed with the former one, too, for a\nwhile.\n\n" + shell.AdminHelp,
		Args: shell.OneArg("ID, as webhook ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.rotateWebhook(cmd, args[0], grace) },
	}
	rotate.Flags().DurationVar(&grace, "grace", grace, "`TIME` that messages are signed with the former secret, too")
	r.target.AdminFlags(add, rotate)
	return shell.Group("webhook", "List webhooks, add, try and delete them",
		r.listCommand(&webhookKind), r.showCommand(&webhookKind), add, rotate,
		r.actCommand(&webhookKind, "ping", "Send a webhook a message to try it", "/ping", "is sent a message"),
		r.actCommand(&webhookKind, "enable", "Tell a webhook of events again", "/enable", "is enabled"),
		r.actCommand(&webhookKind, "disable", "Tell a webhook of no more events", "/disable", "is disabled"),
		r.removeCommand(&webhookKind))
}

func (r *portal) addWebhook(cmd *cobra.Command, w *wantedWebhook) error {
	object, err := r.objectIn(w.file)
	if err != nil {
		return err
	}
	given(cmd, "name", object, "name", w.name)
	given(cmd, "url", object, "url", w.url)
	given(cmd, "event", object, "events", w.events)
	given(cmd, "developer", object, "developer_id", w.developer)
	if target, _ := object["url"].(string); target == "" {
		return shell.Exit(shell.ExitUsage, "say where messages go: --url URL with --event TYPE, or -f FILE")
	}
	return r.add(cmd, &webhookKind, object)
}

func (r *portal) rotateWebhook(cmd *cobra.Command, id string, grace time.Duration) error {
	var view made
	answer, err := r.Ask(cmd, &r.target, shell.Request{
		Method: "POST", Path: webhookKind.of(id) + "/secret", Body: map[string]string{"grace": grace.String()},
	}, &view)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		if r.Quiet {
			return r.Write(view.Meta.Secret + "\n")
		}
		return r.Write(fmt.Sprintf("secret  %s   (shown once)\n", view.Meta.Secret))
	})
}

func (r *portal) deliveryCommand() *cobra.Command {
	return shell.Group("delivery", "List what was sent to webhooks and as letters, and send it again",
		r.listCommand(&messageKind), r.showCommand(&messageKind),
		r.actCommand(&messageKind, "replay", "Send a message once more, with the same id", "/replay", "is sent once more"))
}

func (r *portal) mailboxCommand() *cobra.Command {
	return shell.Group("mailbox", "Read letters that no mail server was there to send",
		r.listCommand(&letterKind), r.showCommand(&letterKind), r.removeCommand(&letterKind))
}
