package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/yamltext"
	"github.com/sluicegate/sluice/internal/definition"
)

// An objectKind is a kind of objects that an admin lists, shows and deletes.
type objectKind struct {
	name, many string
	path       string
	list       func(s *session, answer []byte) (rows, int64, error)
}

var (
	apiKind    = objectKind{"api", "APIs", "/api/apis", (*session).apiRows}
	policyKind = objectKind{"policy", "policies", "/api/portal/policies", (*session).policyRows}
)

// objectCommand is the command on the objects of a kind.
func (s *session) objectCommand(kind *objectKind) *cobra.Command {
	t := new(target)
	page, yes, force := 1, false, false
	list := &cobra.Command{
		Use: "ls", Short: "List " + kind.many, Long: "Lists " + kind.many + " by name.\n\n" + adminHelp, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.listObjects(cmd, t, kind, page) },
	}
	list.Flags().IntVar(&page, "page", 1, "`NUMBER` of the page")
	get := &cobra.Command{
		Use: "get ID", Short: "Print one", Long: "Prints one as the admin has it.\n\n" + adminHelp, Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error { return s.getObject(cmd, t, kind, args[0]) },
	}
	remove := &cobra.Command{
		Use: "rm ID", Short: "Delete one", Args: oneID,
		Long: "Deletes one. config rollback brings it back.\n\n" + adminHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.confirm(yes, "delete "+kind.name+" "+args[0]); err != nil {
				return err
			}
			path := kind.path + "/" + escape(args[0])
			if force {
				path += "?force=true"
			}
			answer, err := s.ask(cmd, t, request{"DELETE", path, nil}, nil)
			if refused, ok := errors.AsType[*exitError](err); ok {
				refused.message = strings.ReplaceAll(refused.message, "add ?force=true", "say --force")
			}
			if err != nil {
				return err
			}
			return s.show(answer, func() error { return s.remark("%s %s is deleted", kind.name, args[0]) })
		},
	}
	remove.Flags().BoolVar(&yes, "yes", false, "do not ask")
	if kind == &apiKind {
		remove.Flags().BoolVar(&force, "force", false, "delete it although policies name it")
	}
	t.adminFlags(list, get, remove)
	return group(kind.name, "List, show and delete "+kind.many, list, get, remove)
}

func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("want one ID, as ls lists it")
	}
	return nil
}

func (s *session) listObjects(cmd *cobra.Command, t *target, kind *objectKind, page int) error {
	answer, err := s.ask(cmd, t, request{"GET", fmt.Sprintf("%s?p=%d&page_size=50", kind.path, page), nil}, nil)
	if err != nil {
		return err
	}
	return s.show(answer, func() error {
		data, pages, err := kind.list(s, answer)
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if err := s.print(data); err != nil || pages <= int64(page) {
			return err
		}
		return s.remark("page %d of %d", page, pages)
	})
}

func (*session) apiRows(answer []byte) (rows, int64, error) {
	var told struct {
		APIs []struct {
			ID         string         `json:"api_id"`
			Name       string         `json:"name"`
			Definition definition.API `json:"api_definition"`
		} `json:"apis"`
		Pages int64 `json:"pages"`
	}
	err := json.Unmarshal(answer, &told)
	data := rows{columns: []string{"id", "name", "path", "upstream", "active"}}
	for i := range told.APIs {
		one := &told.APIs[i]
		api := &one.Definition
		data.cells = append(data.cells, []any{one.ID, one.Name, api.Domain + api.Proxy.ListenPath, api.Proxy.TargetURL, api.IsActive()})
	}
	return data, told.Pages, err
}

func (*session) policyRows(answer []byte) (rows, int64, error) {
	var told struct {
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
	err := json.Unmarshal(answer, &told)
	data := rows{columns: []string{"id", "name", "rate", "quota", "apis"}}
	for _, p := range told.Data {
		rate := "-"
		if p.Rate > 0 && p.Per > 0 {
			rate = fmt.Sprintf("%g per %g s", p.Rate, p.Per)
		}
		data.cells = append(data.cells, []any{p.ID, p.Name, rate, p.Quota, len(p.Rights)})
	}
	return data, told.Pages, err
}

func (s *session) getObject(cmd *cobra.Command, t *target, kind *objectKind, id string) error {
	answer, err := s.ask(cmd, t, request{"GET", kind.path + "/" + escape(id), nil}, nil)
	if err != nil {
		return err
	}
	return s.show(answer, func() error {
		text, err := yamltext.Of(answer)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.write(text)
	})
}
