package engine

import (
	"strconv"

	"github.com/sluicegate/sluice/gateway/stream"
)

// Metadata of a message in the dead letter.
const (
	metaStream    = "svc_stream"    // where it could not be passed on
	metaError     = "svc_error"     // why, if dead_letter.include_error
	metaAttempts  = "svc_attempts"  // how often it was tried
	metaProcessor = "svc_processor" // label of the processor that refused it
	metaOutput    = "svc_output"    // label of the output that did not take it
)

// longestError bounds the text of an error in metadata, in bytes.
const longestError = 1024

// bury passes a message to the dead letter. by is the metadata that names what failed.
// The message is settled once the dead letter has it.
func (r *running) bury(m *stream.Message, err error, by string, settle stream.Settle) {
	label := ""
	if failure := asFailure(err); failure != nil {
		label = failure.By
	}
	r.log.Warn("a message goes to the dead letter", "message", m.ID, "by", label, "err", err)
	r.write(m, err.Error(), stream.Meta{Name: by, Value: label}, settle)
}

// buryFor is bury for a processor that sends messages there.
func (r *running) buryFor(m *stream.Message, reason string, settle stream.Settle) {
	r.write(m, reason, stream.Meta{Name: metaProcessor, Value: "dead_letter"}, settle)
}

func (r *running) write(m *stream.Message, reason string, by stream.Meta, settle stream.Settle) {
	dead := repeated(m)
	dead.Attempt, dead.Reply = m.Attempt, nil
	dead.Meta = make([]stream.Meta, 0, len(m.Meta)+4)
	for _, one := range m.Meta {
		switch one.Name {
		case metaStream, metaError, metaAttempts, metaProcessor, metaOutput: // of another stream
		default:
			dead.Meta = append(dead.Meta, one)
		}
	}
	dead.Meta = append(dead.Meta, stream.Meta{Name: metaStream, Value: r.conf.Name}, stream.Meta{Name: metaAttempts, Value: strconv.Itoa(m.Attempt)}, by)
	if r.conf.DeadLetter.IncludeError {
		dead.Meta = append(dead.Meta, stream.Meta{Name: metaError, Value: reason[:min(len(reason), longestError)]})
	}
	r.dead.write(dead, func(err error) {
		if err == nil {
			r.buried.Add(1)
		}
		settle(err)
	})
}
