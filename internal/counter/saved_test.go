package counter

import (
	"bytes"
	"io"
	"log/slog"
	"reflect"
	"testing"

	"github.com/sluicegate/sluice/internal/counter/frames"
)

// Whatever a file holds, reading it ends, and takes in only what is framed.
func FuzzReadSavedCounters(f *testing.F) {
	quota := appendRecord(nil, "q", &cell{kind: Quota, used: 3, edge: 1 << 60, period: 1000})
	rate := appendRecord(nil, "r", &cell{kind: Rate, used: 2, edge: 1, period: 1000, newest: group{1, 2}})
	gone := appendRecord(nil, "q", nil)
	whole := frames.AppendFrame(frames.AppendFrame(frames.AppendFrame(frames.AppendHead(nil, 7), append(quota, rate...)), gone), nil)
	f.Add(whole, true)
	f.Add(whole[:len(whole)-3], false)
	f.Add(frames.AppendFrame(frames.AppendHead(nil, 0), []byte{1, 255, 255}), false)
	f.Add(frames.AppendFrame(frames.AppendHead(nil, 0), rate[:len(rate)-4]), false)
	f.Fuzz(func(t *testing.T, file []byte, full bool) {
		m := NewMemory(nil)
		s := &Saver{memory: m, log: slog.New(slog.DiscardHandler)}
		s.read(bytes.NewReader(file), full)
		// the records alone, as if the checksum were right
		for rest := file; len(rest) > 0; {
			key, c, next, err := readRecord(rest)
			if err != nil {
				break
			}
			if c.kind != savedGone {
				packed := appendRecord(nil, key, c)
				again, same, _, err := readRecord(packed)
				if err != nil || again != key || !reflect.DeepEqual(same, c) {
					t.Fatalf("record %x packed again is %x, which reads %+v: %v", rest[:len(rest)-len(next)], packed, same, err)
				}
			}
			m.restore(key, c, 1)
			rest = next
		}
		_, _, _ = s.read(io.LimitReader(bytes.NewReader(file), 40), full)
	})
}
