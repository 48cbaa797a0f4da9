package load

import "time"

// call is one that is due or under way.
type call struct {
	due  time.Duration
	kind int32
}

// queue holds calls that wait for a connection, first in, first out. It grows to
// what is needed and keeps that.
type queue struct {
	calls []call // a ring, its length a power of two
	head  int
	n     int
}

func (q *queue) len() int { return q.n }

func (q *queue) push(c call) {
	if q.n == len(q.calls) {
		grown := make([]call, max(2*len(q.calls), 1024))
		for i := range q.n {
			grown[i] = q.calls[(q.head+i)&(len(q.calls)-1)]
		}
		q.calls, q.head = grown, 0
	}
	q.calls[(q.head+q.n)&(len(q.calls)-1)] = c
	q.n++
}

// first is the one that waits longest. There must be one.
func (q *queue) first() call { return q.calls[q.head] }

func (q *queue) pop() call {
	c := q.first()
	q.head, q.n = (q.head+1)&(len(q.calls)-1), q.n-1
	return c
}
