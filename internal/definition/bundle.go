package definition

// Bundle is everything that a gateway serves, at one revision.
type Bundle struct {
	Revision string    `json:"revision"` // opaque; equal revisions have equal contents
	Org      string    `json:"org,omitempty"`
	APIs     []*API    `json:"apis"`
	Policies []*Policy `json:"policies"`

	// Skipped lists what the source could not read at all. A gateway keeps the
	// last good form of the APIs named here.
	Skipped []Skipped `json:"skipped,omitempty"`

	// ConfirmedEmpty allows the bundle to replace APIs by none at all.
	ConfirmedEmpty bool `json:"confirmed_empty,omitempty"`
}

// Skipped is one object that a source could not read.
type Skipped struct {
	Source string `json:"source"`           // file or row
	APIID  string `json:"api_id,omitempty"` // where it is known
	Reason string `json:"reason"`
}
