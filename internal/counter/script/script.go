// Package script holds what a shared store runs to count calls, and the bytes
// that go there and come back.
package script

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/counter/exchange"
	"github.com/valkey-io/valkey-go"
)

//go:embed take.lua
var takeSource string

//go:embed adjust.lua
var adjustSource string

// A Script is Lua source and the name a store knows it by.
type Script struct{ source, sha string }

// Take counts calls: it reads what a Batch packs and answers with Replies.
func Take() Script { return newScript(takeSource) }

// Adjust corrects quotas after the fact; adjust.lua says what it reads.
func Adjust() Script { return newScript(adjustSource) }

// newScript names a script as EVALSHA does; nothing else rests on the hash.
func newScript(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{source: source, sha: hex.EncodeToString(sum[:])}
}

// Command builds the call of a script that the store most likely has. keys and
// packed must stay as they are until the reply came.
func (s Script) Command(c valkey.Client, keys []string, packed string) valkey.Completed {
	return c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(packed).Build()
}

// Exchange is Run on a connection of its caller's own, to which the source is not
// sent: a store that does not have the script refuses. The reply is appended to b.
// Before exchange.ErrStale and exchange.ErrNone nothing was sent.
func (s Script) Exchange(b []byte, c *exchange.Holder, until time.Time, keys []string, packed []byte) ([]byte, error) {
	return c.Run(b, until, s.sha, keys, packed)
}

// Run calls the script, once. A store that does not have it says so before it
// runs anything: then, and only then, the source is sent.
func (s Script) Run(ctx context.Context, c valkey.Client, keys []string, packed string) (string, error) {
	reply, err := c.Do(ctx, s.Command(c, keys, packed)).ToString()
	if Missing(err) {
		return s.Send(ctx, c, keys, packed)
	}
	return reply, err
}

// Send calls the script with its source, for a store that does not have it.
func (s Script) Send(ctx context.Context, c valkey.Client, keys []string, packed string) (string, error) {
	full := c.B().Eval().Script(s.source).Numkeys(int64(len(keys))).Key(keys...).Arg(packed).Build()
	return c.Do(ctx, full).ToString()
}

// Missing tells whether a store refused a call since it does not have the script.
func Missing(err error) bool {
	if refusal, ok := errors.AsType[exchange.Refusal](err); ok {
		return strings.HasPrefix(refusal.Error(), "NOSCRIPT")
	}
	refusal, ok := valkey.IsValkeyErr(err)
	return ok && refusal.IsNoScript()
}
