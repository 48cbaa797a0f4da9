package shown

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/diff"
	"github.com/sluicegate/sluice/admin/store"
)

// A Revision is one change of configuration.
type Revision struct {
	Revision int64           `json:"revision"`
	Author   string          `json:"author"`
	Source   string          `json:"source" enum:"api,gateway,seed,rollback"`
	Reason   string          `json:"reason"`
	At       time.Time       `json:"at"`
	Summary  json.RawMessage `json:"summary" doc:"what changed: kind, id, name and action of each object"`

	APIs     []json.RawMessage `json:"apis,omitempty" doc:"all as of this revision; only for a single one"`
	Policies []json.RawMessage `json:"policies,omitempty" doc:"all as of this revision; only for a single one"`
}

// NewRevision returns a revision as it is shown, without its objects.
func NewRevision(row store.Revision) Revision {
	return Revision{
		Revision: row.Revision, Author: row.Author, Source: row.Source, Reason: row.Reason,
		At: row.CreatedAt, Summary: row.Summary,
	}
}

// A Difference is one object that differs.
type Difference struct {
	Kind    string        `json:"kind" enum:"api,policy"`
	ID      string        `json:"id"`
	Action  string        `json:"action" enum:"created,updated,deleted"`
	Changes []diff.Member `json:"changes"`
}

// Objects returns what differs between two revisions as it is shown.
func Objects(differences []store.Difference) ([]Difference, error) {
	all := make([]Difference, 0, len(differences))
	for _, d := range differences {
		one := Difference{Kind: d.Kind, ID: d.ID, Action: "updated"}
		switch {
		case d.Before == nil:
			one.Action = "created"
		case d.After == nil:
			one.Action = "deleted"
		}
		var err error
		if one.Changes, err = diff.JSON(d.Before, d.After); err != nil {
			return nil, fmt.Errorf("comparing %s %s: %w", d.Kind, d.ID, err)
		}
		all = append(all, one)
	}
	return all, nil
}
