package definition

import (
	"net/netip"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// maxAddresses is how many entries a list of addresses may have.
const maxAddresses = 100_000

// Addresses returns the lists of client addresses that are on: those that alone may
// call the API, and those that may not. A list that is off is nil.
func (a *API) Addresses() (allowed, blocked []netip.Prefix) {
	var f object.Faults
	return a.readAddresses(&f)
}

// readAddresses reports what is wrong with the lists to f.
func (a *API) readAddresses(f *object.Faults) (allowed, blocked []netip.Prefix) {
	switch {
	case !a.EnableIPAllowList:
	case len(a.AllowedIPs) == 0:
		f.Add("allowed_ips", "must name who may call, as enable_ip_whitelisting is true; turn that off to let everybody call")
	default:
		allowed = parseAddresses(f, "allowed_ips", a.AllowedIPs)
	}
	if a.EnableIPBlockList {
		blocked = parseAddresses(f, "blacklisted_ips", a.BlockedIPs)
	}
	return allowed, blocked
}

// parseAddresses parses a list at path. Entries that are wrong are left out.
func parseAddresses(f *object.Faults, path string, list []string) []netip.Prefix {
	if len(list) > maxAddresses {
		f.Count(path, len(list), maxAddresses)
		return nil
	}
	prefixes := make([]netip.Prefix, 0, len(list))
	for i, text := range list {
		prefix, problem := ParseAddress(text)
		if problem != "" {
			f.Add(object.Item(path, i), problem)
			continue
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes
}

const addressMessage = "must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"

// ParseAddress parses an address or a network, such as 192.0.2.7 and 2001:db8::/32.
// An IPv4 address in IPv6 form is the IPv4 address. Bits behind the network are
// cleared. problem is "" if the text is right.
func ParseAddress(text string) (prefix netip.Prefix, problem string) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return prefix, addressMessage
		}
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), ""
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return prefix, addressMessage
	}
	if address := prefix.Addr(); address.Is4In6() {
		if prefix.Bits() < 96 {
			return prefix, "must not be a network of IPv4 addresses in IPv6 form that is larger than ::ffff:0:0/96"
		}
		prefix = netip.PrefixFrom(address.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), ""
}
