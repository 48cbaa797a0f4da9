package garbage

import "runtime/metrics"

// heapReader returns what reads how the heap is now. A number that this runtime
// does not tell is 0.
func heapReader() func() heap {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/frees:bytes"},
		{Name: "/gc/gogc:percent"},
	}
	return func() heap {
		metrics.Read(samples)
		var n [5]uint64
		for i := range samples {
			if samples[i].Value.Kind() == metrics.KindUint64 {
				n[i] = samples[i].Value.Uint64()
			}
		}
		return heap{collections: n[0], live: n[1], used: n[2], freed: n[3], percent: int(n[4])} // off is told as the largest number: -1
	}
}
