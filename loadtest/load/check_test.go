package load

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
)

// A check sees the head of an answer and the mark of its request, and what it
// refuses counts as wrong.
func TestAnswersAreCheckedAgainstTheMarkOfTheirRequest(t *testing.T) {
	body, _ := answer.Body([]byte("1k"))
	var mark, seen atomic.Uint64
	c := New(Plan{
		Addr: serve(t, ok), Conns: 1, Timed: true, Want: answer.Want{Status: 200, Body: body},
		Request: func(dst []byte, _ uint64) []byte { return append(dst, "GET /1k HTTP/1.1\r\nHost: a\r\n\r\n"...) },
		Mark:    func() uint64 { return mark.Add(1) },
		Check: func(at uint64, head []byte) error {
			if at != seen.Add(1) || !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) || !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
				t.Errorf("asked about mark %d as the %d-th, with the head %q", at, seen.Load(), head)
			}
			if at == 2 {
				return errors.New("the second one is not to be")
			}
			return nil
		},
	})
	defer c.Close()
	for c.Stats().Good < 2 && c.Stats().Bad < 2 {
		c.Run(t.Context(), 20*time.Millisecond)
	}
	if stats := c.Stats(); stats.Bad != 1 || c.FirstError() == nil || c.FirstError().Error() != "the second one is not to be" {
		t.Errorf("%+v, %v", stats, c.FirstError())
	}
	if took := c.Latency(); took.Count() != c.Stats().Good+1 || took.Max() <= 0 {
		t.Errorf("%d latencies of %d answers", took.Count(), c.Stats().Good+1)
	}
	if left := c.Latency(); left.Count() != 0 {
		t.Errorf("%d latencies are told twice", left.Count())
	}
}
