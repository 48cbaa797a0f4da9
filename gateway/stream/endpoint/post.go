package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/mapping"
)

// What becomes of a request whose message is not passed on. After 503 it may be repeated;
// after 504 a repeat may make two of the message.
var (
	tooLarge  = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 413, "The message is too large")
	tooSlow   = pipeline.NewRejection(pipeline.ReasonRequestTimeout, 408, "The message took too long to arrive")
	malformed = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "The request body is not framed as HTTP has it")
	gone      = pipeline.NewRejection(pipeline.ReasonClientGone, 499, "Client closed request")
	tooMany   = pipeline.NewRejection(pipeline.ReasonAPIRateLimit, 429, "Too many messages")
	notTaken  = pipeline.NewRejection(pipeline.ReasonStreamUnavailable, 503, "The stream does not take messages now, please try again")
	draining  = pipeline.NewRejection(pipeline.ReasonStreamUnavailable, 503, "The stream is being changed or stopped, please try again")
	notPassed = pipeline.NewRejection(pipeline.ReasonStreamUnavailable, 503, "The message could not be passed on, please try again")
	unsettled = pipeline.NewRejection(pipeline.ReasonStreamTimeout, 504, "It is not known whether the message was passed on")
	failed    = pipeline.NewRejection(pipeline.ReasonStreamFailed, 502, "The message could not be passed on")
)

// retryAfter is sent with 503, in seconds.
const retryAfter = 1

// A waiting request is settled at most once, and perhaps when it does not wait any more.
type waiting struct {
	settled chan error
	settle  func(err error)
	timer   *time.Timer
}

// resting keeps those that were settled: nothing refers to them any more.
var resting = sync.Pool{New: func() any {
	w := &waiting{settled: make(chan error, 1), timer: time.NewTimer(0)}
	w.settle = func(err error) { w.settled <- err }
	return w
}}

// serve takes the message of a request and answers once it is settled.
func (in *Input) serve(ex *pipeline.Exchange, path []stream.Meta) pipeline.Verdict {
	if in.isStopping() || in.flow.Load() == nil {
		return again(ex, draining)
	}
	id, refused := idOf(ex.Call)
	if refused != nil {
		return ex.Reject(refused)
	}
	if in.rate != nil {
		if wait := in.rate.wait(time.Now()); wait > 0 {
			ex.RetryAfter = int((wait + time.Second - 1) / time.Second)
			return ex.Reject(tooMany)
		}
	}
	body, refused := in.body(ex.Call)
	if refused != nil {
		return ex.Reject(refused)
	}
	m := &stream.Message{ID: id, Body: body, Meta: in.known.metaOf(ex, path), At: time.Now(), Attempt: 1, Reply: new(stream.Reply)}
	w := resting.Get().(*waiting)
	w.timer.Reset(in.timeout)
	if refused := in.offer(m, w.settle, w.timer.C); refused != nil {
		w.timer.Stop()
		return again(ex, refused)
	}
	select {
	case err := <-w.settled:
		w.timer.Stop()
		resting.Put(w)
		return in.answer(ex, m, err)
	case <-w.timer.C:
		return ex.Reject(unsettled)
	}
}

// again refuses a request that may be repeated.
func again(ex *pipeline.Exchange, r *pipeline.Rejection) pipeline.Verdict {
	ex.RetryAfter = retryAfter
	return ex.Reject(r)
}

// A stream that has demand, and takes no message all the same, has used up a budget. It is
// asked a few times more: others may have been quicker.
const (
	offers     = 3
	offerPause = 5 * time.Millisecond
)

// offer passes a message on as soon as the stream takes it, or returns why that was not so
// in time.
func (in *Input) offer(m *stream.Message, settle stream.Settle, timeout <-chan time.Time) *pipeline.Rejection {
	for tries := 0; ; {
		open := in.opening()
		select {
		case <-open:
		case <-timeout:
			return notTaken
		case <-in.stopped:
			return draining
		}
		if in.take(m, settle) {
			return nil
		}
		select {
		case <-in.opening():
			if tries++; tries == offers {
				return notTaken
			}
			time.Sleep(offerPause)
		default: // somebody else was quicker
		}
	}
}

// firstRead is the first buffer of a streamed body, in bytes. It grows as data arrives: the
// declared length is only a claim of the client.
const firstRead = 16 << 10

// body returns the message that a request carries. It is a copy.
func (in *Input) body(call *wire.Call) ([]byte, *pipeline.Rejection) {
	most := in.site.MaxMessageBytes
	if call.Length > int64(most) || len(call.Body) > most {
		return nil, tooLarge
	}
	if call.Stream == nil {
		return bytes.Clone(call.Body), nil
	}
	call.LimitBody(int64(most))
	body := make([]byte, 0, min(firstRead, most+1))
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := call.Stream.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > most, errors.Is(err, wire.ErrBodyTooLarge), errors.Is(err, wire.ErrBodyOverLimit):
			return nil, tooLarge
		case err == io.EOF:
			return body, nil
		case errors.Is(err, wire.ErrBodyMalformed):
			return nil, malformed
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, tooSlow
		case err != nil:
			return nil, gone
		}
	}
}

// answer answers a request whose message is settled.
func (in *Input) answer(ex *pipeline.Exchange, m *stream.Message, err error) pipeline.Verdict {
	if err == nil {
		return in.reply(ex, m)
	}
	in.site.Log.Info("the message of a request was not passed on", "request_id", string(ex.RequestID()), "err", err)
	switch stream.ClassOf(err) {
	case stream.Refused:
		return ex.Reject(in.refusal(err))
	case stream.Permanent:
		return ex.Reject(failed)
	case stream.Unknown:
		return ex.Reject(unsettled)
	}
	return again(ex, notPassed)
}

// refusal returns the rejection of a message that a processor refused. It is made once for
// each processor.
func (in *Input) refusal(err error) *pipeline.Rejection {
	label := byOf(err)
	if known, ok := in.refused.Load(label); ok {
		return known.(*pipeline.Rejection)
	}
	made := pipeline.NewRejection(pipeline.ReasonMessageRefused, 422, refusalText(label))
	known, _ := in.refused.LoadOrStore(label, made)
	return known.(*pipeline.Rejection)
}

// byOf returns the label of the processor or output that an error is of.
func byOf(err error) string {
	if f, ok := errors.AsType[*stream.Failure](err); ok {
		return f.By
	}
	return ""
}

func refusalText(label string) string {
	if label == "" {
		return "message refused by a processor"
	}
	return "message refused by processor " + strconv.Quote(label)
}

// reply answers a request whose message was passed on.
func (in *Input) reply(ex *pipeline.Exchange, m *stream.Message) pipeline.Verdict {
	a, of := ex.Answer, m
	a.Status = 200
	set := m.Reply.Message()
	if set != nil {
		of = set
		a.Body = set.Body
	}
	typed := false
	for _, h := range in.replies.headers {
		value, err := h.value.Text(of.Doc)
		if err != nil || !isFieldValue(value) {
			in.site.Log.Warn("a header of a synchronous response has no usable value and was left out", "header", h.name, "err", err)
			continue
		}
		typed = typed || strings.EqualFold(h.name, "Content-Type")
		a.Append(h.name, []byte(value))
	}
	if len(a.Body) > 0 && !typed {
		a.Append("Content-Type", []byte(typeOf(a.Body)))
	}
	if in.replies.status != nil {
		a.Status = in.replyStatus(in.replies.status, of)
	}
	if a.Status == 204 || a.Status == 304 {
		a.Body, a.NoBody, a.Length = nil, true, -1
	}
	return pipeline.Answered
}

// replyStatus returns the status that a template gives; 200, and a line in the log, if that
// is none: the message was passed on, and must not be sent again.
func (in *Input) replyStatus(t *mapping.Template, of *stream.Message) int {
	text, err := t.Text(of.Doc)
	status, notNumber := strconv.Atoi(text)
	if err == nil && notNumber == nil && status >= 200 && status <= 599 {
		return status
	}
	in.site.Log.Warn("sync_response.status gives no status between 200 and 599; 200 was answered", "err", err)
	return 200
}

// typeOf returns the media type of a body.
func typeOf(body []byte) string {
	switch {
	case json.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// isFieldValue reports whether a text can be the value of a header.
func isFieldValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
