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

	// Elsewhere holds the APIs that other gateways serve, as far as the source knows
	// them.
	Elsewhere []*API `json:"-"`

	// Digest is that of all APIs and policies, as they are written in the bundle;
	// "" from a source that sends no deltas.
	Digest string `json:"digest,omitempty"`

	// Caches has, by API id, a number that is another one each time that the answers
	// kept for the API are to be forgotten.
	Caches map[string]int64 `json:"caches,omitempty"`

	// Secrets are the sealed secrets that the APIs refer to.
	Secrets Secrets `json:"secrets,omitempty"`

	// ConfirmedEmpty allows the bundle to replace APIs by none at all.
	ConfirmedEmpty bool `json:"confirmed_empty,omitempty"`
}

// Skipped is one object that a source could not read.
type Skipped struct {
	Source string `json:"source"`           // file or row
	APIID  string `json:"api_id,omitempty"` // where it is known
	OrgID  string `json:"org_id,omitempty"` // where it is known
	Reason string `json:"reason"`

	// ListenPath and Domain, where they are known and requests would come that
	// way: no other API may answer them.
	ListenPath string `json:"listen_path,omitempty"`
	Domain     string `json:"domain,omitempty"`

	// LacksSchema says that a GraphQL API has no schema: its requests are answered
	// as those of one with a broken schema.
	LacksSchema bool `json:"lacks_schema,omitempty"`
}

// SkippedAPI says that a definition, as far as it could be read, is left out.
func SkippedAPI(source string, a *API, reason error) Skipped {
	s := Skipped{Source: source, APIID: a.ID, OrgID: a.OrgID, Reason: reason.Error(), LacksSchema: a.LacksSchema()}
	if a.IsActive() && !a.Internal {
		s.ListenPath, s.Domain = a.Proxy.ListenPath, a.Domain
	}
	return s
}

// Secrets are secrets in clear text, by organisation and name. They must not be shown.
type Secrets map[string]map[string]string

// String hides the secrets.
func (Secrets) String() string { return "***" }

// GoString hides the secrets.
func (Secrets) GoString() string { return "***" }
