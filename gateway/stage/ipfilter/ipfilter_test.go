package ipfilter

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func exchange(t testing.TB, request string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte(request+"\r\n"), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	ex.Version = &pipeline.Version{}
	return ex
}

func stageOf(t testing.TB, def *definition.API) pipeline.Stage {
	t.Helper()
	return Compile(def)
}

func TestCallersAreLetPassByTheirAddress(t *testing.T) {
	allow := definition.API{EnableIPAllowList: true, AllowedIPs: []string{"192.0.2.7", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "::ffff:198.51.100.0/120", "203.0.113.9/24"}}
	block := definition.API{EnableIPBlockList: true, BlockedIPs: []string{"10.9.0.0/16", "2001:db8:9::1"}}
	both := allow
	both.EnableIPBlockList, both.BlockedIPs = true, block.BlockedIPs
	everybody := definition.API{EnableIPAllowList: true, AllowedIPs: []string{"0.0.0.0/0", "::/0"}}
	for _, c := range []struct {
		name   string
		def    definition.API
		passes []string
		not    []string
	}{
		{
			"allow", allow,
			[]string{"192.0.2.7", "10.0.0.0", "10.255.255.255", "10.1.2.3", "10.2.0.0", "::ffff:10.1.1.1", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::1%eth0", "198.51.100.255", "203.0.113.1"},
			[]string{"192.0.2.6", "192.0.2.8", "9.255.255.255", "11.0.0.0", "2001:db9::", "2001:db7:ffff::", "::1", "198.51.101.0", "0.0.0.0", "255.255.255.255", ""},
		},
		{"block", block, []string{"10.8.255.255", "10.10.0.0", "2001:db8:9::2", "::1", ""}, []string{"10.9.0.0", "10.9.255.255", "::ffff:10.9.1.1", "2001:db8:9::1"}},
		{"both", both, []string{"10.8.0.1", "2001:db8::2"}, []string{"10.9.0.1", "2001:db8:9::1", "192.0.2.6"}},
		{"everybody", everybody, []string{"0.0.0.0", "255.255.255.255", "::", "ffff::"}, nil},
	} {
		stage := stageOf(t, &c.def)
		for i, text := range slices.Concat(c.passes, c.not) {
			ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n")
			if text != "" {
				ex.Client = netip.MustParseAddr(text)
			}
			want := pipeline.Next
			if i >= len(c.passes) {
				want = pipeline.Rejected
			}
			got := stage.Handle(ex)
			if got != want {
				t.Errorf("%s: %s: verdict %d, want %d", c.name, text, got, want)
			}
			if got == pipeline.Rejected && (ex.Rejection.Status != 403 || ex.Rejection.Message != "access from this IP has been disallowed") {
				t.Errorf("%s: %+v", c.name, ex.Rejection)
			}
		}
	}
}

func TestListsThatAreOffCostNothing(t *testing.T) {
	for _, def := range []definition.API{
		{}, {AllowedIPs: []string{"x"}, BlockedIPs: []string{"y"}}, {EnableIPBlockList: true},
	} {
		if stageOf(t, &def) != nil {
			t.Errorf("%+v: compiled", def)
		}
	}
	ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n")
	ex.Client = netip.MustParseAddr("192.0.2.7")
	if stageOf(t, &definition.API{EnableIPAllowList: true}).Handle(ex) != pipeline.Rejected {
		t.Error("a list without entries let a client pass")
	}
}

func FuzzSetsAgreeWithTheirPrefixes(f *testing.F) {
	f.Add([]byte{10, 0, 0, 0, 8, 10, 1, 0, 0, 16, 192, 0, 2, 7, 32}, uint32(0x0a010203))
	f.Fuzz(func(t *testing.T, raw []byte, n uint32) {
		var prefixes []netip.Prefix
		for ; len(raw) >= 5; raw = raw[5:] {
			four := netip.AddrFrom4([4]byte(raw[:4]))
			bits := int(raw[4] % 33)
			prefixes = append(prefixes, netip.PrefixFrom(four, bits).Masked())
			six := four.As16()
			six[10], six[11] = 0, 0 // no IPv4 in disguise
			six[0] = 0x20
			prefixes = append(prefixes, netip.PrefixFrom(netip.AddrFrom16(six), 96+bits).Masked())
		}
		s := newSet(prefixes)
		four := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		six := four.As16()
		six[10], six[11], six[0] = 0, 0, 0x20
		for _, a := range []netip.Addr{four, netip.AddrFrom16(six)} {
			want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
			if s.has(a) != want {
				t.Fatalf("%v in %v: want %t", a, prefixes, want)
			}
		}
	})
}

func BenchmarkAddresses(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list := make([]string, n)
			for i := range list {
				list[i] = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
			}
			stage, ex := stageOf(b, &definition.API{EnableIPBlockList: true, BlockedIPs: list}), exchange(b, "GET /a HTTP/1.1\r\nHost: a\r\n")
			ex.Client = netip.MustParseAddr("10.200.1.1")
			b.ReportAllocs()
			for b.Loop() {
				stage.Handle(ex)
			}
		})
	}
}

func TestExplanationsNameTheEntry(t *testing.T) {
	stage := stageOf(t, &definition.API{
		EnableIPAllowList: true, AllowedIPs: []string{"192.0.2.7", "10.0.0.0/8"}, EnableIPBlockList: true, BlockedIPs: []string{"10.9.0.0/16"},
	})
	for text, want := range map[string]string{
		"10.1.1.1": "[{allowed_ips 10.0.0.0/8 10.1.1.1 definition} {blacklisted_ips none of 1 10.1.1.1 definition}] calls from 10.1.1.1 may pass",
		"10.9.1.1": "[{allowed_ips 10.0.0.0/8 10.9.1.1 definition} {blacklisted_ips 10.9.0.0/16 10.9.1.1 definition}] 10.9.1.1 is on the list of those who may not call",
		"1.1.1.1":  "[{allowed_ips none of 2 1.1.1.1 definition} {blacklisted_ips none of 1 1.1.1.1 definition}] 1.1.1.1 is not on the list of those who may call",
	} {
		ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n")
		ex.Client = netip.MustParseAddr(text)
		f := pipeline.Finding{Verdict: stage.Handle(ex)}
		stage.(pipeline.Explainer).Explain(ex, &f)
		if got := fmt.Sprint(f.Facts, " ", f.Said); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestFilterDoesNotAllocate(t *testing.T) {
	stage := stageOf(t, &definition.API{EnableIPBlockList: true, BlockedIPs: []string{"10.0.0.0/8", "2001:db8::/32"}})
	ex := exchange(t, "GET /a HTTP/1.1\r\nHost: a\r\n")
	ex.Client = netip.MustParseAddr("2001:db7::1")
	if n := testing.AllocsPerRun(100, func() { stage.Handle(ex) }); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}
