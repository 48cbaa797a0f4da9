package gateway

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// reject writes ex.Rejection as the answer: the only place that turns a rejection
// into bytes. The answer to a rejected internal call is already written.
func (g *Gateway) reject(ex *pipeline.Exchange) {
	if !ex.RefusedByChild() {
		g.write(ex)
	}
	if ex.Version != nil {
		pipeline.Run(ex.Version.Refused, ex)
	}
	if a := ex.Answer; ex.Call.IsHead() {
		a.NoBody, a.Length = true, int64(len(a.Body))
	}
}

// write writes the error answer.
func (g *Gateway) write(ex *pipeline.Exchange) {
	r, a := ex.Rejection, ex.Answer
	status, texts := g.conf.Wording.Of(r)
	a.Status, a.Phrase = status, nil
	a.Lines, a.Body = a.Lines[:0], texts.JSON()
	switch {
	case r.PlainText:
		a.Lines = append(a.Lines, "Content-Type: text/plain; charset=utf-8\r\n"...)
		a.Body = texts.Text()
	case r.GraphQL():
		a.Lines = appendContentType(a.Lines, ex.MediaType)
	case wantsXML(ex):
		a.Lines = append(a.Lines, "Content-Type: "...)
		a.Lines = append(a.Lines, mediaType(ex.Call.Get(wire.NameContentType))...)
		a.Lines = append(a.Lines, "\r\n"...)
		a.Body = texts.XML()
	default:
		a.Lines = append(a.Lines, "Content-Type: application/json\r\n"...)
	}
	if !g.conf.HideGenerator {
		a.Lines = append(a.Lines, "X-Generator: sluice\r\n"...)
	}
	if g.conf.ShowReason {
		a.Lines = append(a.Lines, "X-Sluice-Reason: "...)
		a.Lines = append(a.Lines, r.Reason.String()...)
		a.Lines = append(a.Lines, "\r\n"...)
	}
	a.Lines = append(a.Lines, "X-Request-Id: "...)
	a.Lines = append(a.Lines, ex.RequestID()...)
	a.Lines = append(a.Lines, "\r\n"...)
	a.Lines = appendWhenSet(a.Lines, "Allow: ", r.Allow)
	a.Lines = appendWhenSet(a.Lines, "WWW-Authenticate: ", r.Challenge)
	if ex.RetryAfter > 0 {
		a.Lines = append(a.Lines, "Retry-After: "...)
		a.Lines = strconv.AppendInt(a.Lines, int64(ex.RetryAfter), 10)
		a.Lines = append(a.Lines, "\r\n"...)
	}
}

// appendWhenSet appends a header line unless its value is empty. name includes the
// colon and the space after it.
func appendWhenSet(lines []byte, name, value string) []byte {
	if value == "" {
		return lines
	}
	lines = append(lines, name...)
	lines = append(lines, value...)
	return append(lines, "\r\n"...)
}

// appendContentType appends the Content-Type line of a GraphQL answer.
func appendContentType(lines []byte, mediaType string) []byte {
	if mediaType == "" {
		mediaType = "application/json"
	}
	lines = append(lines, "Content-Type: "...)
	lines = append(lines, mediaType...)
	return append(lines, "\r\n"...)
}

// xmlTypes are the request media types that are answered with XML errors.
var xmlTypes = [...]string{"application/xml", "text/xml", "application/soap+xml"}

func wantsXML(ex *pipeline.Exchange) bool {
	sent := mediaType(ex.Call.Get(wire.NameContentType))
	for _, xml := range xmlTypes {
		if string(sent) == xml {
			return true
		}
	}
	return false
}

// mediaType returns a Content-Type without its parameters.
func mediaType(contentType []byte) []byte {
	kind, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.TrimRight(kind, " \t")
}

var reasonOf = [...]pipeline.Reason{
	wire.Malformed:      pipeline.ReasonBadRequest,
	wire.HeaderTooLarge: pipeline.ReasonHeaderTooLarge,
	wire.URLTooLong:     pipeline.ReasonURLTooLong,
	wire.BodyTooLarge:   pipeline.ReasonBodyTooLarge,
	wire.TooSlow:        pipeline.ReasonRequestTimeout,
	wire.Unsupported:    pipeline.ReasonBadRequest,
}

// rejectionOf returns the rejection of a fault, which is made once.
func (g *Gateway) rejectionOf(fault *wire.Fault) *pipeline.Rejection {
	if known, ok := g.faults.Load(fault); ok {
		return known.(*pipeline.Rejection)
	}
	made := pipeline.NewRejection(reasonOf[fault.Kind], fault.Status, fault.Text)
	known, _ := g.faults.LoadOrStore(fault, made)
	return known.(*pipeline.Rejection)
}
