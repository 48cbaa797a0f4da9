package pipeline

// A Text names what clients read in some refusals, so that operators can put
// other words and another status in place of the gateway's.
type Text uint8

// The texts. Their names are those that comparable gateways give them.
const (
	TextNone         Text = iota
	TextFieldMissing      // no credential is where one is looked for
	TextKeyNotFound
	TextKeyInvalid // too short or too long to be a key
	TextCertNotFound
	TextCertExpired
	TextCertRequired
	TextCertMismatch // another than the one that the key is bound to
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

// Wording is what takes the place of texts. It is made before the first request.
type Wording [MaxTexts]wording

type wording struct {
	status int        // 0: the gateway's
	said   *Rejection // nil: the gateway's words
}

// Set puts a message, unless that is empty, and a status, unless that is 0, in
// place of a text's.
func (w *Wording) Set(text Text, message string, status int) {
	w[text].status = status
	if message != "" {
		w[text].said = NewRejection(ReasonNone, status, message)
	}
}

// Of returns the status, and the rejection whose bodies are sent, for r; most often
// its own.
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

// Named returns r after setting the text that it sends.
func (r *Rejection) Named(text Text) *Rejection {
	r.Wording = text
	return r
}
