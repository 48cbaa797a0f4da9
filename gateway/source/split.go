package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
)

// parts are the members of a bundle, with objects as raw JSON.
type parts struct {
	revision, digest string
	confirmedEmpty   bool
	caches           map[string]int64
	secrets          definition.Secrets
	apis, policies   []json.RawMessage
}

// split parses the outer level of a bundle. It pauses between objects, since a large
// bundle takes longer than a request may wait.
func split(ctx context.Context, p *pace.Pacer, data []byte) (*parts, error) {
	b, s := new(parts), newSplitter(ctx, p, data)
	err := s.each(func(name string) (err error) {
		switch name {
		case "revision":
			err = s.dec.Decode(&b.revision)
		case "digest":
			err = s.dec.Decode(&b.digest)
		case "confirmed_empty":
			err = s.dec.Decode(&b.confirmedEmpty)
		case "caches":
			err = s.dec.Decode(&b.caches)
		case "secrets":
			err = s.dec.Decode(&b.secrets)
		case "apis":
			b.apis, err = s.list()
		case "policies":
			b.policies, err = s.list()
		default:
			err = s.dec.Decode(new(json.RawMessage))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("reading a bundle: %w", err)
	}
	return b, err
}

// splitDelta is split for a delta.
func splitDelta(ctx context.Context, p *pace.Pacer, data []byte) (*definition.Delta, error) {
	d, s := new(definition.Delta), newSplitter(ctx, p, data)
	err := s.each(func(name string) (err error) {
		switch name {
		case "revision":
			err = s.dec.Decode(&d.Revision)
		case "digest":
			err = s.dec.Decode(&d.Digest)
		case "confirmed_empty":
			err = s.dec.Decode(&d.ConfirmedEmpty)
		case "caches":
			err = s.dec.Decode(&d.Caches)
		case "secrets":
			err = s.dec.Decode(&d.Secrets)
		case "apis":
			d.APIs, err = s.members()
		case "policies":
			d.Policies, err = s.members()
		default:
			err = s.dec.Decode(new(json.RawMessage))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("reading a delta: %w", err)
	}
	return d, err
}

type splitter struct {
	dec  *json.Decoder
	step func() error
}

func newSplitter(ctx context.Context, p *pace.Pacer, data []byte) *splitter {
	p.Begin()
	return &splitter{dec: json.NewDecoder(bytes.NewReader(data)), step: func() error { return p.Step(ctx) }}
}

// each calls read for every member of an object; read must decode its value.
func (s *splitter) each(read func(name string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for s.dec.More() {
		name, err := s.dec.Token()
		if err != nil {
			return err
		}
		if err := read(fmt.Sprint(name)); err != nil {
			return err
		}
		if err := s.step(); err != nil {
			return err
		}
	}
	return s.expect('}')
}

func (s *splitter) members() (map[string]json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	return all, s.each(func(name string) error {
		var one json.RawMessage
		err := s.dec.Decode(&one)
		all[name] = one
		return err
	})
}

func (s *splitter) expect(want json.Delim) error {
	got, err := s.dec.Token()
	if err == nil && got != want {
		err = fmt.Errorf("found %v instead of %v", got, want)
	}
	return err
}

func (s *splitter) list() ([]json.RawMessage, error) {
	if err := s.expect('['); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for s.dec.More() {
		var one json.RawMessage
		if err := s.dec.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	return all, s.expect(']')
}
