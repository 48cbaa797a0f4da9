package distribution

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Questions to all gateways travel as those about refused requests do. Each gateway sends
// an answer to an admin, which passes it on to the admin that asks: in pieces, since what
// PostgreSQL announces is short.

// Bounds of answers.
const (
	MaxAnswer  = 1 << 20 // bytes
	maxAnswers = 256     // that wait to be read
	pieceSize  = 7000    // characters of a message
	maxPieces  = 100     // of one answer
)

// gatherings are the questions of this admin that are open.
type gatherings struct {
	mu   sync.Mutex
	open map[string]*gathering // by the name of the question
}

// A gathering takes the answers to one question.
type gathering struct {
	answers chan []byte
	partial map[string][]string // pieces of answers that are not complete, by answer
}

// A piece is a part of an answer.
type piece struct {
	Of   string `json:"of"` // names the answer
	At   int    `json:"at"`
	All  int    `json:"all"`
	Text string `json:"text"`
}

// Ask puts a question to all gateways. take gets their answers, one at a time, and returns
// true when it needs no more. Ask returns then, or when gateways have had time to answer.
// The question has no commas.
func (s *Service) Ask(ctx context.Context, question string, take func(answer []byte) (enough bool)) error {
	name := rand.Text()[:12]
	g := &gathering{answers: make(chan []byte, maxAnswers), partial: make(map[string][]string)}
	s.gatherings.add(name, g)
	defer s.gatherings.remove(name)
	if err := s.announce(ctx, &message{ID: name, Name: name + "." + question}); err != nil {
		return err
	}
	patience := time.NewTimer(askWithin)
	defer patience.Stop()
	for {
		select {
		case answer := <-g.answers:
			if take(answer) {
				return nil
			}
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Answered passes the answer of a gateway on to the admin that asks.
func (s *Service) Answered(ctx context.Context, name string, answer []byte) error {
	if s.gatherings.take(name, answer) {
		return nil
	}
	text, err := pack(answer)
	if err != nil {
		return err
	}
	all := (len(text) + pieceSize - 1) / pieceSize
	if all > maxPieces {
		return fmt.Errorf("the answer of a gateway has %d bytes, more than can be announced", len(answer))
	}
	of := rand.Text()[:12]
	for at := range all {
		part := text[at*pieceSize : min((at+1)*pieceSize, len(text))]
		if err := s.announce(ctx, &message{ID: name, Piece: &piece{Of: of, At: at, All: all, Text: part}}); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherings) add(name string, one *gathering) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = make(map[string]*gathering)
	}
	g.open[name] = one
}

func (g *gatherings) remove(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, name)
}

// take takes an answer, and reports whether its question is this admin's.
func (g *gatherings) take(name string, answer []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.open[name]
	if one == nil {
		return false
	}
	select {
	case one.answers <- answer:
	default: // more than there are gateways
	}
	return true
}

// piece takes a part of an answer, and the answer once all parts are there.
func (g *gatherings) piece(name string, p *piece) error {
	g.mu.Lock()
	one := g.open[name]
	if one == nil {
		g.mu.Unlock()
		return nil // another admin asks
	}
	text, err := one.join(p)
	g.mu.Unlock()
	if text == "" || err != nil {
		return err
	}
	answer, err := unpack(text)
	if err != nil {
		return err
	}
	g.take(name, answer)
	return nil
}

// join adds a piece, and returns the text once it is complete.
func (g *gathering) join(p *piece) (string, error) {
	if p.All < 1 || p.All > maxPieces || p.At < 0 || p.At >= p.All || p.Text == "" {
		return "", errors.New("a piece of an answer is malformed")
	}
	parts := g.partial[p.Of]
	if parts == nil {
		if len(g.partial) >= maxAnswers {
			return "", errors.New("there are too many answers")
		}
		parts = make([]string, p.All)
		g.partial[p.Of] = parts
	}
	if len(parts) != p.All {
		return "", errors.New("the pieces of an answer do not fit together")
	}
	parts[p.At] = p.Text
	if slices.Contains(parts, "") {
		return "", nil
	}
	delete(g.partial, p.Of)
	return strings.Join(parts, ""), nil
}

// pack returns an answer as text.
func pack(answer []byte) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(answer); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.RawStdEncoding.EncodeToString(b.Bytes()), nil
}

func unpack(text string) ([]byte, error) {
	packed, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(z, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading an answer: %w", err)
	case len(answer) > MaxAnswer:
		return nil, fmt.Errorf("an answer is larger than %d bytes", MaxAnswer)
	}
	return answer, nil
}
