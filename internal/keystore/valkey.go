package keystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/valkey-io/valkey-go"
)

// Names in the store. In a cluster both have a bucket in braces, so that a bucket's
// epoch is on the node that has its keys: a node that lost its data lost its epochs
// too.
const (
	keyPrefix = "sluice:key:"
	epochName = "sluice:keys:epoch"
	buckets   = 256 // in a cluster
)

// Valkey holds sessions in a Valkey or Redis server, with or without sentinels, or in a
// cluster, which gateways share. A write that was acknowledged is as durable as the
// server makes it.
type Valkey struct {
	options ValkeyOptions
	timeout time.Duration
	client  atomic.Pointer[valkey.Client] // nil until the store was reached for the first time

	stop  context.CancelFunc
	group sync.WaitGroup // connectLater
}

// OpenValkey connects to the store. It is no error if the store is away: calls fail with
// ErrUnavailable until it can be reached. It is one if the store refuses the gateway.
// The caller must Close.
func OpenValkey(o ValkeyOptions) (*Valkey, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("key store: %w", err)
	}
	v := &Valkey{options: o, timeout: o.timeout()}
	ctx, stop := context.WithCancel(context.Background())
	v.stop = stop
	err := v.connect()
	if isPermanent(err) {
		stop()
		return nil, fmt.Errorf("key store: %w", err)
	}
	if err != nil {
		v.group.Go(func() { v.connectLater(ctx) })
	}
	return v, nil
}

func (v *Valkey) connect() error {
	c, err := valkey.NewClient(v.options.client())
	if err != nil {
		return err
	}
	v.client.Store(&c)
	return nil
}

// How long to wait between attempts to reach a store.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

func (v *Valkey) connectLater(ctx context.Context) {
	for wait := retryFirst; sleep.For(ctx, wait) == nil; wait = min(2*wait, retryMost) {
		if v.connect() == nil {
			return
		}
	}
}

// Close closes all connections; later calls fail.
func (v *Valkey) Close() {
	v.stop()
	v.group.Wait()
	if c := v.client.Load(); c != nil {
		(*c).Close()
	}
}

// reach returns the client, and a context bounded by the store's timeout.
func (v *Valkey) reach(ctx context.Context) (valkey.Client, context.Context, context.CancelFunc, error) {
	c := v.client.Load()
	if c == nil {
		return nil, nil, nil, fmt.Errorf("%w: it has not been reached yet", ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	return *c, ctx, cancel, nil
}

// names returns the names of a key and of the epoch of its bucket.
func (v *Valkey) names(keyHash string) (key, epoch string) {
	if !v.options.Cluster {
		return keyPrefix + keyHash, epochName
	}
	bucket := fmt.Sprintf("{%02x}", crc32.ChecksumIEEE([]byte(keyHash))%buckets)
	return keyPrefix + bucket + ":" + keyHash, epochName + ":" + bucket
}

// hashOf returns the key's hash in a name that names returned.
func (v *Valkey) hashOf(name string) string {
	hash := strings.TrimPrefix(name, keyPrefix)
	if v.options.Cluster {
		_, hash, _ = strings.Cut(hash, ":")
	}
	return hash
}

// epochs returns the names of all epochs.
func (v *Valkey) epochs() []string {
	if !v.options.Cluster {
		return []string{epochName}
	}
	all := make([]string, buckets)
	for i := range all {
		all[i] = fmt.Sprintf("%s:{%02x}", epochName, i)
	}
	return all
}

// Get implements Store.
func (v *Valkey) Get(ctx context.Context, keyHash string) (*definition.Session, error) {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	key, epoch := v.names(keyHash)
	text, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
	if valkey.IsValkeyNil(err) && v.options.Fed {
		text, err = withEpoch(ctx, c, key, epoch)
	}
	switch {
	case valkey.IsValkeyNil(err):
		return nil, ErrNotFound
	case err != nil:
		return nil, unavailable("reading", err)
	}
	return v.decode(keyHash, text)
}

// decode returns the session in a text that encode returned.
func (v *Valkey) decode(keyHash, text string) (*definition.Session, error) {
	text, err := v.options.Seal.open(keyHash, text)
	session := new(definition.Session)
	if err == nil {
		err = json.Unmarshal([]byte(text), session)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: session of key %.12s: %w", ErrUnreadable, keyHash, err)
	}
	return session, nil
}

// encode returns a session as the store has it.
func (v *Valkey) encode(keyHash string, session *definition.Session) (string, error) {
	text, err := json.Marshal(session)
	if err != nil {
		return "", fmt.Errorf("session of key %.12s: %w", keyHash, err)
	}
	return v.options.Seal.seal(keyHash, string(text)), nil
}

// withEpoch reads a key and its epoch in one command: between two commands the store
// could lose the key and be filled again.
func withEpoch(ctx context.Context, c valkey.Client, key, epoch string) (string, error) {
	both, err := c.Do(ctx, c.B().Mget().Key(key, epoch).Build()).ToArray()
	if err != nil {
		return "", err
	}
	if len(both) != 2 {
		return "", fmt.Errorf("%d answers for 2 keys", len(both))
	}
	text, err := both[0].ToString()
	if valkey.IsValkeyNil(err) && both[1].IsNil() {
		return "", ErrRefilling
	}
	return text, err
}

// Put implements Store.
func (v *Valkey) Put(ctx context.Context, keyHash string, session *definition.Session) error {
	text, err := v.encode(keyHash, session)
	if err != nil {
		return err
	}
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	key, _ := v.names(keyHash)
	if err := c.Do(ctx, c.B().Set().Key(key).Value(text).Build()).Error(); err != nil {
		return unavailable("writing", err)
	}
	return nil
}

// Delete implements Store.
func (v *Valkey) Delete(ctx context.Context, keyHash string) error {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	key, _ := v.names(keyHash)
	switch n, err := c.Do(ctx, c.B().Del().Key(key).Build()).AsInt64(); {
	case err != nil:
		return unavailable("deleting", err)
	case n == 0:
		return ErrNotFound
	}
	return nil
}

// unavailable wraps an error of the store in ErrUnavailable.
func unavailable(doing string, err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, doing, err)
}
