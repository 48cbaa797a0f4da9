package shown

import (
	"encoding/json"
	"time"

	"github.com/sluicegate/sluice/admin/store"
)

// An AuditEntry is one entry of the audit log.
type AuditEntry struct {
	ID         int64           `json:"id"`
	At         time.Time       `json:"at"`
	Actor      string          `json:"actor"`
	ActorKind  string          `json:"actor_kind" enum:"user,gateway,system"`
	IP         string          `json:"ip"`
	Action     string          `json:"action"`
	ObjectKind string          `json:"object_kind"`
	ObjectID   string          `json:"object_id"`
	Revision   *int64          `json:"revision" doc:"of the configuration, when it changed"`
	Before     json.RawMessage `json:"before" doc:"secrets are masked"`
	After      json.RawMessage `json:"after" doc:"secrets are masked"`
}

// Audit returns entries of the audit log as they are shown.
func Audit(rows []store.AuditRow) []AuditEntry {
	all := make([]AuditEntry, 0, len(rows))
	for _, row := range rows {
		all = append(all, AuditEntry{
			ID: row.ID, At: row.At, Actor: row.Actor, ActorKind: row.ActorKind, IP: row.IP, Action: row.Action,
			ObjectKind: row.ObjectKind, ObjectID: row.ObjectID, Revision: row.Revision,
			Before: row.Before, After: row.After,
		})
	}
	return all
}
