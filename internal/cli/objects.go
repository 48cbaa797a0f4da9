package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/spf13/cobra"
)

// An objectKind is a kind of objects that an admin lists, shows and deletes.
type objectKind struct {
	name, many string
	path       string
	list       func(s *session, answer []byte) (shell.Rows, int64, error)
}

var (
	apiKind    = objectKind{"api", "APIs", "/api/apis", (*session).apiRows}
	policyKind = objectKind{"policy", "policies", "/api/portal/policies", (*session).policyRows}
)

// objectCommand is the command on the objects of a kind.
func (s *session) objectCommand(kind *objectKind) *cobra.Command {
	t := new(shell.Target)
	page, yes, force := 1, false, false
	list := &cobra.Command{
		Use: "ls", Short: "List " + kind.many, Long: "Lists " + kind.many + " by name.\n\n" + shell.AdminHelp, Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.listObjects(cmd, t, kind, page) },
	}
	list.Flags().IntVar(&page, "page", 1, "`NUMBER` of the page")
	get := &cobra.Command{
		Use: "get ID", Short: "Print one", Long: "Prints one as the admin has it.\n\n" + shell.AdminHelp, Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error { return s.getObject(cmd, t, kind, args[0]) },
	}
	remove := &cobra.Command{
		Use: "rm ID", Short: "Delete one", Args: oneID,
		Long: "Deletes one. config rollback brings it back.\n\n" + shell.AdminHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.Confirm(yes, "delete "+kind.name+" "+args[0]); err != nil {
				return err
			}
			path := kind.path + "/" + url.PathEscape(args[0])
			if force {
				path += "?force=true"
			}
			answer, err := s.Ask(cmd, t, shell.Request{Method: "DELETE", Path: path}, nil)
			if err != nil {
				return sayForce(err)
			}
			return s.Show(answer, func() error { return s.Remark("%s %s is deleted", kind.name, args[0]) })
		},
	}
	remove.Flags().BoolVar(&yes, "yes", false, "do not ask")
	if kind == &apiKind {
		remove.Flags().BoolVar(&force, "force", false, "delete it although policies name it")
	}
	t.AdminFlags(list, get, remove)
	return shell.Group(kind.name, "List, show and delete "+kind.many, list, get, remove)
}

func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("want one ID, as ls lists it")
	}
	return nil
}

func (s *session) listObjects(cmd *cobra.Command, t *shell.Target, kind *objectKind, page int) error {
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: fmt.Sprintf("%s?p=%d&page_size=50", kind.path, page)}, nil)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error {
		data, pages, err := kind.list(s, answer)
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if err := s.Print(data); err != nil || pages <= int64(page) {
			return err
		}
		return s.Remark("page %d of %d", page, pages)
	})
}

func (*session) apiRows(answer []byte) (shell.Rows, int64, error) {
	var view struct {
		APIs []struct {
			ID         string         `json:"api_id"`
			Name       string         `json:"name"`
			Definition definition.API `json:"api_definition"`
		} `json:"apis"`
		Pages int64 `json:"pages"`
	}
	err := json.Unmarshal(answer, &view)
	data := shell.Rows{Columns: []string{"id", "name", "path", "upstream", "active"}}
	for i := range view.APIs {
		one := &view.APIs[i]
		api := &one.Definition
		data.Cells = append(data.Cells, []any{one.ID, one.Name, api.Domain + api.Proxy.ListenPath, api.Proxy.TargetURL, api.IsActive()})
	}
	return data, view.Pages, err
}

func (*session) policyRows(answer []byte) (shell.Rows, int64, error) {
	var view struct {
		Data []struct {
			ID     string                     `json:"id"`
			Name   string                     `json:"name"`
			Rate   float64                    `json:"rate"`
			Per    float64                    `json:"per"`
			Quota  int64                      `json:"quota_max"`
			Rights map[string]json.RawMessage `json:"access_rights"`
		} `json:"Data"`
		Pages int64 `json:"Pages"`
	}
	err := json.Unmarshal(answer, &view)
	data := shell.Rows{Columns: []string{"id", "name", "rate", "quota", "apis"}}
	for _, p := range view.Data {
		rate := "-"
		if p.Rate > 0 && p.Per > 0 {
			rate = fmt.Sprintf("%g per %g s", p.Rate, p.Per)
		}
		data.Cells = append(data.Cells, []any{p.ID, p.Name, rate, p.Quota, len(p.Rights)})
	}
	return data, view.Pages, err
}

func (s *session) getObject(cmd *cobra.Command, t *shell.Target, kind *objectKind, id string) error {
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: kind.path + "/" + url.PathEscape(id)}, nil)
	if err != nil {
		return err
	}
	return s.ShowWhole(answer)
}
