package app

import (
	"path/filepath"

	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/internal/config"
)

// newStreams returns what runs event streams, nil if they are not enabled.
func newStreams(c common) (*engine.Engine, error) {
	s := c.cfg.Streaming
	if !s.Enabled {
		return nil, nil
	}
	parse, dial, err := streamRules(s)
	if err != nil {
		return nil, err
	}
	return engine.New(engine.Options{
		Parse: parse, Dial: dial, WebSockets: c.cfg.Gateway.Websockets,
		MaxStreams: s.MaxStreams, MaxBytes: int(s.MaxMemory), Dir: journalDir(c.cfg), Log: c.log,
	}), nil
}

// journalDir returns the directory of the journal of the in-process broker, "" for none.
func journalDir(cfg *config.Config) string {
	if !cfg.Streaming.Journal {
		return ""
	}
	return filepath.Join(cfg.DataDir, "streams")
}
