package store

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicegate/sluice/admin/store/db"
)

// A SealedValue is a sealed value and where it is stored.
type SealedValue struct {
	Table  string
	ID     string // of its row: the primary key, with spaces between its columns
	Column string
	Sealed []byte
}

// Place returns the additional data that the value is sealed with.
func (v *SealedValue) Place() []byte { return []byte(v.String()) }

// String returns where the value is stored.
func (v *SealedValue) String() string { return v.Table + " " + v.ID + " " + v.Column }

// A SealedTable is a table that holds sealed values.
type SealedTable struct {
	Name    string
	Columns []string // that are sealed
	next    func(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error)
	replace func(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error)
}

// SealedTables returns every table that holds sealed values.
func SealedTables() []SealedTable {
	return []SealedTable{
		{"certificates", []string{"sealed_key"}, sealedCertificates, replaceCertificate},
		{"key_requests", []string{"sealed_secret"}, sealedRequests, replaceRequest},
		{"webhooks", []string{"sealed_secret", "sealed_former"}, sealedWebhooks, replaceWebhook},
		{"deliveries", []string{"payload"}, sealedMessages, replaceMessage},
		{"secrets", []string{"sealed_value"}, sealedSecrets, replaceSecret},
		{"acme_entries", []string{"sealed_value"}, sealedACMEEntries, replaceACMEEntry},
	}
}

// sealedPage is how many rows are read at once.
const sealedPage = 200

// Next returns the values of the rows after one, in the order of their ids, and
// the last row that it looked at: "" when there are no more.
func (t *SealedTable) Next(ctx context.Context, s *Store, after string) (found []SealedValue, last string, err error) {
	found, last, err = t.next(ctx, s.queries, after, sealedPage)
	if err != nil {
		return nil, "", translate(err)
	}
	for i := range found {
		found[i].Table = t.Name
	}
	return found, last, nil
}

// Replace replaces a value, unless it was changed in the meantime.
func (t *SealedTable) Replace(ctx context.Context, tx *Tx, v *SealedValue, fresh []byte) (done bool, err error) {
	n, err := t.replace(ctx, tx.Queries, v, fresh)
	return n == 1, err
}

// MasterKeyCheck returns the value that is sealed with the master key of the database, or
// ErrNotFound before there is one, also in a schema without a table for it.
func (s *Store) MasterKeyCheck(ctx context.Context) ([]byte, error) {
	sealed, err := s.queries.MasterKeyCheck(ctx)
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == "42P01" {
		return nil, ErrNotFound
	}
	return sealed, translate(err)
}

// AddMasterKeyCheck stores the value unless there is one, and returns the one that there
// is then.
func (s *Store) AddMasterKeyCheck(ctx context.Context, sealed []byte) ([]byte, error) {
	if err := s.queries.AddMasterKeyCheck(ctx, sealed); err != nil {
		return nil, translate(err)
	}
	return s.MasterKeyCheck(ctx)
}

// ReplaceMasterKeyCheck replaces the value, unless it was changed in the meantime.
func (s *Store) ReplaceMasterKeyCheck(ctx context.Context, former, fresh []byte) error {
	_, err := s.queries.ReplaceMasterKeyCheck(ctx, db.ReplaceMasterKeyCheckParams{Former: former, Fresh: fresh})
	return translate(err)
}

func sealedCertificates(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error) {
	org, sum, _ := strings.Cut(after, " ")
	rows, err := q.SealedCertificates(ctx, db.SealedCertificatesParams{OrgID: org, Sum: sum, Max: most})
	for _, row := range rows {
		last = row.OrgID + " " + row.Sum
		found = append(found, SealedValue{ID: last, Column: "sealed_key", Sealed: row.SealedKey})
	}
	return found, last, err
}

func replaceCertificate(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error) {
	org, sum, _ := strings.Cut(v.ID, " ")
	return q.ReplaceSealedCertificate(ctx, db.ReplaceSealedCertificateParams{OrgID: org, Sum: sum, Former: v.Sealed, Fresh: fresh})
}

func sealedRequests(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error) {
	rows, err := q.SealedRequests(ctx, db.SealedRequestsParams{ID: after, Max: most})
	for _, row := range rows {
		last = row.ID
		found = append(found, SealedValue{ID: last, Column: "sealed_secret", Sealed: row.SealedSecret})
	}
	return found, last, err
}

func replaceRequest(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error) {
	return q.ReplaceSealedRequest(ctx, db.ReplaceSealedRequestParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
}

func sealedWebhooks(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error) {
	rows, err := q.SealedWebhooks(ctx, db.SealedWebhooksParams{ID: after, Max: most})
	for _, row := range rows {
		last = row.ID
		for column, sealed := range map[string][]byte{"sealed_secret": row.SealedSecret, "sealed_former": row.SealedFormer} {
			if len(sealed) > 0 {
				found = append(found, SealedValue{ID: last, Column: column, Sealed: sealed})
			}
		}
	}
	return found, last, err
}

func replaceWebhook(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error) {
	if v.Column == "sealed_former" {
		return q.ReplaceSealedWebhookFormer(ctx, db.ReplaceSealedWebhookFormerParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
	}
	return q.ReplaceSealedWebhook(ctx, db.ReplaceSealedWebhookParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
}

func sealedMessages(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error) {
	rows, err := q.SealedDeliveries(ctx, db.SealedDeliveriesParams{ID: after, Max: most})
	for _, row := range rows {
		last = row.ID
		found = append(found, SealedValue{ID: last, Column: "payload", Sealed: row.Payload})
	}
	return found, last, err
}

func replaceMessage(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error) {
	return q.ReplaceSealedDelivery(ctx, db.ReplaceSealedDeliveryParams{ID: v.ID, Former: v.Sealed, Fresh: fresh})
}

func sealedSecrets(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error) {
	org, name, _ := strings.Cut(after, " ")
	rows, err := q.SealedSecrets(ctx, db.SealedSecretsParams{OrgID: org, Name: name, Max: most})
	for _, row := range rows {
		last = row.OrgID + " " + row.Name
		found = append(found, SealedValue{ID: last, Column: "sealed_value", Sealed: row.SealedValue})
	}
	return found, last, err
}

func replaceSecret(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error) {
	org, name, _ := strings.Cut(v.ID, " ")
	return q.ReplaceSealedSecret(ctx, db.ReplaceSealedSecretParams{OrgID: org, Name: name, Former: v.Sealed, Fresh: fresh})
}

func sealedACMEEntries(ctx context.Context, q *db.Queries, after string, most int32) (found []SealedValue, last string, err error) {
	rows, err := q.SealedACMEEntries(ctx, db.SealedACMEEntriesParams{Name: after, Max: most})
	for _, row := range rows {
		last = row.Name
		found = append(found, SealedValue{ID: last, Column: "sealed_value", Sealed: row.SealedValue})
	}
	return found, last, err
}

func replaceACMEEntry(ctx context.Context, q *db.Queries, v *SealedValue, fresh []byte) (int64, error) {
	return q.ReplaceSealedACMEEntry(ctx, db.ReplaceSealedACMEEntryParams{Name: v.ID, Former: v.Sealed, Fresh: fresh})
}
