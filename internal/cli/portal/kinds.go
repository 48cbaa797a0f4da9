// Package portal is the commands on what the developer portal keeps: key requests,
// developers, the catalogue, webhooks and letters.
package portal

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/shell"
)

// room is the commands of this package on the server of one command line.
type room struct {
	*shell.Shell
	target shell.Target
}

// Commands returns request and portal.
func Commands(s *shell.Shell) []*cobra.Command {
	r := &room{Shell: s}
	return []*cobra.Command{
		r.requestCommand(),
		shell.Group("portal", "Manage developers, the catalogue, webhooks and letters of the portal",
			r.developerCommand(), r.catalogueCommand(), r.configurationCommand(), r.webhookCommand(), r.deliveryCommand(), r.mailboxCommand()),
	}
}

// A kind is a kind of objects that the portal lists, shows and deletes.
type kind struct {
	one, many string // for people
	path      string
	columns   []column
	filters   []filter
	gone      string // what deleting one means beside, for people; "": nothing
}

// A column is a member of an object in a table.
type column struct{ title, member string }

// A filter is a flag of a list, and the query parameter that it stands for.
type filter struct{ flag, parameter, usage string }

// perPage is how many objects a list shows at once.
const perPage = 50

func (r *room) listCommand(k *kind) *cobra.Command {
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

func (r *room) list(cmd *cobra.Command, k *kind, page int, query url.Values) error {
	var told struct {
		Data  []map[string]any `json:"Data"`
		Pages int64            `json:"Pages"`
	}
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "GET", Path: k.path + "?" + query.Encode()}, &told)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		if err := r.Print(k.rows(told.Data)); err != nil || told.Pages <= int64(page) {
			return err
		}
		return r.Remark("page %d of %d", page, told.Pages)
	})
}

func (k *kind) rows(objects []map[string]any) shell.Rows {
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

// member returns a member of an object, or of one inside it: a.b.
func member(object map[string]any, path string) any {
	name, rest, inside := strings.Cut(path, ".")
	value := object[name]
	if !inside {
		return value
	}
	within, _ := value.(map[string]any)
	return member(within, rest)
}

// cell is a value as it stands in a table: of lists their items, of objects how
// many members they have, and of times those of this machine.
func cell(value any) any {
	const most = 60
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = fmt.Sprint(v[i])
		}
		return strings.Join(texts, ",")
	case map[string]any:
		return len(v)
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return at.Local().Format(time.DateTime)
		}
		if line := []rune(strings.Join(strings.Fields(v), " ")); len(line) > most {
			return string(line[:most]) + "..."
		}
		return v
	}
	return value
}

func (r *room) showCommand(k *kind) *cobra.Command {
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

// of is the path of an object.
func (k *kind) of(id string) string { return k.path + "/" + url.PathEscape(id) }

func (r *room) removeCommand(k *kind) *cobra.Command {
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

// actCommand is a command that does something to one object without more to say.
func (r *room) actCommand(k *kind, use, short, action, done string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ID", Short: short, Long: short + ".\n\n" + shell.AdminHelp, Args: shell.OneArg("ID, as ls lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, shell.Request{Method: "POST", Path: k.of(args[0]) + action}, k.one+" "+args[0]+" "+done)
		},
	}
	r.target.AdminFlags(cmd)
	return cmd
}

// change makes a change, and tells people that it is done.
func (r *room) change(cmd *cobra.Command, what shell.Request, done string) error {
	answer, err := r.Ask(cmd, &r.target, what, nil)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error { return r.Remark("%s", done) })
}

// made is the answer to an object that was added.
type made struct {
	Message string `json:"Message"`
	Meta    struct {
		Secret string `json:"secret"`
	} `json:"Meta"`
}

// add adds an object. Where nothing but its id is wanted it is printed alone.
func (r *room) add(cmd *cobra.Command, k *kind, object map[string]any) error {
	var told made
	answer, err := r.Ask(cmd, &r.target, shell.Request{Method: "POST", Path: k.path, Body: object}, &told)
	if err != nil {
		return err
	}
	return r.Show(answer, func() error {
		switch {
		case told.Meta.Secret != "" && r.Quiet:
			return r.Write(told.Meta.Secret + "\n")
		case told.Meta.Secret != "":
			return r.Write(fmt.Sprintf("id      %s\nsecret  %s   (shown once)\n", told.Message, told.Meta.Secret))
		case r.Quiet:
			return r.Write(told.Message + "\n")
		}
		return r.Write(fmt.Sprintf("id  %s\n", told.Message))
	})
}

// objectIn reads an object from a file, "" for an empty one.
func (r *room) objectIn(file string) (map[string]any, error) {
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

// given puts a flag's value into an object when the flag was given.
func given(cmd *cobra.Command, flag string, object map[string]any, name string, value any) {
	if cmd.Flags().Changed(flag) {
		object[name] = value
	}
}
