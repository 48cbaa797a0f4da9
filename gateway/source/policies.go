package source

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
)

// policyFile is the file of policies as it was last read. The zero value has read
// nothing.
type policyFile struct {
	seen stamp
	sum  [sha256.Size]byte
	good []*definition.Policy // as last read without errors
	sums []definition.Sum     // of the texts of good
	err  error                // why the file cannot be used; then good is older

	unknown []string // members without an effect of the policies that the last reading found new or changed
}

// maxLogged is how many members without an effect are logged at once.
const maxLogged = 100

// takeUnknown returns the members without an effect of new policies once.
func (f *policyFile) takeUnknown() []string {
	unknown := f.unknown
	f.unknown = nil
	return unknown
}

// read reads the file if it has changed, and returns why it cannot be used.
func (f *policyFile) read(ctx context.Context, p *pace.Pacer, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && f.good == nil {
		return nil // the first policy that is saved creates it
	}
	if err == nil && f.seen.still(info) {
		return f.err
	}
	began := time.Now()
	var data []byte
	if err == nil {
		data, err = readBounded(path, maxPolicies)
	}
	f.sum, f.seen = sha256.Sum256(data), stamp{}
	if err == nil {
		err = f.parse(ctx, p, data)
	}
	if f.err = err; info != nil && ctx.Err() == nil {
		f.seen = settledStamp(info, began)
	}
	return err
}

// parse parses the policies. Those that have not changed keep their objects.
func (f *policyFile) parse(ctx context.Context, p *pace.Pacer, data []byte) error {
	members, err := splitPolicies(ctx, p, data)
	if err == nil {
		err = f.readAll(ctx, p, members)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, all := definition.ParsePolicies(data); all != nil {
		return all // its message has the position in the file
	}
	return err
}

func (f *policyFile) readAll(ctx context.Context, p *pace.Pacer, members map[string][]byte) error {
	ids := make([]string, 0, len(members))
	for id := range members {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	good, sums, problems := make([]*definition.Policy, len(ids)), make([]definition.Sum, len(ids)), make([]error, len(ids))
	unknown := make([]definition.Problems, len(ids))
	common, before := newRights(), make(map[definition.Sum]*definition.Policy, len(f.good))
	for i, sum := range f.sums {
		before[sum] = f.good[i]
		if err := p.Step(ctx); err != nil {
			return err
		}
	}
	err := pace.Each(ctx, p, len(ids), func(i int) {
		sums[i] = definition.SumOf(definition.KindPolicy, members[ids[i]])
		if good[i] = before[sums[i]]; good[i] != nil {
			return
		}
		var one []*definition.Policy
		if one, problems[i] = definition.ParsePolicies(members[ids[i]]); problems[i] == nil {
			good[i] = one[0]
			unknown[i] = good[i].UnknownMembers()
			common.share(good[i])
		}
	})
	if err = errors.Join(err, errors.Join(problems...)); err != nil {
		return err
	}
	f.good, f.sums, f.unknown = good, sums, nil
	for i, members := range unknown {
		for _, one := range members {
			if len(f.unknown) == maxLogged {
				return nil
			}
			f.unknown = append(f.unknown, fmt.Sprintf("[%q].%s", ids[i], one))
		}
	}
	return nil
}

var errTrailing = errors.New("there is text after the object of policies")

// splitPolicies returns each member of the file as an object of its own, by name.
func splitPolicies(ctx context.Context, p *pace.Pacer, data []byte) (map[string][]byte, error) {
	members := make(map[string][]byte)
	s := newSplitter(ctx, p, data)
	err := s.each(func(id string) error {
		var raw json.RawMessage
		if err := s.dec.Decode(&raw); err != nil {
			return err
		}
		name, err := json.Marshal(id)
		one := make([]byte, 0, len(name)+len(raw)+3)
		members[id] = append(append(append(append(append(one, '{'), name...), ':'), raw...), '}')
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.dec.Token(); err != io.EOF {
		return nil, errTrailing
	}
	return members, nil
}
