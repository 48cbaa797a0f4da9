package source

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/race"
)

// objects returns how many there are.
func objects() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers let go of
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapObjects)
}

// A collection of garbage looks at each object, and there are as many files as APIs.
func TestAFileIsKeptInFewObjects(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector's build allocates differently")
	}
	const files = 2000
	f := newFolder(t, false)
	long := time.Now().Add(-time.Hour)
	for i := range files {
		name := fmt.Sprintf("api-%04d.json", i)
		f.write(name, strings.Replace(goodAPI, `"a"`, fmt.Sprintf(`"api-%04d"`, i), 1))
		if err := os.Chtimes(filepath.Join(f.dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	before := objects()
	b := f.src.mustRead(t)
	each := (objects() - before) / files
	// The definition, its texts, and three or four for the member that is not known.
	if each > 6.5 {
		t.Errorf("%.1f objects per file", each)
	}
	runtime.KeepAlive(b)
	runtime.KeepAlive(f)
}

func TestAFileThatReplacesAnotherIsRead(t *testing.T) {
	f := newFolder(t, false)
	long := time.Now().Add(-time.Hour)
	put := func(name string) {
		f.write("new", strings.Replace(goodAPI, `"A"`, `"`+name+`"`, 1))
		path := filepath.Join(f.dir, "new")
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, filepath.Join(f.dir, "a.json")); err != nil {
			t.Fatal(err)
		}
	}
	put("B")
	first := f.src.mustRead(t)
	if again := f.src.mustRead(t); again.APIs[0] != first.APIs[0] {
		t.Error("a file that did not change was read again")
	}
	put("C") // as long, and changed at the same time
	if second := f.src.mustRead(t); second.APIs[0].Name != "C" {
		t.Errorf("%+v", second.APIs[0])
	}
}
