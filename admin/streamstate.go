package admin

import (
	"context"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// runningStreams are streams as gateways run them.
type runningStreams struct {
	// Streams of the page, one for every gateway that runs it, by API, name and gateway.
	Streams []streamstate.Stream `json:"streams" nullable:"false"`
	// Value of the parameter after for the next page; left out: there is none.
	Next string `json:"next,omitempty"`
	// Names of the gateways that answered.
	Gateways []string `json:"gateways" nullable:"false"`
	// Names of the gateways that did not answer in time: what they run is missing.
	Silent []string `json:"silent" nullable:"false"`
}

// streamList is one page of the streams of all gateways.
type streamList struct {
	// Streams of the page, by API and name.
	Streams []streamRow `json:"streams" nullable:"false"`
	// Value of the parameter after for the next page; left out: there is none.
	Next string `json:"next,omitempty"`
	// Names of the gateways that answered.
	Gateways []string `json:"gateways" nullable:"false"`
	// Names of the gateways that did not answer in time: what they run is missing.
	Silent []string `json:"silent" nullable:"false"`
}

// streamRow is a stream with the gateways that run it.
type streamRow struct {
	// Id of the API that has the stream.
	API string `json:"api_id"`
	// Name of the API, cut after 128 bytes; empty: the API is deleted, and gateways have not stopped
	// it yet.
	APIName string `json:"api_name"`
	// Name of the stream, unique in its API.
	Name string `json:"stream"`
	// Phase of the stream on that gateway of all where it needs most attention.
	Phase streamstate.Phase `json:"phase" enum:"starting,running,waiting,reconnecting,failing,draining,stopped"`
	// Messages that the inputs took since each gateway started the stream.
	MessagesIn uint64 `json:"messages_in"`
	// Messages that the outputs sent since each gateway started the stream.
	MessagesOut uint64 `json:"messages_out"`
	// Messages that are not settled.
	InFlight int `json:"in_flight"`
	// Last error on any gateway; empty: there was none.
	LastError string `json:"last_error"`
	// Time of the last error; null: there was none.
	LastErrorAt *time.Time `json:"last_error_at"`
	// Gateways that run the stream.
	Gateways []streamGateway `json:"gateways" nullable:"false"`
}

// streamGateway is a gateway that runs a stream.
type streamGateway struct {
	// Name of the gateway.
	Name string `json:"gateway"`
	// Phase of the stream on the gateway.
	Phase streamstate.Phase `json:"phase" enum:"starting,running,waiting,reconnecting,failing,draining,stopped"`
	// Time at which it entered the phase.
	Since time.Time `json:"since"`
}

// streamStatus tells how the streams of one API run.
func (s *Server) streamStatus(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.storedStreams(ctx, c, noAPI)
	if err != nil {
		return nil, err
	}
	return s.streamsOf(ctx, c, map[string]string{"api_id": row.ID, "nodes": "true"})
}

// listStreams lists the streams of all gateways.
func (s *Server) listStreams(ctx context.Context, c *rest.Call) (any, error) {
	found, err := s.streamsOf(ctx, c, map[string]string{"api_id": c.Query("api_id"), "phase": c.Query("phase")})
	if err != nil {
		return nil, err
	}
	list := &streamList{Streams: streamRows(found.Streams), Next: found.Next, Gateways: found.Gateways, Silent: found.Silent}
	return list, s.nameAPIs(ctx, c.Who.Org, list.Streams)
}

// streamsOf returns a page of what gateways run for the organisation of a call.
func (s *Server) streamsOf(ctx context.Context, c *rest.Call, query map[string]string) (*runningStreams, error) {
	query["org_id"], query["after"], query["page_size"] = c.Who.Org, c.Query("after"), c.Query("page_size")
	q, err := streamstate.ParseQuery(query)
	if err != nil {
		return nil, rest.BadRequest(err.Error())
	}
	return s.running.of(q.String(), func() (*runningStreams, error) {
		answers, silent, err := ask(ctx, s, question{text: q.String()}, everyAnswer[streamstate.Answer])
		if err != nil {
			return nil, err
		}
		found := &runningStreams{Gateways: make([]string, 0, len(answers)), Silent: append([]string{}, silent...)}
		for i := range answers {
			a := &answers[i]
			found.Gateways = append(found.Gateways, a.Gateway)
			a.Streams = slices.DeleteFunc(a.Streams, func(one streamstate.Stream) bool { return one.Org != q.Org })
			for j := range a.Streams {
				a.Streams[j].Gateway = a.Gateway
			}
		}
		slices.Sort(found.Gateways)
		found.Streams, found.Next = streamstate.Merge(answers, q.Max)
		if found.Streams == nil {
			found.Streams = []streamstate.Stream{}
		}
		return found, nil
	})
}

// streamRows puts the same stream of several gateways into one row.
func streamRows(list []streamstate.Stream) []streamRow {
	rows := make([]streamRow, 0, len(list))
	for i := range list {
		one := &list[i]
		if i == 0 || streamstate.Compare(one, &list[i-1]) != 0 {
			rows = append(rows, streamRow{API: one.API, Name: one.Name, Phase: one.Phase})
		}
		row := &rows[len(rows)-1]
		row.Phase = streamstate.Worse(row.Phase, one.Phase)
		row.MessagesIn, row.MessagesOut, row.InFlight = row.MessagesIn+one.MessagesIn, row.MessagesOut+one.MessagesOut, row.InFlight+one.InFlight
		if at := one.LastErrorAt; at != nil && (row.LastErrorAt == nil || at.After(*row.LastErrorAt)) {
			row.LastError, row.LastErrorAt = one.LastError, at
		}
		row.Gateways = append(row.Gateways, streamGateway{one.Gateway, one.Phase, one.Since})
	}
	return rows
}

// nameAPIs fills in the names of APIs.
func (s *Server) nameAPIs(ctx context.Context, org string, rows []streamRow) error {
	if len(rows) == 0 {
		return nil
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].API
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found, _, err := s.deps.Store.APIRows(ctx, org, &store.RowFilter{IDs: ids}, "name", store.Page{Max: len(ids)})
	if err != nil {
		return err
	}
	names := make(map[string]string, len(found))
	for i := range found {
		names[found[i].ID] = rest.Truncate(found[i].Name, 128)
	}
	for i := range rows {
		rows[i].APIName = names[rows[i].API]
	}
	return nil
}
