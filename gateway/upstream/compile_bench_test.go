package upstream

import (
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// BenchmarkCompile compiles APIs that each have an upstream of their own.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	pools := NewPools()
	defer pools.Close()
	conf := testConfig()
	i := 0
	for b.Loop() {
		i++
		def := &definition.API{ID: "api", Proxy: definition.Proxy{TargetURL: fmt.Sprintf("http://10.0.0.1:%d/%d", 1+i%65000, i)}}
		if _, err := Compile(def, pools, conf); err != nil {
			b.Fatal(err)
		}
	}
}
