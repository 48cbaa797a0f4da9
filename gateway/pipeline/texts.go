package pipeline

// A Text is the message of some rejections that operators can replace, with its
// status.
type Text uint8

// The texts. Their names are those of comparable gateways.
const (
	TextNone         Text = iota
	TextFieldMissing      // the request has no credential
	TextKeyNotFound
	TextKeyInvalid // too short or too long to be a key
	TextCertNotFound
	TextCertExpired
	TextCertRequired
	TextCertMismatch // not the one that the key is bound to
	MaxTexts
)

var textNames = [MaxTexts]string{
	"", "auth.auth_field_missing", "auth.key_not_found", "auth.key_is_invalid", "auth.cert_not_found", "auth.cert_expired",
	"auth.cert_required", "auth.cert_mismatch",
}

// String returns the name, "" for TextNone.
func (t Text) String() string {
	if t >= MaxTexts {
		return "unknown"
	}
	return textNames[t]
}

// Wording has the replacements of texts. It is complete before the first request.
type Wording [MaxTexts]wording

type wording struct {
	status int        // 0: the gateway's
	said   *Rejection // nil: the gateway's text
}

// Set replaces the message of a text, unless it is empty, and its status, unless it is
// 0.
func (w *Wording) Set(text Text, message string, status int) {
	w[text].status = status
	if message != "" {
		w[text].said = NewRejection(ReasonNone, status, message)
	}
}

// Of returns the status of r and the rejection whose bodies are sent, mostly r itself.
func (w *Wording) Of(r *Rejection) (status int, said *Rejection) {
	if w == nil || r.Wording == TextNone {
		return r.Status, r
	}
	status, said = r.Status, r
	if own := &w[r.Wording]; own.status > 0 {
		status = own.status
	}
	if own := w[r.Wording].said; own != nil {
		said = own
	}
	return status, said
}

// Named sets the text of r and returns r.
func (r *Rejection) Named(text Text) *Rejection {
	r.Wording = text
	return r
}
