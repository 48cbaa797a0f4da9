package origin

import (
	"net/netip"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// maxAddresses is how many entries a list of addresses may have.
const maxAddresses = 100_000

// ParseAllowed reads the addresses that alone may call an API; none when the list
// is not on.
func ParseAllowed(on bool, list []string) ([]netip.Prefix, []object.Fault) {
	switch {
	case !on:
		return nil, nil
	case len(list) == 0:
		return nil, []object.Fault{{Path: "allowed_ips", Message: "must name who may call, as enable_ip_whitelisting is true; turn that off to let everybody call"}}
	}
	return ParseAddresses("allowed_ips", list)
}

// ParseBlocked reads the addresses that may not call an API; none when the list is
// not on.
func ParseBlocked(on bool, list []string) ([]netip.Prefix, []object.Fault) {
	if !on {
		return nil, nil
	}
	return ParseAddresses("blacklisted_ips", list)
}

// ParseAddresses reads a list of addresses and networks, such as 192.0.2.7 and
// 2001:db8::/32, at path. An IPv4 address in IPv6 form is the IPv4 address. Bits
// behind a network do not count. The prefixes have the order of the entries; those that cannot be read are left out
// and told in the faults.
func ParseAddresses(path string, list []string) ([]netip.Prefix, []object.Fault) {
	var f object.Faults
	if len(list) > maxAddresses {
		f.Count(path, len(list), maxAddresses)
		return nil, f
	}
	prefixes := make([]netip.Prefix, 0, len(list))
	for i, text := range list {
		prefix, problem := parseAddress(text)
		if problem != "" {
			f.Add(object.Item(path, i), problem)
			continue
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, f
}

const addressMessage = "must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"

func parseAddress(text string) (prefix netip.Prefix, problem string) {
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
