package event

import (
	"context"
	"log/slog"
	"time"
)

// LogSink writes events to a log, a bounded number of each name per second: a
// client that is refused a thousand times a second must not fill a disk.
type LogSink struct {
	log   *slog.Logger
	lines map[Name]*Budget // one for each name, of which there are few
}

// A Budget is what a kind of line has left of its second. It is not safe for
// concurrent use.
type Budget struct {
	second  int64
	written int
	omitted int
}

// perSecond is how many lines of one kind are written in one second.
const perSecond = 5

// Spend counts the line of an event, and returns how many were omitted since the
// last one. ok is false when nothing is left.
func (b *Budget) Spend(e *Event) (omitted int, ok bool) {
	at := e.At
	if at.IsZero() {
		at = time.Now()
	}
	if second := at.Unix(); second != b.second {
		b.second, b.written = second, 0
	}
	if b.written == perSecond {
		b.omitted++
		return 0, false
	}
	b.written++
	omitted, b.omitted = b.omitted, 0
	return omitted, true
}

// NewLogSink returns a sink that writes to log.
func NewLogSink(log *slog.Logger) *LogSink {
	return &LogSink{log: log, lines: make(map[Name]*Budget)}
}

// Handle writes e, unless its name had its share of this second. The next line
// of that name says how many were left out.
func (s *LogSink) Handle(e Event) {
	b := s.lines[e.Name]
	if b == nil {
		b = new(Budget)
		s.lines[e.Name] = b
	}
	omitted, ok := b.Spend(&e)
	if !ok {
		return
	}
	attrs := make([]slog.Attr, 0, 5)
	attrs = append(attrs, slog.String("event", string(e.Name)))
	for _, a := range [...]slog.Attr{slog.String("api", e.API), slog.String("key", e.Key), slog.String("detail", e.Detail)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if omitted > 0 {
		attrs = append(attrs, slog.Int("omitted", omitted))
	}
	s.log.LogAttrs(context.Background(), level(e.Name), "event", attrs...)
}

func level(name Name) slog.Level {
	switch name {
	case CounterStoreDown, HostDown, BreakerTripped, CertificateExpiringSoon, CertificateExpired:
		return slog.LevelWarn
	case BreakerTriggered: // one of the other two is raised beside it
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
