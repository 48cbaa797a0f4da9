package definition

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func TestFaultsOfCORSNameTheirField(t *testing.T) {
	for body, want := range map[string]string{
		`"allowed_origins": ["https://a", "app.example"]`:                                   "allowed_origins[1]: must be an origin such as",
		`"allowed_origins": ["https://a/"]`:                                                 "allowed_origins[0]: must be an origin",
		`"allowed_origins": ["https://*.a.*"]`:                                              "allowed_origins[0]: must be an origin",
		`"allowed_origins": ["https://a b"]`:                                                "allowed_origins[0]: must be an origin",
		`"allowed_origins": ["https://a\r\nb"]`:                                             "allowed_origins[0]: must be an origin",
		`"allowed_origins": ["://a"]`:                                                       "allowed_origins[0]: must be an origin",
		`"allow_credentials": true`:                                                         "allow_credentials: must not be true for every origin",
		`"allow_credentials": true, "allowed_origins": ["*"]`:                               "allow_credentials: must not be true for every origin",
		`"allow_credentials": true, "allowed_origins": ["https://*"]`:                       "allowed_origins[0]: must not be every host",
		`"allow_credentials": true, "allowed_origins": ["null"]`:                            `allowed_origins[0]: must not be "null"`,
		`"allowed_origins": ["a://b"], "allow_credentials": true, "exposed_headers": ["*"]`: "exposed_headers: must name the headers",
		`"allowed_methods": ["get"]`:                                                        "allowed_methods[0]: must be a method in upper case",
		`"allowed_headers": ["a:b"]`:                                                        "allowed_headers[0]: must be a header name",
		`"exposed_headers": ["a\nb"]`:                                                       "exposed_headers[0]: must be a header name",
		`"max_age": -1`:                                                                     "max_age: must be from 0 to 86400",
		`"max_age": "5"`:                                                                    "max_age: must be a whole number",
	} {
		_, faults := checked(`{"enable": true, `+body+`}`, (*CORS).check)
		if got := joined(faults); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
		if _, faults := checked(`{"enable": false, `+body+`}`, (*CORS).check); len(faults) > 0 && !strings.Contains(want, "whole number") {
			t.Errorf("%s: told although it is off: %s", body, joined(faults))
		}
	}
	if _, faults := checked(`{"enable": "yes"}`, (*CORS).check); !strings.Contains(joined(faults), "enable: must be true or false") {
		t.Error(joined(faults))
	}
}

func TestCORSIsReadWithWhatHoldsByDefault(t *testing.T) {
	c, faults := checked(`{"enable": true, "debug": true}`, (*CORS).check)
	if len(faults) > 0 || fmt.Sprint(c.Origins(), c.Methods()) != "[*] [GET HEAD POST]" || len(c.Headers()) != 4 {
		t.Errorf("%+v %s", c, joined(faults))
	}
	c, faults = checked(`{"enable": true, "allowed_origins": ["https://*.a.example", "http://localhost:*", "http://[::1]:80", "null", "chrome-extension://abc"], "max_age": 24}`, (*CORS).check)
	if len(faults) > 0 || len(c.Origins()) != 5 {
		t.Errorf("%+v %s", c, joined(faults))
	}
}

func parseList(path string, list []string) ([]netip.Prefix, []object.Fault) {
	var f object.Faults
	prefixes := parseAddresses(&f, path, list)
	return prefixes, f
}

func TestAddressesAreRead(t *testing.T) {
	prefixes, faults := parseList("allowed_ips", []string{"192.0.2.7", "10.1.2.3/8", "2001:db8::1", "2001:db8::/32", "::ffff:192.0.2.0/120", "::ffff:192.0.2.9"})
	if got := fmt.Sprint(prefixes); len(faults) > 0 || got != "[192.0.2.7/32 10.0.0.0/8 2001:db8::1/128 2001:db8::/32 192.0.2.0/24 192.0.2.9/32]" {
		t.Errorf("%s %s", got, joined(faults))
	}
	prefixes, faults = parseList("allowed_ips", []string{"", "a", "10.0.0.0/33", "fe80::1%eth0", "::ffff:0:0/64", "10.0.0.1-10.0.0.9", "::1"})
	if len(prefixes) != 1 || len(faults) != 6 || !strings.HasPrefix(joined(faults), "allowed_ips[0]: must be an address or a network") {
		t.Errorf("%v %s", prefixes, joined(faults))
	}
	if _, faults = parseList("a", make([]string, maxAddresses+1)); len(faults) != 1 {
		t.Errorf("%d faults", len(faults))
	}
}

func TestListsAreReadWhenTheyAreOn(t *testing.T) {
	wrong := []string{"x"}
	for _, c := range []struct {
		api  API
		want string
	}{
		{API{AllowedIPs: wrong, BlockedIPs: wrong}, ""},
		{API{EnableIPAllowList: true}, "allowed_ips: must name who may call"},
		{API{EnableIPBlockList: true, BlockedIPs: wrong}, "blacklisted_ips[0]: "},
		{API{EnableIPBlockList: true}, ""},
	} {
		var f object.Faults
		allowed, blocked := c.api.readAddresses(&f)
		if got := joined(f); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || len(allowed)+len(blocked) > 0 {
			t.Errorf("%+v: %s", c.api, got)
		}
	}
}

func FuzzAddressesThatAreReadAreWholeNetworks(f *testing.F) {
	f.Add("10.0.0.0/8")
	f.Add("::ffff:10.0.0.0/104")
	f.Fuzz(func(t *testing.T, text string) {
		prefixes, faults := parseList("a", []string{text})
		if len(prefixes)+len(faults) != 1 {
			t.Fatalf("%q: %v %s", text, prefixes, joined(faults))
		}
		for _, p := range prefixes {
			if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Zone() != "" {
				t.Fatalf("%q: %v", text, p)
			}
		}
	})
}
