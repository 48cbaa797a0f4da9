// Package replay evaluates recorded requests under the present configuration and a
// changed one, before the change is saved, and reports which of them it would treat in
// another way. Runs are noted in the database, so that every admin can report on them.
package replay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	rows "github.com/sluicegate/sluice/admin/store/usage"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/usage"
)

// A Comparer prepares evaluations of requests.
type Comparer interface {
	// Compare returns an evaluation under two configurations of an organisation. The
	// caller closes it.
	Compare(ctx context.Context, org string, before, after []store.Object) (Evaluation, error)
}

// An Evaluation evaluates requests under two configurations. One goroutine uses it.
type Evaluation interface {
	// Evaluate returns what both do with a request. Nothing is sent or counted. Under the
	// second one a caller that had a key or policies has the policy as alone; "": its own.
	Evaluate(ctx context.Context, s *usage.Sample, as string) (Pair, error)
	Close()
}

// A Pair is what two configurations do with a request.
type Pair struct {
	Before, After Outcome
	Alias         string // of the key that called
	Skipped       string // why they cannot be compared; "": they can
}

// An Outcome is what a configuration does with a request. All but Allowed is of a refusal.
type Outcome struct {
	Allowed       bool
	Reason, Stage string
	Said          string // why
	Rule, Value   string // what decided, and its value
	Seen, From    string // the value of the request, and what has the rule
}

// Deps are the parts that a Service works with.
type Deps struct {
	Store   *store.Store
	Effect  func(ctx context.Context, by store.Author, b *apply.Batch) (base int64, after []store.Object, err error)
	Compare Comparer // nil: nothing can be evaluated
	Kept    int      // samples of an organisation
	For     time.Duration
	Metrics prometheus.Registerer // nil: not measured
	Log     *slog.Logger
}

// Service runs samples for all organisations. It is safe for concurrent use.
type Service struct {
	deps Deps
	jobs chan *job
	runs *prometheus.CounterVec
}

// Bounds of runs.
const (
	atOnce      = 2 // runs
	waiting     = 4 // that wait for others
	mostSamples = 100_000
	runWithin   = 10 * time.Minute
	noteEvery   = time.Second
	silentFor   = time.Minute // after which a run is taken to have ended with its admin
)

// New returns a service. Run must run for its runs to proceed.
func New(d Deps) (*Service, error) {
	s := &Service{deps: d, jobs: make(chan *job, waiting), runs: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_admin_replays_total", Help: "Runs of recorded requests under a changed configuration, by result.",
	}, []string{"result"})}
	if d.Metrics != nil {
		if err := d.Metrics.Register(s.runs); err != nil {
			return nil, fmt.Errorf("registering metrics of replays: %w", err)
		}
	}
	return s, nil
}

// A job is a run that has been asked for.
type job struct {
	id            string
	query         rows.SampleQuery
	before, after []store.Object
	as            *stand // nil: callers have their own rights
	total, done   int
	noted         time.Time
}

// Run runs what is asked for until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var working sync.WaitGroup
	for range atOnce {
		working.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case j := <-s.jobs:
					s.run(ctx, j)
				}
			}
		})
	}
	working.Wait()
	for len(s.jobs) > 0 {
		j := <-s.jobs
		s.note(&rows.Replay{ID: j.id, State: failed, Total: j.total, Fault: "the admin stopped before the run began"})
	}
}

// A stand is a policy that callers have in place of their own rights.
type stand struct {
	policy string
	apis   map[string]bool // that it names
}

// notOfPolicy is why samples are left out of a run with a stand.
const notOfPolicy = "the policy does not name the API"

// standOf returns a policy of a configuration as a stand.
func standOf(id string, after []store.Object) (*stand, error) {
	for i := range after {
		if after[i].Kind != store.PolicyObject || after[i].ID != id {
			continue
		}
		var p definition.Policy
		if err := json.Unmarshal(after[i].Body, &p); err != nil {
			return nil, fmt.Errorf("reading policy %s: %w", id, err)
		}
		all := &stand{policy: id, apis: make(map[string]bool)}
		for api := range p.AccessRights {
			all.apis[api] = true
		}
		return all, nil
	}
	return nil, rest.BadRequest(fmt.Sprintf("as_policy must be the id of a policy that there is after the change, not %.40q", id))
}

// The states of a run.
const (
	running = "running"
	done    = "done"
	failed  = "failed"
)

// run runs one job and notes its result.
func (s *Service) run(ctx context.Context, j *job) {
	working, cancel := context.WithTimeout(ctx, runWithin)
	defer cancel()
	result, err := s.evaluate(working, j)
	r := &rows.Replay{ID: j.id, State: done, Done: j.done, Total: j.total}
	if err == nil {
		r.Result, err = json.Marshal(result)
	}
	if err != nil {
		r.State, r.Fault, r.Result = failed, "the log of the admin has the cause", nil
		switch {
		case ctx.Err() != nil:
			r.Fault = "the admin stopped"
		case working.Err() != nil:
			r.Fault = fmt.Sprintf("it took longer than %s; run fewer samples", runWithin)
		case errors.Is(err, store.ErrUnavailable):
			r.Fault = "a store was away; run it again"
		default:
			s.deps.Log.Error("recorded requests could not be run", "replay", j.id, "err", err)
		}
	}
	s.runs.WithLabelValues(r.State).Inc()
	s.note(r)
}

// note writes how far a run is. What cannot be written shows as a run that fell silent.
func (s *Service) note(r *rows.Replay) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := rows.NoteReplay(ctx, s.deps.Store, r); err != nil {
		s.deps.Log.Warn("the state of a replay could not be noted", "replay", r.ID, "err", err)
	}
}

// evaluate evaluates the samples of a job.
func (s *Service) evaluate(ctx context.Context, j *job) (result *Result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	e, err := s.deps.Compare.Compare(ctx, j.query.Org, j.before, j.after)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	j.before, j.after = nil, nil // they may be large
	sum := newTally()
	as := ""
	if j.as != nil {
		as = j.as.policy
		sum.as = as
	}
	err = rows.EachSample(ctx, s.deps.Store, &j.query, func(one *usage.Sample) error {
		if j.as != nil && !j.as.apis[one.API] {
			sum.skipped[notOfPolicy]++
		} else {
			pair, err := e.Evaluate(ctx, one, as)
			if err != nil {
				return err
			}
			sum.add(one, &pair)
		}
		if j.done++; time.Since(j.noted) >= noteEvery {
			j.noted = time.Now()
			s.note(&rows.Replay{ID: j.id, State: running, Done: j.done, Total: j.total})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return sum.result(), nil
}

// A Report is what is known of a run.
type Report struct {
	// Id of the run, by which GET /api/config/replay/{id} finds it.
	ID string `json:"id"`
	// Whether the run goes on, is done, or has failed.
	State string `json:"state" enum:"running,done,failed"`
	// Time at which the run was asked for.
	Started time.Time `json:"started_at"`
	// Samples that were evaluated.
	Done int `json:"done"`
	// Samples to be evaluated.
	Total int `json:"total"`
	// Reason for which the run failed; left out: it has not.
	Fault string `json:"fault,omitempty"`
	// Result of a run that is done; left out before.
	Result *Result `json:"result,omitempty"`
}

// Routes lists the routes of the service.
func (s *Service) Routes() []rest.Route {
	return []rest.Route{{
		Method: "POST", Path: "/api/config/replay", Summary: "Run recorded requests under the present configuration and a changed one; nothing is stored or sent", Tag: "Configuration", Role: rest.Editor,
		Query: []string{"api", "since", "limit", "as_policy"}, Body: apply.Batch{}, Reply: Report{}, Status: 201, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.start, MaxBody: 64 << 20, Within: 5 * time.Minute,
	}, {
		Method: "GET", Path: "/api/config/replay/{id}", Summary: "Show how far a run of recorded requests is, and its result", Tag: "Configuration", Role: rest.Editor,
		Reply: Report{}, Wrong: []int{404}, Handle: s.show,
	}, {
		Method: "GET", Path: "/api/samples", Summary: "Count the requests that gateways recorded, by API", Tag: "Usage", Role: rest.Viewer,
		Reply: Samples{}, Handle: s.samples,
	}, {
		Method: "DELETE", Path: "/api/samples", Summary: "Delete the requests that gateways recorded, or only those of an API or a key", Tag: "Usage", Role: rest.Editor,
		Query: []string{"api", "key"}, Reply: rest.Envelope{}, Handle: s.forget,
	}}
}

// start starts a run. The batch is checked first, as for POST /api/config/effect.
func (s *Service) start(ctx context.Context, c *rest.Call) (any, error) {
	if s.deps.Compare == nil {
		return nil, rest.NotFound("This admin does not evaluate requests")
	}
	var batch apply.Batch
	if err := c.Decode(&batch); err != nil {
		return nil, err
	}
	j, err := s.asked(c)
	if err != nil {
		return nil, err
	}
	base, after, err := s.deps.Effect(ctx, c.Author(c.Source()), &batch)
	if err != nil {
		return nil, err
	}
	if base > 0 {
		if j.before, err = s.deps.Store.ObjectsAt(ctx, c.Who.Org, base); err != nil {
			return nil, err
		}
	}
	j.after = after
	if id := c.Query("as_policy"); id != "" {
		if j.as, err = standOf(id, after); err != nil {
			return nil, err
		}
	}
	if j.total, err = rows.CountSamples(ctx, s.deps.Store, &j.query); err != nil {
		return nil, err
	}
	if j.total == 0 {
		return nil, rest.Refuse(409, "No recorded requests fit; gateways record some of them when gateway.samples_per_second is above 0")
	}
	if err := rows.StartReplay(ctx, s.deps.Store, c.Who.Org, j.id, j.total); err != nil {
		return nil, err
	}
	select {
	case s.jobs <- j:
	default:
		s.note(&rows.Replay{ID: j.id, State: failed, Fault: "too many runs were under way"})
		return nil, rest.Unavailable("Too many runs of recorded requests are under way; try again")
	}
	return &Report{ID: j.id, State: running, Started: time.Now().UTC(), Total: j.total}, nil
}

// asked reads the parameters of a run.
func (s *Service) asked(c *rest.Call) (*job, error) {
	j := &job{id: rand.Text(), query: rows.SampleQuery{Org: c.Who.Org, API: c.Query("api"), Since: time.Unix(0, 0)}, noted: time.Now()}
	if text := c.Query("since"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, rest.BadRequest(fmt.Sprintf("since must be a time as in RFC 3339, such as 2026-01-31T12:00:00Z, not %.40q", text))
		}
		j.query.Since = at
	}
	most, err := c.Number("limit", mostSamples)
	if err != nil {
		return nil, err
	}
	if most < 1 || most > mostSamples {
		return nil, rest.BadRequest(fmt.Sprintf("limit must be in 1…%d, not %d", mostSamples, most))
	}
	j.query.Most = most
	return j, nil
}

func (s *Service) show(ctx context.Context, c *rest.Call) (any, error) {
	r, err := rows.ReplayByID(ctx, s.deps.Store, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, "No run has this id; runs are kept for a day, the newest 50 of an organisation")
	}
	report := &Report{ID: r.ID, State: r.State, Started: r.Start.UTC(), Done: r.Done, Total: r.Total, Fault: r.Fault}
	if r.State == running && r.Silent > silentFor {
		report.State, report.Fault = failed, "the admin that ran it has stopped"
	}
	if r.Result != nil {
		report.Result = new(Result)
		if err := json.Unmarshal(r.Result, report.Result); err != nil {
			return nil, fmt.Errorf("reading the result of a replay: %w", err)
		}
	}
	return report, nil
}

// Samples are the requests that were recorded.
type Samples struct {
	// Number of the requests that are kept.
	Samples int64 `json:"samples"`
	// Bytes of their texts together.
	Bytes int64 `json:"bytes"`
	// Time of the oldest request; left out if there is none.
	First *time.Time `json:"first_at,omitempty"`
	// Time of the newest request; left out if there is none.
	Last *time.Time `json:"last_at,omitempty"`
	// APIs whose requests were recorded, those with the most first; at most 500.
	APIs []rows.SampledAPI `json:"apis"`
	// Number of the newest requests that are kept (setting usage.samples_kept).
	Most int `json:"most"`
	// Seconds for which requests are kept (setting usage.retention_samples).
	For int64 `json:"kept_for"`
}

func (s *Service) samples(ctx context.Context, c *rest.Call) (any, error) {
	apis, err := rows.SampledAPIs(ctx, s.deps.Store, c.Who.Org)
	if err != nil {
		return nil, err
	}
	all := &Samples{APIs: apis, Most: s.deps.Kept, For: int64(s.deps.For.Seconds())}
	for i := range apis {
		a := &apis[i]
		a.First, a.Last = a.First.UTC(), a.Last.UTC()
		all.Samples, all.Bytes = all.Samples+a.Samples, all.Bytes+a.Bytes
		if all.First == nil || a.First.Before(*all.First) {
			all.First = &a.First
		}
		if all.Last == nil || a.Last.After(*all.Last) {
			all.Last = &a.Last
		}
	}
	return all, nil
}

func (s *Service) forget(ctx context.Context, c *rest.Call) (any, error) {
	n, err := rows.DeleteSamples(ctx, s.deps.Store, c.Author(c.Source()), c.Query("api"), c.Query("key"))
	if err != nil {
		return nil, err
	}
	return rest.Done(fmt.Sprintf("%d recorded requests deleted", n), nil), nil
}
