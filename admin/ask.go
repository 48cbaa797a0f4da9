package admin

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
)

// maxAsking bounds the questions to gateways that are open at the same time.
const maxAsking = 8

var asksTooMuch = rest.Unavailable("Too many questions are being put to the gateways; try again")

// A question is one to gateways.
type question struct {
	text    string
	gateway string // the only one that answers; "": all do
}

// ask puts a question to the gateways that serve, and returns their answers, and the names
// of those that did not answer in time. It stops at an answer that is enough.
func ask[A any, P interface {
	*A
	From() string
}](ctx context.Context, s *Server, q question, enough func(*A) bool) (all []A, silent []string, err error) {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	default:
		return nil, nil, asksTooMuch
	}
	rows, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range rows {
		if time.Since(rows[i].SeenAt) < silentAfter && (q.gateway == "" || q.gateway == rows[i].Name) {
			silent = append(silent, rows[i].Name)
		}
	}
	if len(silent) == 0 {
		return nil, nil, nil
	}
	err = s.gateways.Ask(ctx, q.text, func(text []byte) bool {
		var a A
		if err := json.Unmarshal(text, &a); err != nil {
			s.log.Warn("the answer of a gateway is not understood", "err", err)
			return false
		}
		at := slices.Index(silent, P(&a).From())
		if at < 0 { // it has answered, or is not known yet
			return false
		}
		silent = slices.Delete(silent, at, at+1)
		all = append(all, a)
		return len(silent) == 0 || enough(&a)
	})
	return all, silent, err
}

// everyAnswer asks for the answers of all gateways.
func everyAnswer[A any](*A) bool { return false }
