package origin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func told(faults []object.Fault) string {
	var all []string
	for _, f := range faults {
		all = append(all, f.Path+": "+f.Message)
	}
	return strings.Join(all, "\n")
}

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
		_, faults := ParseCORS(json.RawMessage(`{"enable": true, ` + body + `}`))
		if got := told(faults); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
		if _, faults := ParseCORS(json.RawMessage(`{"enable": false, ` + body + `}`)); len(faults) > 0 && !strings.Contains(want, "whole number") {
			t.Errorf("%s: told although it is off: %s", body, told(faults))
		}
	}
	if _, faults := ParseCORS(json.RawMessage(`{"enable": "yes"}`)); !strings.Contains(told(faults), "enable: must be true or false") {
		t.Error(told(faults))
	}
}

func TestCORSIsReadWithWhatHoldsByDefault(t *testing.T) {
	c, faults := ParseCORS(json.RawMessage(`{"enable": true, "debug": true}`))
	if len(faults) > 0 || !c.AnyOrigin() || fmt.Sprint(c.AllowedMethods) != "[GET HEAD POST]" || len(c.AllowedHeaders) != 4 {
		t.Errorf("%+v %s", c, told(faults))
	}
	c, faults = ParseCORS(json.RawMessage(`{"enable": true, "allowed_origins": ["https://*.a.example", "http://localhost:*", "http://[::1]:80", "null", "chrome-extension://abc"], "max_age": 24}`))
	if len(faults) > 0 || c.AnyOrigin() {
		t.Errorf("%+v %s", c, told(faults))
	}
}

func TestAddressesAreRead(t *testing.T) {
	prefixes, faults := ParseAddresses("allowed_ips", []string{"192.0.2.7", "10.1.2.3/8", "2001:db8::1", "2001:db8::/32", "::ffff:192.0.2.0/120", "::ffff:192.0.2.9"})
	if got := fmt.Sprint(prefixes); len(faults) > 0 || got != "[192.0.2.7/32 10.0.0.0/8 2001:db8::1/128 2001:db8::/32 192.0.2.0/24 192.0.2.9/32]" {
		t.Errorf("%s %s", got, told(faults))
	}
	prefixes, faults = ParseAddresses("allowed_ips", []string{"", "a", "10.0.0.0/33", "fe80::1%eth0", "::ffff:0:0/64", "10.0.0.1-10.0.0.9", "::1"})
	if len(prefixes) != 1 || len(faults) != 6 || !strings.HasPrefix(told(faults), "allowed_ips[0]: must be an address or a network") {
		t.Errorf("%v %s", prefixes, told(faults))
	}
	if _, faults = ParseAddresses("a", make([]string, maxAddresses+1)); len(faults) != 1 {
		t.Errorf("%d faults", len(faults))
	}
}

func TestListsAreReadWhenTheyAreOn(t *testing.T) {
	wrong := []string{"x"}
	if _, faults := ParseAllowed(false, wrong); len(faults) > 0 {
		t.Error(told(faults))
	}
	if _, faults := ParseBlocked(false, wrong); len(faults) > 0 {
		t.Error(told(faults))
	}
	if _, faults := ParseAllowed(true, nil); !strings.Contains(told(faults), "allowed_ips: must name who may call") {
		t.Error(told(faults))
	}
	if _, faults := ParseBlocked(true, wrong); !strings.HasPrefix(told(faults), "blacklisted_ips[0]: ") {
		t.Error(told(faults))
	}
	if prefixes, faults := ParseBlocked(true, nil); len(prefixes)+len(faults) > 0 {
		t.Error(told(faults))
	}
}

func FuzzAddressesThatAreReadAreWholeNetworks(f *testing.F) {
	f.Add("10.0.0.0/8")
	f.Add("::ffff:10.0.0.0/104")
	f.Fuzz(func(t *testing.T, text string) {
		prefixes, faults := ParseAddresses("a", []string{text})
		if len(prefixes)+len(faults) != 1 {
			t.Fatalf("%q: %v %s", text, prefixes, told(faults))
		}
		for _, p := range prefixes {
			if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Zone() != "" {
				t.Fatalf("%q: %v", text, p)
			}
		}
	})
}
