package gateway_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/overload"
	"github.com/sluicegate/sluice/internal/definition"
)

// A collection of garbage looks at each object, and there are very many APIs: what
// one takes, beside its definition, is counted once for all.
func TestAnAPIIsServedFromFewObjects(t *testing.T) {
	const many = 2000
	g, _ := serve(t, func(d *gateway.Deps) {
		d.Stages.Overload = overload.New(overload.Options{TargetDelay: time.Second, MaxDelay: time.Second}, nil)
	})
	b := bundle("1")
	for i := range many {
		id := fmt.Sprintf("api-%04d", i)
		b.APIs = append(b.APIs, &definition.API{ID: id, Name: id, OrgID: "org", StripAuthData: true, Proxy: definition.Proxy{
			ListenPath: "/" + id + "/", TargetURL: "http://127.0.0.1:9", StripListenPath: true,
		}})
	}
	before := objects()
	if failed := g.Apply(b); len(failed) > 0 {
		t.Fatal(failed)
	}
	each := (objects() - before) / many
	// The compiled API, its node of listen paths, its name, its meter, the stage of its
	// upstream, and two that hold its keys' grants against requests.
	if each > 7.5 {
		t.Errorf("%.1f objects per API", each)
	}
	runtime.KeepAlive(b)
}

func objects() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers let go of
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapObjects)
}
