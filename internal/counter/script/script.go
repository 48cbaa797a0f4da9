// Package script has the Lua scripts that count calls in a shared store, and the
// encoding of their arguments and replies.
package script

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/valkey-io/valkey-go"
)

//go:embed take.lua
var takeSource string

//go:embed adjust.lua
var adjustSource string

// A Script is Lua source and its SHA-1, by which EVALSHA finds it.
type Script struct{ source, sha string }

// Take returns the script that counts the calls of a Batch.
func Take() Script { return newScript(takeSource) }

// Adjust returns the script that makes Adjustments.
func Adjust() Script { return newScript(adjustSource) }

func newScript(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{source: source, sha: hex.EncodeToString(sum[:])}
}

// Command returns an EVALSHA of the script. keys must not change until the reply
// came.
func (s Script) Command(c valkey.Client, keys []string, packed string) valkey.Completed {
	return c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(packed).Build()
}

// Run runs the script at most once. A store that does not have it says so without
// running anything; then the source is sent.
func (s Script) Run(ctx context.Context, c valkey.Client, keys []string, packed string) (string, error) {
	reply, err := c.Do(ctx, s.Command(c, keys, packed)).ToString()
	if Missing(err) {
		return s.Send(ctx, c, keys, packed)
	}
	return reply, err
}

// Send runs the script by its source, for a store that does not have it.
func (s Script) Send(ctx context.Context, c valkey.Client, keys []string, packed string) (string, error) {
	full := c.B().Eval().Script(s.source).Numkeys(int64(len(keys))).Key(keys...).Arg(packed).Build()
	return c.Do(ctx, full).ToString()
}

// Missing reports whether a store does not have the script.
func Missing(err error) bool {
	refusal, ok := valkey.IsValkeyErr(err)
	return ok && refusal.IsNoScript()
}
