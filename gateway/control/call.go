package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/valyala/fasthttp"
)

// Limits on what a caller can send.
const (
	maxBody = 4 << 20 // bytes of a body
	maxText = 1024    // bytes of an id in the path or of a query parameter
)

// A call is one request on its way through its handler.
type call struct {
	rc     *fasthttp.RequestCtx
	id     string // in the path; "" if the route has none
	query  map[string]string
	chosen string // the key that the body names; "" if none

	warnings []definition.Problem // about the object in the body
}

// newCall parses path and query. Unknown query parameters are refused, since a misspelt
// one would be ignored.
func newCall(rc *fasthttp.RequestCtx, params []string) (*call, error) {
	c := &call{rc: rc, query: make(map[string]string)}
	if raw, ok := rc.UserValue("id").(string); ok {
		id, err := url.PathUnescape(raw)
		if err != nil || !isText(id) {
			return nil, refuse(fasthttp.StatusBadRequest, fmt.Sprintf("The id in the path must be percent-encoded UTF-8 of at most %d bytes", maxText))
		}
		c.id = strings.Clone(id) // without a "%" it is part of the request's buffer
	}
	values, err := url.ParseQuery(string(rc.URI().QueryString()))
	if err != nil {
		return nil, refuse(fasthttp.StatusBadRequest, "The query is malformed: "+err.Error())
	}
	for name, given := range values {
		switch {
		case !slices.Contains(params, name):
			return nil, refuse(fasthttp.StatusBadRequest, unknownParameter(name, params))
		case len(given) > 1:
			return nil, refuse(fasthttp.StatusBadRequest, fmt.Sprintf("Query parameter %q stands twice", name))
		case given[0] != "" && !isText(given[0]):
			return nil, refuse(fasthttp.StatusBadRequest, fmt.Sprintf("Query parameter %q must be UTF-8 of at most %d bytes", name, maxText))
		}
		c.query[name] = given[0]
	}
	return c, nil
}

func unknownParameter(name string, params []string) string {
	if len(params) == 0 {
		return fmt.Sprintf("Unknown query parameter %.40q; this call takes none", name)
	}
	return fmt.Sprintf("Unknown query parameter %.40q; this call takes %s", name, strings.Join(params, ", "))
}

// isText reports whether s can be an id or a parameter.
func isText(s string) bool {
	return s != "" && len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// flag parses a boolean query parameter; it is false by default.
func (c *call) flag(name string) (bool, error) {
	given, ok := c.query[name]
	if !ok {
		return false, nil
	}
	switch given {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, refuse(fasthttp.StatusBadRequest, fmt.Sprintf("Query parameter %q must be true, 1, false or 0, not %s", name, strconv.Quote(given)))
}

// number parses an integer query parameter in [least, most].
func (c *call) number(name string, otherwise, least, most int) (int, error) {
	given, ok := c.query[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < least || n > most {
		return 0, refuse(fasthttp.StatusBadRequest, fmt.Sprintf("Query parameter %q must be a whole number in %d…%d, not %.40q", name, least, most, given))
	}
	return n, nil
}

// body returns the body, which the caller may keep.
func (c *call) body() ([]byte, error) {
	var body []byte
	if stream := c.rc.RequestBodyStream(); stream != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(stream, maxBody+1)); err != nil {
			return nil, refuse(fasthttp.StatusBadRequest, "The body could not be read: "+err.Error())
		}
	} else {
		body = slices.Clone(c.rc.Request.Body())
	}
	if len(body) > maxBody {
		return nil, refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes", maxBody))
	}
	return body, nil
}

// A kind describes the objects of request bodies: how they are parsed and which errors
// are returned.
type kind[T any] struct {
	parse     func([]byte) (T, error)
	name      string // as in "Validation of <name> failed"
	malformed *Error // error for a body that is not JSON
}

// read parses the body as an object of a kind. Its unknown members are warnings of the
// call, or problems if the call is strict: by its query or by the member strict.
func read[T any](c *call, k kind[T]) (T, error) {
	var none T
	body, err := c.body()
	if err != nil {
		return none, err
	}
	object, err := k.parse(body)
	if err == nil {
		unknown, strict, err := c.unknownMembers(object)
		if err == nil && strict && len(unknown) > 0 {
			err = invalid(k.name, unknown)
		}
		c.warnings = unknown
		return object, err
	}
	problems := problemsOf(err)
	if !json.Valid(body) {
		return none, &Error{Status: k.malformed.Status, Message: k.malformed.Message, Problems: problems}
	}
	return none, invalid(k.name, problems)
}

// unknownMembers returns the unknown members of an object, and whether the call is strict.
func (c *call) unknownMembers(object any) (unknown definition.Problems, strict bool, err error) {
	of, ok := object.(definition.Object)
	if !ok {
		return nil, false, nil
	}
	strict, err = c.flag("strict")
	strict = of.TakeSwitch("strict") || strict
	return of.UnknownMembers(), strict, err
}

// invalid returns the error for an object with problems.
func invalid(name string, problems []definition.Problem) *Error {
	all := definition.Problems(problems)
	return &Error{
		Status:   fasthttp.StatusBadRequest,
		Message:  "Validation of " + name + " failed. Reason: " + strings.TrimSuffix(all.Error(), ".") + ".",
		Problems: problems,
	}
}

func problemsOf(err error) []definition.Problem {
	if all, ok := errors.AsType[*definition.Problems](err); ok {
		return *all
	}
	return []definition.Problem{{Message: err.Error()}}
}
