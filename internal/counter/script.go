package counter

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/valkey-io/valkey-go"
)

//go:embed script.lua
var takeSource string

//go:embed adjust.lua
var adjustSource string

// A script is Lua source and the name a store knows it by.
type script struct{ source, sha string }

// newScript names a script as EVALSHA does; nothing else rests on the hash.
func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// command builds the call of a script that the store most likely has. keys and
// packed must stay as they are until the reply came.
func (s script) command(c valkey.Client, keys []string, packed string) valkey.Completed {
	return c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(packed).Build()
}

// run calls the script, once. A store that does not have it says so before it
// runs anything: then, and only then, the source is sent.
func (s script) run(ctx context.Context, c valkey.Client, keys []string, packed string) (string, error) {
	reply, err := c.Do(ctx, s.command(c, keys, packed)).ToString()
	if missing(err) {
		return s.send(ctx, c, keys, packed)
	}
	return reply, err
}

func (s script) send(ctx context.Context, c valkey.Client, keys []string, packed string) (string, error) {
	full := c.B().Eval().Script(s.source).Numkeys(int64(len(keys))).Key(keys...).Arg(packed).Build()
	return c.Do(ctx, full).ToString()
}

func missing(err error) bool {
	refusal, ok := valkey.IsValkeyErr(err)
	return ok && refusal.IsNoScript()
}

// Sizes of what script.lua reads and writes.
const (
	itemCalls  = 4 // an item's head begins with its numbers of calls
	itemHead   = itemCalls + 1
	itemLimit  = 25
	replyHead  = 3
	replyLimit = 16
)

const (
	refusedNone    = 255
	refusedForeign = 254
)

// packHead writes how many calls an item asks for and in what portions; with
// none, the portion does not matter and must not be 0.
func packHead(b []byte, calls, portion int) {
	binary.LittleEndian.PutUint16(b, uint16(calls))
	binary.LittleEndian.PutUint16(b[2:], uint16(max(portion, 1)))
}

// appendItem packs one item of script.lua: calls, each portion of them all or
// nothing.
func appendItem(b []byte, calls, portion int, limits []Limit) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, byte(len(limits)))
	packHead(b[at:], calls, portion)
	for i := range limits {
		l := &limits[i]
		b = append(b, byte(l.Kind))
		b = appendFloat(b, l.Max)
		b = appendFloat(b, micros(l.Period))
		b = appendFloat(b, groupSize(l.Max))
	}
	return b
}

func appendFloat(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

// limitOf reads the kind and maximum of limit i back from a packed item.
func limitOf(packed []byte, i int) (Kind, int64) {
	at := packed[itemHead+i*itemLimit:]
	return Kind(at[0]), int64(math.Float64frombits(binary.LittleEndian.Uint64(at[1:])))
}

func replySize(limits int) int { return replyHead + limits*replyLimit }

// A reply is what script.lua answers to one item.
type reply string

func (r reply) granted() int { return int(r[0]) | int(r[1])<<8 }

func (r reply) refused() int { return int(r[2]) }

// limit returns what was free before the item under limit i, and its reset.
func (r reply) limit(i int) (free, reset int64) {
	at := replyHead + i*replyLimit
	return floatAt(string(r), at), floatAt(string(r), at+8)
}

func floatAt(s string, at int) int64 {
	var bits uint64
	for i := range 8 {
		bits |= uint64(s[at+i]) << (8 * i)
	}
	return int64(math.Float64frombits(bits))
}

// fill writes what one caller of an item reads who asked for calls, or with none
// only looks; place is how many calls of the item come before these. It returns
// the refused index or -1. now, in unix milliseconds, dates what the store told
// as a distance.
func (r reply) fill(place, calls int, now int64, limits []Limit, counts []Count) (int, error) {
	granted, refused := r.granted(), r.refused()
	if refused == refusedForeign {
		return 0, ErrNotCounter
	}
	taken := min(place+calls, granted) // when refused: what the others of the item left
	if calls == 0 || place < granted { // granted are whole portions, so all of these calls or none
		refused = -1
	}
	for i := range limits {
		free, reset := r.limit(i)
		if limits[i].Kind == Rate && reset > 0 {
			reset += now
		}
		counts[i] = Count{Remaining: max(free-int64(taken), 0), ResetAt: max(reset, 0)}
	}
	return refused, nil
}
