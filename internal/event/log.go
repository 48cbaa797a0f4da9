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
	lines map[Name]*budget // one for each name, of which there are few
}

// budget is what a name has left of its second.
type budget struct {
	second  int64
	written int
	omitted int
}

// perSecond is how many events of one name are written in one second.
const perSecond = 5

// NewLogSink returns a sink that writes to log.
func NewLogSink(log *slog.Logger) *LogSink {
	return &LogSink{log: log, lines: make(map[Name]*budget)}
}

// Handle writes e, unless its name had its share of this second. The next line
// of that name says how many were left out.
func (s *LogSink) Handle(e Event) {
	omitted, ok := s.spend(e)
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

// spend takes one line from the budget of e's name, and tells how many events
// went unwritten since the last one.
func (s *LogSink) spend(e Event) (omitted int, ok bool) {
	at := e.At
	if at.IsZero() {
		at = time.Now()
	}
	b := s.lines[e.Name]
	if b == nil {
		b = new(budget)
		s.lines[e.Name] = b
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

func level(name Name) slog.Level {
	switch name {
	case CounterStoreDown, HostDown, BreakerTripped:
		return slog.LevelWarn
	case BreakerTriggered: // one of the other two is raised beside it
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
