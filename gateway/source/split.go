package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/gateway/pace"
)

// parts are those of a bundle, its objects as they are written.
type parts struct {
	revision, digest string
	confirmedEmpty   bool
	apis, policies   []json.RawMessage
}

// split takes a bundle apart, with rests between its objects: a large one takes
// longer than a request may wait.
func split(ctx context.Context, p *pace.Pacer, data []byte) (*parts, error) {
	s := splitter{dec: json.NewDecoder(bytes.NewReader(data)), step: func() error { return p.Step(ctx) }}
	p.Begin()
	if err := s.bundle(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("reading a bundle: %w", err)
	}
	return &s.parts, nil
}

type splitter struct {
	parts
	dec  *json.Decoder
	step func() error
}

func (s *splitter) bundle() error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for s.dec.More() {
		name, err := s.dec.Token()
		if err != nil {
			return err
		}
		switch name {
		case "revision":
			err = s.dec.Decode(&s.revision)
		case "digest":
			err = s.dec.Decode(&s.digest)
		case "confirmed_empty":
			err = s.dec.Decode(&s.confirmedEmpty)
		case "apis":
			s.apis, err = s.list()
		case "policies":
			s.policies, err = s.list()
		default:
			err = s.dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return s.expect('}')
}

func (s *splitter) expect(want json.Delim) error {
	got, err := s.dec.Token()
	if err == nil && got != want {
		err = fmt.Errorf("there is %v where %v should be", got, want)
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
