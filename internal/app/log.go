package app

import (
	"io"
	"log/slog"
	"os"

	"github.com/sluicegate/sluice/internal/config"
)

// newLog returns the configured log.
func newLog(w io.Writer, conf config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(conf.Level)); err != nil {
		level = slog.LevelInfo // the configuration was checked when it was read
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}
	if conf.Format == "text" || conf.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// withUnit writes durations with units instead of nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
