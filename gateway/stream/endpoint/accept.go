package endpoint

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
)

var (
	upgrade    = []byte("upgrade")
	eventsType = []byte("text/event-stream")
)

// asksEvents reports whether a request names event streams as what it accepts.
func asksEvents(call *wire.Call) bool {
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name != wire.NameAccept {
			continue
		}
		for list := call.ValueOf(f); len(list) > 0; {
			var one []byte
			one, list = http1.CutElement(list)
			kind, params, _ := bytes.Cut(one, []byte{';'})
			if bytes.EqualFold(http1.Trim(kind), eventsType) && !refuses(params) {
				return true
			}
		}
	}
	return false
}

// refuses reports whether parameters of a media range have the weight 0.
func refuses(params []byte) bool {
	for len(params) > 0 {
		var one []byte
		one, params, _ = bytes.Cut(params, []byte{';'})
		name, value, _ := bytes.Cut(http1.Trim(one), []byte{'='})
		if http1.EqualFold(name, "q") {
			return len(value) > 0 && value[0] == '0' && len(bytes.Trim(value, "0.")) == 0
		}
	}
	return false
}
