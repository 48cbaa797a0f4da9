package auth

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// cutCookie returns the first pair of a Cookie header's value without surrounding
// blanks, its name, and the remaining pairs. A pair without an equals sign is a name:
// RFC 6265 section 4.2.1 does not allow it, but browsers send it.
func cutCookie(list []byte) (pair, name, rest []byte) {
	if before, after, ok := bytes.Cut(list, []byte{';'}); !ok {
		pair = list
	} else {
		pair, rest = before, after
	}
	pair = trim(pair)
	name = pair
	if before, _, ok := bytes.Cut(pair, []byte{'='}); ok {
		name = trim(before)
	}
	return pair, name, rest
}

// cookieOf returns the value of the first cookie with a name, without surrounding
// quotes, or nil if there is none. It aliases the request.
func cookieOf(call *wire.Call, name string) []byte {
	if call.Find(wire.NameCookie) == nil {
		return nil
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name != wire.NameCookie {
			continue
		}
		for list := call.ValueOf(f); len(list) > 0; {
			var pair, written []byte
			pair, written, list = cutCookie(list)
			if string(written) == name {
				return cookieValue(pair)
			}
		}
	}
	return nil
}

// cookieValue returns what follows the equals sign of a pair.
func cookieValue(pair []byte) []byte {
	_, after, ok := bytes.Cut(pair, []byte{'='})
	if !ok {
		return nil
	}
	value := trim(after)
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}

// stripCookie removes the first cookie whose name begins with name from what is sent
// upstream, and all cookies with exactly that name, so that a credential is removed even
// if another cookie comes first.
func stripCookie(ex *pipeline.Exchange, name string) {
	call := ex.Call
	if call.Find(wire.NameCookie) == nil || !hasCookie(call, name) {
		return
	}
	out := &ex.Outgoing
	out.Rewrite("Cookie")
	taken := false
	for i := range call.Fields {
		if f := &call.Fields[i]; f.Name == wire.NameCookie {
			out.Extra = appendCookies(out.Extra, call.ValueOf(f), name, &taken)
		}
	}
}

// hasCookie reports whether there is a cookie whose name begins with name.
func hasCookie(call *wire.Call, name string) bool {
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name != wire.NameCookie {
			continue
		}
		for list := call.ValueOf(f); len(list) > 0; {
			var written []byte
			_, written, list = cutCookie(list)
			if begins(written, name) {
				return true
			}
		}
	}
	return false
}

// appendCookies appends a header line with the cookies of list that remain, or nothing
// if none does. taken says whether a cookie was removed for the beginning of its name.
func appendCookies(dst, list []byte, name string, taken *bool) []byte {
	const header = "Cookie: "
	start := len(dst)
	for len(list) > 0 {
		var pair, written []byte
		pair, written, list = cutCookie(list)
		first := !*taken && begins(written, name)
		if len(pair) == 0 || first || string(written) == name {
			*taken = *taken || first
			continue
		}
		if len(dst) == start {
			dst = append(dst, header...)
		} else {
			dst = append(dst, "; "...)
		}
		dst = append(dst, pair...)
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, "\r\n"...)
}

func begins(written []byte, name string) bool {
	return len(written) >= len(name) && string(written[:len(name)]) == name
}
