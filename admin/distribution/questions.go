package distribution

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Each gateway remembers the requests that it refused. An admin that looks for one
// announces its id to all admins, which pass it on with the polls of their gateways. The
// gateway that remembers the request sends its record, which is announced in turn.

// askWithin bounds how long a question is passed on to gateways, and waited for.
const askWithin = 3 * time.Second

// maxQuestions bounds the questions that are open at the same time; further ones take the
// place of the oldest.
const maxQuestions = 16

// maxAnnounced is the longest message that PostgreSQL announces, in bytes.
const maxAnnounced = 7999

// questions are the ids of refused requests that are being looked for.
type questions struct {
	mu        sync.Mutex
	open      []question
	waiting   map[string][]chan json.RawMessage // for the answers, by id
	interrupt map[*func()]struct{}              // ends the waits of polls
}

// A question is named by what the admin that asks it chose and, behind a dot, the id of
// the request: the same id may be asked for again.
type question struct {
	name  string
	until time.Time
}

func newQuestions() *questions {
	return &questions{waiting: make(map[string][]chan json.RawMessage), interrupt: make(map[*func()]struct{})}
}

// A message is a question, or an answer if it has a refusal or a piece.
type message struct {
	ID      string          `json:"id"`             // of the request
	Name    string          `json:"name,omitempty"` // of the question
	Refusal json.RawMessage `json:"refusal,omitempty"`
	Piece   *piece          `json:"piece,omitempty"`
}

// Refusal asks all gateways for the record of a refused request. It returns nil when none
// has answered in time.
func (s *Service) Refusal(ctx context.Context, id string) (json.RawMessage, error) {
	answer, forget := s.questions.await(id)
	defer forget()
	if err := s.announce(ctx, &message{ID: id, Name: rand.Text()[:8] + "." + id}); err != nil {
		return nil, err
	}
	patience := time.NewTimer(askWithin)
	defer patience.Stop()
	select {
	case found := <-answer:
		return found, nil
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil, nil
}

// Found passes the record of a refused request on to the admin that looks for it.
func (s *Service) Found(ctx context.Context, id string, refusal json.RawMessage) error {
	if s.questions.answer(id, refusal) {
		return nil
	}
	return s.announce(ctx, &message{ID: id, Refusal: refusal})
}

func (s *Service) announce(ctx context.Context, m *message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > maxAnnounced {
		return fmt.Errorf("the record of a refused request has %d bytes, more than can be announced", len(text))
	}
	return s.deps.Store.AnnounceRefusals(ctx, string(text))
}

// heard handles a message of an admin, this one included.
func (s *Service) heard(text string) {
	var m message
	switch err := json.Unmarshal([]byte(text), &m); {
	case err != nil || m.ID == "":
		s.log.Warn("a message about refused requests is not understood", "err", err)
	case len(m.Refusal) > 0:
		s.questions.answer(m.ID, m.Refusal)
	case m.Piece != nil:
		if err := s.gatherings.piece(m.ID, m.Piece); err != nil {
			s.log.Warn("an answer of a gateway is not understood", "err", err)
		}
	default:
		s.questions.ask(m.Name, time.Now())
	}
}

// Asked returns the names of the questions that a gateway has not seen.
func (s *Service) Asked(seen []string) []string { return s.questions.unseen(seen, time.Now()) }

// Interrupt calls end when there is a question that a gateway has not seen, now or later,
// until stop is called.
func (s *Service) Interrupt(seen []string, end func()) (stop func()) {
	q := s.questions
	q.mu.Lock()
	q.interrupt[&end] = struct{}{}
	q.mu.Unlock()
	if len(s.Asked(seen)) > 0 {
		end()
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.interrupt, &end)
	}
}

// ask adds a question and ends the waits of all polls.
func (q *questions) ask(name string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = slices.DeleteFunc(q.open, func(o question) bool { return now.After(o.until) })
	if len(q.open) == maxQuestions {
		q.open = slices.Delete(q.open, 0, 1)
	}
	q.open = append(q.open, question{name, now.Add(askWithin)})
	for end := range q.interrupt {
		(*end)()
	}
}

func (q *questions) unseen(seen []string, now time.Time) (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.open {
		short, _, _ := strings.Cut(o.name, ".") // as gateways remember long ones
		if !now.After(o.until) && !slices.Contains(seen, o.name) && !slices.Contains(seen, short) {
			names = append(names, o.name)
		}
	}
	return names
}

// await returns a channel for the answer to a question.
func (q *questions) await(id string) (answer chan json.RawMessage, forget func()) {
	answer = make(chan json.RawMessage, 1)
	q.mu.Lock()
	q.waiting[id] = append(q.waiting[id], answer)
	q.mu.Unlock()
	return answer, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.waiting[id] = slices.DeleteFunc(q.waiting[id], func(c chan json.RawMessage) bool { return c == answer })
		if len(q.waiting[id]) == 0 {
			delete(q.waiting, id)
		}
	}
}

// answer hands an answer to those who wait for it here, and reports whether there are any.
func (q *questions) answer(id string, refusal json.RawMessage) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.waiting[id] {
		select {
		case c <- refusal:
		default: // another gateway was faster
		}
	}
	return len(q.waiting[id]) > 0
}
