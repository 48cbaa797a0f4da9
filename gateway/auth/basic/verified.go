package basic

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// sum stands for a user and a password: a keyed hash under a secret of this
// process, so that what is in memory is of no use to whoever reads it.
type sum [sha256.Size]byte

// macs makes sums without allocating.
type macs struct{ pool sync.Pool }

func newMacs() *macs {
	m := new(macs)
	var secret [sha256.Size]byte
	rand.Read(secret[:]) // never fails: the runtime ends the process first
	m.pool.New = func() any {
		text := append(make([]byte, 0, 256), secret[:]...)
		return &text
	}
	return m
}

// maxText is the longest text that is kept for the next sum, in bytes.
const maxText = 8 << 10

// of returns the sum of a user and a password. The secret stands before them
// rather than around them, as in HMAC, which takes three times as long: the
// difference is what could be appended to a text whose sum is known, and no sum
// leaves this process. The length keeps two pairs from being written alike.
func (m *macs) of(user, password []byte) sum {
	text := m.pool.Get().(*[]byte)
	b := binary.LittleEndian.AppendUint32((*text)[:sha256.Size], uint32(len(user)))
	b = append(append(b, user...), password...)
	s := sum(sha256.Sum256(b))
	clear(b[sha256.Size:])
	if cap(b) <= maxText {
		*text = b
		m.pool.Put(text)
	}
	return s
}

// parts is how many locks the table of verified passwords is spread over.
const parts = 16

// table knows which passwords were right, and for which stored hash.
type table struct {
	part [parts]part
	most int // entries in each part
}

type part struct {
	mu    sync.RWMutex
	bySum map[sum]proof
}

// proof says that a password was right for what was stored.
type proof struct {
	stored string
	at     time.Duration
}

func newTable(size int) *table {
	t := &table{most: (size + parts - 1) / parts}
	for i := range t.part {
		t.part[i].bySum = make(map[sum]proof)
	}
	return t
}

func (t *table) of(s *sum) *part { return &t.part[s[0]%parts] }

// find returns when a password was last proven right for what is stored now.
func (t *table) find(s *sum, stored string) (at time.Duration, ok bool) {
	p := t.of(s)
	p.mu.RLock()
	found, ok := p.bySum[*s]
	p.mu.RUnlock()
	return found.at, ok && found.stored == stored
}

// put notes a proof, in place of any other when there is no room.
func (t *table) put(s *sum, with proof) {
	p := t.of(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.bySum[*s]; !known && len(p.bySum) >= t.most {
		for other := range p.bySum {
			delete(p.bySum, other)
			break
		}
	}
	p.bySum[*s] = with
}

// sweep forgets what was proven before oldest.
func (t *table) sweep(oldest time.Duration) {
	for i := range t.part {
		p := &t.part[i]
		p.mu.Lock()
		for s, found := range p.bySum {
			if found.at < oldest {
				delete(p.bySum, s)
			}
		}
		p.mu.Unlock()
	}
}

// len returns how many proofs there are.
func (t *table) len() int {
	n := 0
	for i := range t.part {
		p := &t.part[i]
		p.mu.RLock()
		n += len(p.bySum)
		p.mu.RUnlock()
	}
	return n
}
