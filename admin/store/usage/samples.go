package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/usage"
)

// Bounds of the recorded requests.
const (
	mostSampleBytes = 64 << 20 // texts of one organisation
	mostSampledAPIs = 500      // that a list has
	replaysKept     = 50       // the newest runs of one organisation
	replaysKeptFor  = 24 * time.Hour
)

// addSamples adds the recorded requests of a batch. Times in the future count for now.
func addSamples(ctx context.Context, tx *store.Tx, b *usage.Batch, now time.Time) error {
	if len(b.Samples) == 0 {
		return nil
	}
	p := db.AddSamplesParams{Gateway: b.Gateway}
	for i := range b.Samples {
		s := b.Samples[i]
		if s.At.After(now) {
			s.At = now
		}
		detail, err := json.Marshal(&s)
		if err != nil {
			return fmt.Errorf("writing a sample: %w", err)
		}
		p.Orgs, p.Ats, p.APIs = append(p.Orgs, s.Org), append(p.Ats, s.At), append(p.APIs, s.API)
		p.Keys, p.Sizes, p.Details = append(p.Keys, s.Key), append(p.Sizes, int32(s.Size())), append(p.Details, detail)
	}
	return tx.AddSamples(ctx, p)
}

// TrimSamples drops the oldest samples of the organisations in a batch that are too many.
// It leaves them while another admin drops some: the next batch makes up for it.
func TrimSamples(ctx context.Context, st *store.Store, b *usage.Batch, most int) error {
	p := db.TrimSamplesParams{Most: int64(most), MostBytes: mostSampleBytes}
	for i := range b.Samples {
		if org := b.Samples[i].Org; !slices.Contains(p.Orgs, org) {
			p.Orgs = append(p.Orgs, org)
		}
	}
	if len(p.Orgs) == 0 {
		return nil
	}
	return st.InTx(ctx, func(tx *store.Tx) error {
		locked, err := tx.LockSamples(ctx)
		if err != nil || !locked {
			return err
		}
		return tx.TrimSamples(ctx, p)
	})
}

// forgetSamples drops samples and runs that are too old.
func forgetSamples(ctx context.Context, tx *store.Tx, now time.Time, kept time.Duration) error {
	if err := tx.ForgetSamples(ctx, now.Add(-kept)); err != nil {
		return err
	}
	return tx.ForgetReplays(ctx, now.Add(-replaysKeptFor))
}

// SampledAPI is an API of which requests were recorded.
type SampledAPI struct {
	// Id of the API.
	API string `json:"api_id"`
	// Number of its requests that are kept.
	Samples int64 `json:"samples"`
	// Bytes of their texts together.
	Bytes int64 `json:"bytes"`
	// Time of the oldest request.
	First time.Time `json:"first_at"`
	// Time of the newest request.
	Last time.Time `json:"last_at"`
}

// SampledAPIs returns at most 500 APIs of which requests were recorded, those with the
// most first.
func SampledAPIs(ctx context.Context, st *store.Store, org string) ([]SampledAPI, error) {
	rows, err := st.Read().SampledAPIs(ctx, db.SampledAPIsParams{OrgID: org, Max: mostSampledAPIs})
	list := make([]SampledAPI, 0, len(rows))
	for _, r := range rows {
		list = append(list, SampledAPI{r.APIID, r.Samples, r.Bytes, r.First, r.Last})
	}
	return list, store.Translate(err)
}

// DeleteSamples deletes the samples of an organisation, or only those of an API and of a
// key, and returns how many there were.
func DeleteSamples(ctx context.Context, st *store.Store, by store.Author, api, key string) (n int64, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		n, err = tx.DeleteSamples(ctx, db.DeleteSamplesParams{OrgID: by.Org, APIID: api, KeyHash: key})
		if err != nil || n == 0 {
			return err
		}
		return tx.Audit(ctx, by, store.AuditEntry{Action: "deleted", Kind: "samples", ID: api})
	})
	return n, err
}

// A SampleQuery selects samples of an organisation, the newest.
type SampleQuery struct {
	Org, API string // "": of all APIs
	Since    time.Time
	Most     int
}

// CountSamples returns how many samples a query selects.
func CountSamples(ctx context.Context, st *store.Store, q *SampleQuery) (int, error) {
	n, err := st.Read().CountSamples(ctx, db.CountSamplesParams{OrgID: q.Org, APIID: q.API, Since: q.Since, Most: int32(q.Most)})
	return int(n), store.Translate(err)
}

// pageOfSamples is how many samples are read at once.
const pageOfSamples = 200

// EachSample calls do for each sample of a query, the newest first, until it returns an
// error.
func EachSample(ctx context.Context, st *store.Store, q *SampleQuery, do func(*usage.Sample) error) error {
	p := db.ListSamplesParams{OrgID: q.Org, APIID: q.API, Since: q.Since}
	for left := q.Most; left > 0; left -= int(p.Max) {
		p.Max = int32(min(left, pageOfSamples))
		rows, err := st.Read().ListSamples(ctx, p)
		if err != nil {
			return store.Translate(err)
		}
		for i := range rows {
			s := new(usage.Sample)
			if err := json.Unmarshal(rows[i].Detail, s); err != nil {
				return fmt.Errorf("reading a sample: %w", err)
			}
			if err := do(s); err != nil {
				return err
			}
			p.Before = rows[i].ID
		}
		if len(rows) < int(p.Max) {
			return nil
		}
	}
	return nil
}

// A Replay is a run of samples, as an admin noted it.
type Replay struct {
	ID     string
	State  string
	Start  time.Time
	Done   int
	Total  int
	Fault  string
	Result []byte        // JSON; nil: it is not done
	Silent time.Duration // since its admin last noted how far it is
}

// StartReplay adds a run of some samples.
func StartReplay(ctx context.Context, st *store.Store, org, id string, total int) error {
	return st.InTx(ctx, func(tx *store.Tx) error {
		return tx.StartReplay(ctx, db.StartReplayParams{ID: id, OrgID: org, Total: int32(total), Most: replaysKept})
	})
}

// NoteReplay notes how far a run is, and its result.
func NoteReplay(ctx context.Context, st *store.Store, r *Replay) error {
	return st.InTx(ctx, func(tx *store.Tx) error {
		return tx.NoteReplay(ctx, db.NoteReplayParams{ID: r.ID, State: r.State, Done: int32(r.Done), Fault: r.Fault, Result: r.Result})
	})
}

// ReplayByID returns a run of an organisation. The error wraps store.ErrNotFound if there
// is none.
func ReplayByID(ctx context.Context, st *store.Store, org, id string) (*Replay, error) {
	r, err := st.Read().ReplayOf(ctx, db.ReplayOfParams{OrgID: org, ID: id})
	if err != nil {
		return nil, store.Translate(err)
	}
	return &Replay{
		ID: r.ID, State: r.State, Start: r.StartedAt, Done: int(r.Done), Total: int(r.Total), Fault: r.Fault, Result: r.Result,
		Silent: time.Duration(r.Silent * float64(time.Second)),
	}, nil
}
