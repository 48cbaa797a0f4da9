package vars

import (
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// contextValue returns the value for a name below $svc_context, or nil if there is
// none.
func contextValue(name string) value {
	if v, ok := contextNames[name]; ok {
		return v
	}
	if rest, ok := strings.CutPrefix(name, "headers_"); ok {
		return header(underscored(rest))
	}
	if rest, ok := strings.CutPrefix(name, "cookies_"); ok {
		return cookie(underscored(rest))
	}
	if rest, ok := strings.CutPrefix(name, "request_data_"); ok {
		return requestValue(underscored(rest))
	}
	if rest, ok := strings.CutPrefix(name, "jwt_claims_"); ok {
		return claim(rest)
	}
	if rest, ok := strings.CutPrefix(name, "trigger-"); ok {
		return captured(rest)
	}
	return nil
}

// underscored returns a name as variables write it, with underscores for dashes.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// contextNames are the variables without a further name.
var contextNames = map[string]value{
	"headers_Host":         simple(appendHost),
	"path":                 fullPathValue{},
	"path_parts":           simple(appendPathParts),
	"remote_addr":          simple(appendAddress),
	"request_id":           simple(appendID),
	"token":                simple(appendToken),
	"request_data":         simple(appendRequestData),
	"svc_trace_id":         simple(appendTrace),
	"rate_limit_limit":     rate(appendMax),
	"rate_limit_remaining": rate(appendRemaining),
	"rate_limit_reset":     rate(appendReset),
	"quota_limit":          quota(appendMax),
	"quota_remaining":      quota(appendRemaining),
	"quota_reset":          quota(appendReset),
}

// simple is a variable that depends on the request alone.
type simple func(dst []byte, ex *pipeline.Exchange) []byte

func (f simple) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte { return f(dst, ex) }

func appendHost(dst []byte, ex *pipeline.Exchange) []byte { return append(dst, ex.Call.Host...) }

// fullPath returns the decoded path with the listen path, or the path as the client
// sent it if it was not decoded.
func fullPath(ex *pipeline.Exchange) []byte {
	if len(ex.PathBuf) > 0 {
		return ex.PathBuf
	}
	return ex.Call.Path
}

// fullPathValue is the path of the request.
type fullPathValue struct{}

func (fullPathValue) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	return append(dst, fullPath(ex)...)
}

// appendPathParts appends the path's segments, separated by commas.
func appendPathParts(dst []byte, ex *pipeline.Exchange) []byte {
	path := fullPath(ex)
	if len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if n := len(path); n > 0 && path[n-1] == '/' {
		path = path[:n-1]
	}
	for _, c := range path {
		if c == '/' {
			c = ','
		}
		dst = append(dst, c)
	}
	return dst
}

func appendAddress(dst []byte, ex *pipeline.Exchange) []byte {
	if !ex.Client.IsValid() {
		return dst
	}
	return ex.Client.WithZone("").AppendTo(dst)
}

func appendID(dst []byte, ex *pipeline.Exchange) []byte {
	if ex.ID[0] == 0 {
		return dst
	}
	return append(dst, ex.RequestID()...)
}

func appendToken(dst []byte, ex *pipeline.Exchange) []byte { return append(dst, ex.Token...) }

// A limitValue appends one number of a limit. limit is its index in the grant, -1 if
// there is none; most is its maximum.
type limitValue func(dst []byte, ex *pipeline.Exchange, limit int, most int64) []byte

// rate and quota are variables of the limit of that name. They are empty without a
// key.
type (
	rate  limitValue
	quota limitValue
)

func (f rate) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	if ex.Grant == nil {
		return dst
	}
	at, most := int(ex.Grant.Rate), int64(-1)
	if at >= 0 {
		most = ex.Grant.Limits()[at].Max
	}
	return f(dst, ex, at, most)
}

func (f quota) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	if ex.Grant == nil {
		return dst
	}
	return f(dst, ex, int(ex.Grant.Quota), ex.Grant.QuotaMax())
}

func appendMax(dst []byte, _ *pipeline.Exchange, _ int, most int64) []byte {
	return strconv.AppendInt(dst, most, 10)
}

func appendRemaining(dst []byte, ex *pipeline.Exchange, limit int, most int64) []byte {
	switch {
	case limit < 0:
		return strconv.AppendInt(dst, most, 10) // without a limit nothing is counted
	case !ex.Charge.Whole:
		return dst
	}
	return strconv.AppendInt(dst, ex.Charge.Counts[limit].Remaining, 10)
}

// appendReset appends a time in unix seconds, rounded up so that a client that waits
// for it is not too early; 0 if no period is open.
func appendReset(dst []byte, ex *pipeline.Exchange, limit int, _ int64) []byte {
	switch {
	case limit < 0:
		return append(dst, '0')
	case !ex.Charge.Whole:
		return dst
	}
	return strconv.AppendInt(dst, (ex.Charge.Counts[limit].ResetAt+999)/1000, 10)
}

// A segment is a parameter of the path, by its index in Options.Path.
type segment int

func (s segment) append(dst []byte, _ *pipeline.Exchange, path [][]byte) []byte {
	if int(s) >= len(path) {
		return dst
	}
	return append(dst, path[s]...)
}

// meta is a member of the meta data of the key or of its policies. The policies' value
// replaces the key's.
type meta string

// append appends a string as it is, and any other value as JSON.
func (m meta) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	if ex.Session == nil {
		return dst
	}
	if ex.Grant != nil {
		if v, ok := ex.Grant.Meta[string(m)]; ok {
			return appendJSON(dst, v)
		}
	}
	return appendJSON(dst, ex.Session.MetaData[string(m)])
}
