package app

import (
	"path/filepath"

	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/dialguard"
)

// newStreams returns what runs event streams, nil if they are not enabled.
func newStreams(c common) (*engine.Engine, error) {
	s := c.cfg.Streaming
	if !s.Enabled {
		return nil, nil
	}
	allowed, err := dialguard.ParseAllowed(s.AllowAddresses)
	if err != nil {
		return nil, err
	}
	dialer := &dialguard.Dialer{Allowed: allowed, Setting: "streaming.allow_addresses"}
	return engine.New(engine.Options{
		Parse: streams.Options{DefaultScheme: streams.Scheme(s.DefaultScheme), PlainHTTP: allowed.Host},
		Dial:  dialer.DialContext, WebSockets: c.cfg.Gateway.Websockets,
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
