package counter

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// Whatever a file holds, reading it ends, and takes in only what is framed.
func FuzzReadSavedCounters(f *testing.F) {
	quota := appendRecord(nil, "q", &cell{kind: Quota, used: 3, edge: 1 << 60, period: 1000})
	rate := appendRecord(nil, "r", &cell{kind: Rate, used: 2, edge: 1, period: 1000, newest: group{last: 1, calls: 2}})
	gone := appendRecord(nil, "q", nil)
	whole := appendFrame(appendFrame(appendFrame(appendHead(nil, 7), append(quota, rate...)), gone), nil)
	f.Add(whole, true)
	f.Add(whole[:len(whole)-3], false)
	f.Add(appendFrame(appendHead(nil, 0), []byte{1, 255, 255}), false)
	f.Add(appendFrame(appendHead(nil, 0), rate[:len(rate)-4]), false)
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
			if c.kind != kindRemoved {
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

// While nothing can be written, what changed is not piled up: keys come and go
// for as long as the disk is away.
func TestChangesAreNotPiledUpWhileNothingCanBeSaved(t *testing.T) {
	now := time.UnixMicro(1e15)
	m := NewMemory(func() time.Time { return now })
	s, err := OpenSaver(m, SaverOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.lock.Close()
	defer s.journal.Close()
	home := s.dir
	s.dir, s.unsaved = filepath.Join(home, "gone"), true
	counts := make([]Count, 1)
	for round := range 20 {
		for i := range 1000 {
			q := []Limit{{Key: fmt.Sprint(round, i), Max: 1, Period: time.Millisecond}}
			if _, err := m.Take(t.Context(), q, 1, counts); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Second)
		if s.saveAndLog(t.Context()) == nil {
			t.Fatal("saved where there is no directory")
		}
	}
	notes := 0
	for i := range m.shard {
		notes += len(m.shard[i].changed)
	}
	if notes > 1000 {
		t.Errorf("%d changes are noted, more than of one second", notes)
	}
	kept := []Limit{{Key: "kept", Max: 9, Period: time.Hour}}
	_, _ = m.Take(t.Context(), kept, 4, counts)
	_ = s.saveAndLog(t.Context())
	if s.dir = home; s.saveAndLog(t.Context()) != nil {
		t.Fatal("not saved")
	}
	_, _ = m.Take(t.Context(), kept, 1, counts)
	if err := s.saveAndLog(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := NewMemory(m.clock)
	if err := (&Saver{memory: after, dir: home, log: s.log}).load(); err != nil {
		t.Fatal(err)
	}
	if _ = after.Peek(t.Context(), kept, counts); counts[0].Remaining != 4 {
		t.Errorf("%d left after five calls of nine", counts[0].Remaining)
	}
}
