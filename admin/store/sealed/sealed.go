// Package sealed finds what the database holds that is sealed with the master key
// of the admins, wherever it is kept.
package sealed

import (
	"context"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// A Value is something sealed, and where it is kept.
type Value struct {
	Table  string
	ID     string // of its row: what its primary key holds, with spaces between
	Column string
	Sealed []byte
}

// Place is what the value belongs to, as it was sealed.
func (v *Value) Place() []byte { return []byte(v.String()) }

// String says where the value is kept.
func (v *Value) String() string { return v.Table + " " + v.ID + " " + v.Column }

// A Table is a table that holds sealed values.
type Table struct {
	Name    string
	Columns []string // that are sealed
	next    func(ctx context.Context, q *db.Queries, after string, most int32) (found []Value, last string, err error)
	replace func(ctx context.Context, q *db.Queries, v *Value, fresh []byte) (int64, error)
}

// Tables returns every table that holds sealed values.
func Tables() []Table {
	return []Table{
		{"certificates", []string{"sealed_key"}, certificates, resealCertificate},
		{"key_requests", []string{"sealed_secret"}, requests, resealRequest},
		{"webhooks", []string{"sealed_secret", "sealed_former"}, webhooks, resealWebhook},
		{"deliveries", []string{"payload"}, messages, resealMessage},
	}
}

// perPage is how many rows are read at once.
const perPage = 200

// Next returns the values of the rows after one, in the order of their ids, and
// the last row that it looked at: "" when there are no more.
func (t *Table) Next(ctx context.Context, st *store.Store, after string) (found []Value, last string, err error) {
	found, last, err = t.next(ctx, st.Read(), after, perPage)
	if err != nil {
		return nil, "", store.Translate(err)
	}
	for i := range found {
		found[i].Table = t.Name
	}
	return found, last, nil
}

// Replace puts a value anew, unless somebody has changed it in the meantime.
func (t *Table) Replace(ctx context.Context, tx *store.Tx, v *Value, fresh []byte) (done bool, err error) {
	n, err := t.replace(ctx, tx.Queries, v, fresh)
	return n == 1, err
}

func certificates(ctx context.Context, q *db.Queries, after string, most int32) (found []Value, last string, err error) {
	org, sum, _ := strings.Cut(after, " ")
	rows, err := q.SealedCertificates(ctx, db.SealedCertificatesParams{OrgID: org, Sum: sum, Max: most})
	for _, row := range rows {
		last = row.OrgID + " " + row.Sum
		found = append(found, Value{ID: last, Column: "sealed_key", Sealed: row.SealedKey})
	}
	return found, last, err
}

func resealCertificate(ctx context.Context, q *db.Queries, v *Value, fresh []byte) (int64, error) {
	org, sum, _ := strings.Cut(v.ID, " ")
	return q.ResealCertificate(ctx, db.ResealCertificateParams{OrgID: org, Sum: sum, Former: v.Sealed, Fresh: fresh})
}

func requests(ctx context.Context, q *db.Queries, after string, most int32) (found []Value, last string, err error) {
	rows, err := q.SealedRequests(ctx, db.SealedRequestsParams{ID: after, Max: most})
	for _, row := range rows {
		last = row.ID
		found = append(found, Value{ID: last, Column: "sealed_secret", Sealed: row.SealedSecret})
	}
	return found, last, err
}

func resealRequest(ctx context.Context, q *db.Queries, v *Value, fresh []byte) (int64, error) {
	return q.ResealRequest(ctx, db.ResealRequestParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
}

func webhooks(ctx context.Context, q *db.Queries, after string, most int32) (found []Value, last string, err error) {
	rows, err := q.SealedWebhooks(ctx, db.SealedWebhooksParams{ID: after, Max: most})
	for _, row := range rows {
		last = row.ID
		for column, sealed := range map[string][]byte{"sealed_secret": row.SealedSecret, "sealed_former": row.SealedFormer} {
			if len(sealed) > 0 {
				found = append(found, Value{ID: last, Column: column, Sealed: sealed})
			}
		}
	}
	return found, last, err
}

func resealWebhook(ctx context.Context, q *db.Queries, v *Value, fresh []byte) (int64, error) {
	if v.Column == "sealed_former" {
		return q.ResealWebhookFormer(ctx, db.ResealWebhookFormerParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
	}
	return q.ResealWebhook(ctx, db.ResealWebhookParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
}

func messages(ctx context.Context, q *db.Queries, after string, most int32) (found []Value, last string, err error) {
	rows, err := q.SealedDeliveries(ctx, db.SealedDeliveriesParams{ID: after, Max: most})
	for _, row := range rows {
		last = row.ID
		found = append(found, Value{ID: last, Column: "payload", Sealed: row.Payload})
	}
	return found, last, err
}

func resealMessage(ctx context.Context, q *db.Queries, v *Value, fresh []byte) (int64, error) {
	return q.ResealDelivery(ctx, db.ResealDeliveryParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
}
