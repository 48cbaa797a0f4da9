package definition

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"
)

const plainDefinition = `{"api_id":"api-%06d","name":"API %d","org_id":"default","active":true,
	"auth_configs":{"authToken":{"auth_header_name":"Authorization"}},
	"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default"}}},
	"proxy":{"listen_path":"/api-%06d/","target_url":"http://127.0.0.1:9000/","strip_listen_path":true}}`

const plainSession = `{"org_id":"default","alias":"client %d","rate":0,"per":0,"quota_max":0,"quota_renewal_rate":0,
	"expires":0,"date_created":"2024-01-02T03:04:05Z","last_updated":"1700000000","apply_policies":["gold-%d"]}`

const listedSession = `{"org_id":"default","alias":"client %d","rate":5,"per":1,"quota_max":10,"quota_renewal_rate":60,
	"date_created":"2024-01-02T03:04:05Z","last_updated":"1700000000",
	"access_rights":{"api-%d":{"api_id":"api-%d","api_name":"x","versions":["Default"]}}}`

// heapOf returns the bytes that n objects made by one leave on the heap, each.
func heapOf[T any](n int, one func(i int) T) int {
	var before, after runtime.MemStats
	all := make([]T, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range all {
		all[i] = one(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(all)
	return int(after.HeapAlloc-before.HeapAlloc) / n
}

func TestObjectsAreLean(t *testing.T) {
	api := heapOf(2000, func(i int) *API {
		a, err := ParseAPI(fmt.Appendf(nil, plainDefinition, i, i, i))
		if err != nil {
			t.Fatal(err)
		}
		return a
	})
	session := heapOf(2000, func(i int) *Session {
		s, err := ParseSession(fmt.Appendf(nil, plainSession, i, i))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	listed := heapOf(2000, func(i int) *Session {
		s, err := ParseSession(fmt.Appendf(nil, listedSession, i, i, i))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	t.Logf("session with an access entry %d", listed)
	if listed > 1024 {
		t.Errorf("a session with an access entry takes %d bytes, more than 1024", listed)
	}
	t.Logf("API %d bytes (struct %d), session %d (struct %d), access entry struct %d", api,
		unsafe.Sizeof(API{}), session, unsafe.Sizeof(Session{}), unsafe.Sizeof(Access{}))
	if size := unsafe.Sizeof(API{}); size > 512 { // what is larger, a collection of garbage looks at one by one
		t.Errorf("an API is %d bytes, more than 512", size)
	}
	if api > 2048 {
		t.Errorf("a plain API takes %d bytes, more than 2048", api)
	}
	if session > 768 {
		t.Errorf("a plain session takes %d bytes, more than 768", session)
	}
}

func BenchmarkParseAPI(b *testing.B) {
	data := fmt.Appendf(nil, plainDefinition, 1, 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseAPI(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContentHash(b *testing.B) {
	a, err := ParseAPI(fmt.Appendf(nil, plainDefinition, 1, 1, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = a.ContentHash()
	}
}

func BenchmarkParseSession(b *testing.B) {
	data := fmt.Appendf(nil, plainSession, 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSession(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseBundleOf10000(b *testing.B) {
	data := []byte(`{"revision": "1", "apis": [`)
	for i := range 10_000 {
		if i > 0 {
			data = append(data, ',')
		}
		data = fmt.Appendf(data, plainDefinition, i, i, i)
	}
	data = append(data, "]}"...)
	b.ReportAllocs()
	for b.Loop() {
		if bundle, err := ParseBundle(data); err != nil || len(bundle.APIs) != 10_000 {
			b.Fatal(err)
		}
	}
}
