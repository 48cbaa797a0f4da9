package forwardedfor

import (
	"net/netip"
	"testing"
)

var nets = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

func TestProxiesAreTrustedByNetwork(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": true, "128.0.0.1": false, "::1": false, "fd00::5": true} {
		if got := Trust(netip.MustParseAddr(addr), nets); got != want {
			t.Errorf("%s: %t", addr, got)
		}
	}
}

func TestTheCallerIsTheLastAddressThatIsNotTrusted(t *testing.T) {
	for list, want := range map[string]struct {
		client string
		more   bool
	}{
		"192.0.2.1":                         {"192.0.2.1", false},
		"198.51.100.9, 192.0.2.1":           {"192.0.2.1", false},
		"192.0.2.1,\t10.1.1.1:99 , fd00::2": {"192.0.2.1", false},
		"[2001:db8::1]:443":                 {"2001:db8::1", false},
		"::ffff:192.0.2.1":                  {"192.0.2.1", false},
		"10.1.1.1, 10.2.2.2":                {"10.1.1.1", true},
		"192.0.2.1, unknown":                {"10.0.0.1", false},
		"192.0.2.1, nobody, 10.2.2.2":       {"10.2.2.2", false},
		"192.0.2.1:x":                       {"10.0.0.1", false},
		"fe80::1%eth0":                      {"10.0.0.1", false},
		"192.0.2.1:":                        {"10.0.0.1", false},
		"[::1":                              {"10.0.0.1", false},
		"":                                  {"10.0.0.1", false},
	} {
		client, more := Behind(netip.MustParseAddr("10.0.0.1"), []byte(list), nets)
		if client.String() != want.client || more != want.more {
			t.Errorf("%q: %v, %t", list, client, more)
		}
	}
}

// FuzzBehind reads any chain of proxies without falling over.
func FuzzBehind(f *testing.F) {
	for _, s := range []string{"1.1.1.1", "[::1]:80, 10.0.0.1", "[", "]:", ",,", "fe80::1%x", ":::::::"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		addr, more := Behind(netip.MustParseAddr("10.0.0.1"), list, nets)
		if !addr.IsValid() || addr.Zone() != "" || addr.Is4In6() || more && !Trust(addr, nets) {
			t.Errorf("%q: %v, %t", list, addr, more)
		}
	})
}
