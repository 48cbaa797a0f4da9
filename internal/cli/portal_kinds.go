package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

// portal are the commands on what the admin lists in pages: key requests, developers, the
// catalogue, webhooks and letters of the portal, and organisations, users and certificates.
type portal struct {
	*shell.Shell
	target shell.Target
}

// portalCommands returns the commands request and portal.
func portalCommands(s *shell.Shell) []*cobra.Command {
	r := &portal{Shell: s}
	return []*cobra.Command{
		r.requestCommand(),
		shell.Group("portal", "Manage developers, the catalogue, webhooks and letters of the portal",
			r.developerCommand(), r.catalogueCommand(), r.configurationCommand(), r.webhookCommand(), r.deliveryCommand(), r.mailboxCommand()),
	}
}

// A portalKind is a kind of objects that the portal lists, shows and deletes.
type portalKind struct {
	one, many string // for people
	path      string
	columns   []column
	filters   []filter
	gone      string // further effects of deleting one; "": none
}

// A column is a member of an object in a table.
type column struct{ title, member string }

// A filter is a flag of a list command and its query parameter.
type filter struct{ flag, parameter, usage string }

// perPage is how many objects a list shows at once.
const perPage = 50

func (r *portal) listCommand(k *portalKind) *cobra.Command {
	page, values := 1, make([]string, len(k.filters))
	cmd := &cobra.Command{
		Use: "ls", Short: "List " + k.many, Long: "Lists " + k.many + ".\n\n" + shell.AdminHelp, Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"p": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(perPage)}}
			for i, f := range k.filters {
				if values[i] != "" {
					query.Set(f.parameter, values[i])
				}
			}
			return r.list(cmd, k, page, query)
		},
	}
	for i, f := range k.filters {
		cmd.Flags().StringVar(&values[i], f.flag, "", f.usage)
	}
	cmd.Flags().IntVar(&page, "page", 1, "`NUMBER` of the page")
	r.target.AdminFlags(cmd)
	return cmd
}

func (r *portal) list(cmd *cobra.Command, k *portalKind, page int, query url.Values) error {
	var view struct {
		Data         []map[string]any `json:"Data"`
		Users        []map[string]any `json:"users"`
		Certificates []map[string]any `json:"certificates"`
		Secrets      []map[string]any `json:"secrets"`
		Pages        int64            `json:"Pages"`
	}
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: k.path + "?" + query.Encode()}, &view)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		if err := r.Print(k.rows(slices.Concat(view.Data, view.Users, view.Certificates, view.Secrets))); err != nil || view.Pages <= int64(page) {
			return err
		}
		return r.Remark("page %d of %d", page, view.Pages)
	})
}

func (k *portalKind) rows(objects []map[string]any) shell.Rows {
	data := shell.Rows{}
	for _, c := range k.columns {
		data.Columns = append(data.Columns, c.title)
	}
	for _, object := range objects {
		row := make([]any, len(k.columns))
		for i, c := range k.columns {
			row[i] = cell(member(object, c.member))
		}
		data.Cells = append(data.Cells, row)
	}
	return data
}

// member returns a member of an object, or a nested one: a.b.
func member(object map[string]any, path string) any {
	name, rest, inside := strings.Cut(path, ".")
	value := object[name]
	if !inside {
		return value
	}
	within, _ := value.(map[string]any)
	return member(within, rest)
}

// cell formats a value for a table: lists as their items, those of APIs as their ids, objects as their number of
// members, times in the local zone.
func cell(value any) any {
	const most = 60
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = fmt.Sprint(v[i])
			if api, ok := v[i].(map[string]any); ok {
				texts[i] = fmt.Sprint(api["api_id"])
			}
		}
		return strings.Join(texts, ",")
	case map[string]any:
		return len(v)
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return at.Local().Format(time.DateTime)
		}
		if line := []rune(strings.Join(strings.Fields(v), " ")); len(line) > most && slices.Contains(line, ' ') { // ids stay whole, to be copied
			return string(line[:most]) + "..."
		}
		return v
	}
	return value
}

func (r *portal) showCommand(k *portalKind) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Print one " + k.one, Long: "Prints one " + k.one + " as the admin has it.\n\n" + shell.AdminHelp,
		Args: shell.OneArg("ID, as ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: k.of(args[0])}, nil)
			if err != nil {
				return err
			}
			return r.ShowWhole(answer)
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

// of returns the path of an object.
func (k *portalKind) of(id string) string { return k.path + "/" + url.PathEscape(id) }

func (r *portal) removeCommand(k *portalKind) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "rm ID", Short: "Delete one " + k.one, Long: strings.TrimSpace("Deletes one "+k.one+" for good. "+k.gone) + "\n\n" + shell.AdminHelp,
		Args: shell.OneArg("ID, as ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.Confirm(yes, "delete "+k.one+" "+args[0]+" for good"); err != nil {
				return err
			}
			return r.change(cmd, shell.Request{Method: "DELETE", Path: k.of(args[0])}, k.one+" "+args[0]+" is deleted")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	r.target.AdminFlags(cmd)
	return cmd
}

// actCommand returns a command that runs an action on one object, without a body.
func (r *portal) actCommand(k *portalKind, use, short, action, done string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ID", Short: short, Long: short + ".\n\n" + shell.AdminHelp, Args: shell.OneArg("ID, as ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, shell.Request{Method: "POST", Path: k.of(args[0]) + action}, k.one+" "+args[0]+" "+done)
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

// change makes a change and confirms it.
func (r *portal) change(cmd *cobra.Command, what shell.Request, done string) error {
	answer, err := r.Ask(cmd, &r.target, what, nil)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error { return r.Remark("%s", done) })
}

// made is the response to an added object.
type made struct {
	Message string `json:"Message"`
	Meta    struct {
		Secret string `json:"secret"`
	} `json:"Meta"`
}

// add adds an object. With --quiet only its id is printed.
func (r *portal) add(cmd *cobra.Command, k *portalKind, object map[string]any) error {
	var view made
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "POST", Path: k.path, Body: object}, &view)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		switch {
		case view.Meta.Secret != "" && r.Quiet:
			return r.Write(view.Meta.Secret + "\n")
		case view.Meta.Secret != "":
			return r.Write(fmt.Sprintf("id      %s\nsecret  %s   (shown once)\n", view.Message, view.Meta.Secret))
		case r.Quiet:
			return r.Write(view.Message + "\n")
		}
		return r.Write(fmt.Sprintf("id  %s\n", view.Message))
	})
}

// objectIn reads an object from a file, "" for an empty one.
func (r *portal) objectIn(file string) (map[string]any, error) {
	object := make(map[string]any)
	if file == "" {
		return object, nil
	}
	data, err := r.ReadInput(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, shell.Exit(shell.ExitUsage, file+": is no JSON object")
	}
	return object, nil
}

// given sets a member of an object to a flag's value, if the flag was given.
func given(cmd *cobra.Command, flag string, object map[string]any, name string, value any) {
	if cmd.Flags().Changed(flag) {
		object[name] = value
	}
}
