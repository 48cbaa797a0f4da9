package wire

import "net"

// maxKept bounds what a pooled call keeps of its buffers, in bytes.
const maxKept = 16 << 10

// getCall takes a call for a connection from the pool.
func (s *Server) getCall(c net.Conn) *Call {
	call := s.calls.Get().(*Call)
	call.Ctx.Init2(c, s.log, false)
	call.Ctx.Response.Header.SetNoDefaultContentType(true)
	return call
}

// putCall returns a call to the pool.
func (s *Server) putCall(call *Call) {
	call.reset()
	s.calls.Put(call)
}

// reset forgets everything about the last request but the buffers.
func (call *Call) reset() {
	ctx := call.Ctx
	ctx.Request.Reset()
	ctx.Response.Reset()
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.ResetUserValues()
	lines, text := call.Answer.Lines[:0], call.text[:0]
	if cap(lines)+cap(text) > maxKept {
		lines, text = nil, nil
	}
	*call = Call{Ctx: ctx, text: text, Answer: Answer{Lines: lines}}
}

// keep copies what the head's slices show, because the read buffer moves on.
func (call *Call) keep(h *head) {
	call.text = append(call.text[:0], h.host...)
	call.text = append(call.text, h.path...)
	call.text = append(call.text, h.query...)
	path, query := len(h.host), len(h.host)+len(h.path)
	call.Host = call.text[:path:path]
	call.Path = call.text[path:query:query]
	call.Query = call.text[query:]
}
