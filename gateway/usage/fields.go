package usage

import (
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// use is how often and when last something was read.
type use struct {
	count uint64
	last  int64 // unix seconds; 0: never
}

func (u *use) add(count uint64, last int64) {
	u.count += count
	u.last = max(u.last, last)
}

// coordinate identifies a field across schemas.
type coordinate struct{ owner, name string }

// field counts the reads of a field.
type field struct {
	all    use
	keys   map[uint32]use // by number of the key
	others use            // by keys without a row
	folded uint64         // number of the operation that was added last
}

// totals counts the reads of the fields of an API. Fields are identified by name, so
// that their counts go on when the schema changes.
type totals struct {
	most int           // limit of rows
	all  int64         // limit of the rows of all APIs
	used *atomic.Int64 // rows of all APIs

	mu      sync.Mutex
	closed  bool // the API was dropped: nothing is counted
	rows    int  // fields, and keys of fields
	fields  map[coordinate]*field
	keys    []string          // by number
	numbers map[string]uint32 // of keys
	dropped uint64            // reads of fields without a row
	folds   uint64            // operations that were added

	schema *schema.Schema // of numbered; nil at first
	byID   []*field       // fields by number in schema; nil: not looked up yet
}

func (t *totals) open(l operationLimits, used *atomic.Int64) {
	t.most, t.all, t.used = l.rows, l.all, used
	t.fields, t.numbers = make(map[coordinate]*field), make(map[string]uint32)
}

// close releases the rows for good.
func (t *totals) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used.Add(-int64(t.rows))
	t.closed, t.rows = true, 0
	t.fields, t.keys, t.numbers, t.schema, t.byID = nil, nil, nil, nil, nil
}

// release releases the schema unless it is this one.
func (t *totals) release(unless *schema.Schema) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.schema != unless {
		t.schema, t.byID = nil, nil
	}
}

// fold adds the counts of pairs to their fields.
func (t *totals) fold(all []delta) {
	if len(all) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for i := range all {
		if all[i].count > 0 {
			t.foldOne(&all[i])
		}
	}
}

func (t *totals) foldOne(d *delta) {
	if t.schema != d.schema {
		t.schema, t.byID = d.schema, make([]*field, len(d.schema.Fields))
	}
	t.folds++
	f := d.facts
	for _, id := range f.Fields {
		t.read(id, d)
	}
	for i := range f.Narrowed {
		n := &f.Narrowed[i]
		t.read(n.Field, d)
		for _, id := range f.Objects[n.Objects.Lo:n.Objects.Hi] {
			t.read(id, d)
		}
	}
}

// read adds a read of a field, once for each operation.
func (t *totals) read(id schema.FieldID, d *delta) {
	f := t.byID[id]
	if f == nil {
		if f = t.field(id); f == nil {
			t.dropped += d.count
			return
		}
		t.byID[id] = f
	}
	if f.folded == t.folds {
		return
	}
	f.folded = t.folds
	f.all.add(d.count, d.last)
	number, known := t.numbers[d.key]
	if known {
		if by, ok := f.keys[number]; ok {
			by.add(d.count, d.last)
			f.keys[number] = by
			return
		}
	}
	if !t.row() {
		f.others.add(d.count, d.last)
		return
	}
	if !known {
		number = uint32(len(t.keys))
		t.keys = append(t.keys, d.key)
		t.numbers[d.key] = number
	}
	if f.keys == nil {
		f.keys = make(map[uint32]use, 1)
	}
	f.keys[number] = use{d.count, d.last}
}

// field returns the field with a number in the schema, or nil if the rows are used
// up.
func (t *totals) field(id schema.FieldID) *field {
	row := &t.schema.Fields[id]
	owner := t.schema.Types[row.Owner].Name
	if f := t.fields[coordinate{owner, row.Name}]; f != nil {
		return f
	}
	if !t.row() {
		return nil
	}
	name := owner + "." + row.Name // a copy: names of a schema keep its whole text from being freed
	f := new(field)
	t.fields[coordinate{name[:len(owner)], name[len(owner)+1:]}] = f
	return f
}

// row takes a row, and reports whether there was one left.
func (t *totals) row() bool {
	if t.rows >= t.most {
		return false
	}
	if t.used.Add(1) > t.all {
		t.used.Add(-1)
		return false
	}
	t.rows++
	return true
}
