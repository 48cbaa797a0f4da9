package snapshot

import (
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/sluicegate/sluice/gateway/internalcall"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/frozen"
)

// Many have one name, and more come: what it costs goes with how many change.
func TestANameThatManyHaveIsWrittenOnce(t *testing.T) {
	const many = 20_000
	before, after := make([]*definition.API, many), make([]*definition.API, many)
	for i := range before {
		id := strconv.Itoa(i)
		before[i] = &definition.API{ID: id, Name: id, OrgID: "org"}
		after[i] = &definition.API{ID: id, Name: "same", OrgID: "org"}
	}
	all := (*frozen.Map[ids])(nil)
	write := func(old, now []*definition.API) {
		renamed := make(renames)
		for i := range old {
			renamed.add(old[i], now[i])
		}
		edit := all.Edit()
		for key, one := range renamed {
			one.write(key, edit)
		}
		all = edit.Done()
	}
	none := make([]*definition.API, many)
	write(none, before)
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	write(before, after)
	runtime.ReadMemStats(&is)
	if took := is.TotalAlloc - was.TotalAlloc; took > 64<<20 { // one list for each was 3 GB
		t.Errorf("%d MiB were allocated", took>>20)
	}
	key := internalcall.Key("org", "same")
	same, _ := all.Get(key)
	if n := len(slices.Collect(same.each())); n != many || all.Len() != 1 {
		t.Errorf("%d have the name, and there are %d names", n, all.Len())
	}
	if id, only := same.only(); only {
		t.Errorf("it is that of %s alone", id)
	}
	write(after[1:], none[1:])
	left, _ := all.Get(key)
	if id, only := left.only(); !only || id != "0" {
		t.Errorf("left are %v", left)
	}
	write(after[:1], none[:1])
	if all.Len() != 0 {
		t.Errorf("%d names are left", all.Len())
	}
}
