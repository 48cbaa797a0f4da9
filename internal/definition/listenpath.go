package definition

import (
	"regexp"
	"strconv"
	"strings"
)

const (
	maxListen   = 4096 // bytes of a listen path
	maxSegments = 64
	maxParams   = 16
)

// reserved are the paths that the gateway answers itself, before any API.
// Those with below set take everything beneath them too.
var reserved = []struct {
	path  string
	below bool
}{{"/svc", true}, {"/hello", false}, {"/ready", false}, {"/live", false}}

func (p *Problems) checkListen(a *API) {
	const path = "proxy.listen_path"
	listen := a.Proxy.ListenPath
	switch {
	case listen == "" && a.Internal:
		return
	case listen == "":
		p.addf(path, `is required: a path such as /orders/, or "/" for every path`)
		return
	case listen[0] != '/':
		p.addf(path, `must begin with "/", as in /orders/`)
		return
	case len(listen) > maxListen:
		p.addf(path, "has %d bytes; at most %d are allowed", len(listen), maxListen)
		return
	}
	parts, balanced := segments(listen)
	switch {
	case !balanced:
		p.addf(path, "has braces that do not match; a parameter is written {name} or {name:regex}")
		return
	case len(parts) > maxSegments:
		p.addf(path, "has %d segments; at most %d are allowed", len(parts), maxSegments)
		return
	}
	names := make(map[string]bool)
	var whole strings.Builder // decoded, since that is what is compared
	for _, part := range parts {
		p.checkSegment(path, part, names)
		decoded, _ := decodeSegment(part)
		whole.WriteString("/" + decoded)
	}
	if len(names) > maxParams {
		p.addf(path, "has %d parameters; at most %d are allowed", len(names), maxParams)
	}
	for _, r := range reserved {
		if whole.String() == r.path || r.below && strings.HasPrefix(whole.String(), r.path+"/") {
			p.addf(path, "%s is reserved for the gateway itself; choose another path", r.path)
		}
	}
}

// segments splits at the slashes that stand outside braces: the expression of a
// parameter may hold some. A slash at the end begins no segment.
func segments(listen string) (parts []string, balanced bool) {
	if listen == "/" {
		return nil, true
	}
	rest := strings.TrimSuffix(listen[1:], "/")
	depth, start := 0, 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '{':
			depth++
		case '}':
			depth--
		case '/':
			if depth == 0 {
				parts = append(parts, rest[start:i])
				start = i + 1
			}
		}
		if depth < 0 {
			return nil, false
		}
	}
	return append(parts, rest[start:]), depth == 0
}

func (p *Problems) checkSegment(path, part string, names map[string]bool) {
	decoded, ok := decodeSegment(part)
	switch {
	case part == "":
		p.addf(path, "has two slashes in a row; write one")
	case part == "*":
		p.addf(path, "must not hold *: a listen path takes everything below it by itself; {name} stands for one segment")
	case part[0] == '{' && strings.HasSuffix(part, "}"):
		p.checkParameter(path, part[1:len(part)-1], names)
	case strings.ContainsAny(part, "{}"):
		p.addf(path, "segment %q: a parameter must be the whole segment, as in /{name}/", part)
	case strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '?' || r == '#' || r == '\\' }):
		p.addf(path, "segment %q: must not hold spaces, control characters, ?, # or \\", part)
	case !ok:
		p.addf(path, "segment %q: %% must begin an escape of two hexadecimal digits, other than %%00", part)
	case hasDots(decoded):
		p.addf(path, "segment %q: must not be . or .., also not in part or encoded: paths are compared without such segments", part)
	}
}

// decodeSegment decodes the percent escapes of a segment, or returns false when
// one is broken or stands for NUL. Those that would separate segments then, and
// encoded percent signs, stay, in upper case.
func decodeSegment(part string) (string, bool) {
	if !strings.Contains(part, "%") {
		return part, true
	}
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] != '%' {
			b.WriteByte(part[i])
			continue
		}
		if i+2 >= len(part) {
			return "", false
		}
		octet, err := strconv.ParseUint(part[i+1:i+3], 16, 8)
		if err != nil || octet == 0 {
			return "", false
		}
		if strings.IndexByte(`/\%`, byte(octet)) >= 0 {
			b.WriteString("%" + strings.ToUpper(part[i+1:i+3]))
		} else {
			b.WriteByte(byte(octet))
		}
		i += 2
	}
	return b.String(), true
}

// hasDots reports whether a decoded segment is, or some upstream could read it as,
// a dot segment: encoded slashes may separate, and what follows a semicolon may
// be left out.
func hasDots(decoded string) bool {
	for piece := range strings.SplitSeq(strings.ReplaceAll(decoded, "%5C", "%2F"), "%2F") {
		if name, _, _ := strings.Cut(piece, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

func (p *Problems) checkParameter(path, inner string, names map[string]bool) {
	name, expr, restricted := strings.Cut(inner, ":")
	switch {
	case !isName(name):
		p.addf(path, "parameter {%s}: its name must consist of letters, digits, _ and -, beginning with a letter or _", name)
	case names[name]:
		p.addf(path, "parameter {%s} stands twice", name)
	case restricted && expr == "":
		p.addf(path, "parameter {%s}: the expression after the colon is empty; leave the colon out to take any text", name)
	default:
		if _, err := regexp.Compile(expr); err != nil {
			p.addf(path, "parameter {%s}: %s", name, expressionMessage(err))
		}
	}
	names[name] = true
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		digit := '0' <= c && c <= '9'
		if !isAlnum(c) && c != '_' && c != '-' || i == 0 && (digit || c == '-') {
			return false
		}
	}
	return s != ""
}

// expressionMessage says what is wrong with a regular expression, without the
// prefix that names Go's parser.
func expressionMessage(err error) string {
	return "is not a regular expression in RE2 syntax: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}
