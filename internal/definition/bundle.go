package definition

// Bundle is everything that a gateway serves, at one revision.
type Bundle struct {
	// Revision of the configuration. It is opaque; equal revisions have equal contents.
	// Example: "17"
	Revision string `json:"revision"`
	// Id of the organisation whose APIs and policies these are; left out: of all organisations.
	// Example: "acme"
	Org string `json:"org,omitempty"`
	// Definitions that the gateway serves.
	// Example: []
	APIs []*API `json:"apis"`
	// Policies of the keys that may call them.
	// Example: []
	Policies []*Policy `json:"policies"`

	// Definitions that could not be read at all. A gateway keeps the last good form of the APIs named
	// here.
	// Example: []
	Skipped []Skipped `json:"skipped,omitempty"`

	// Elsewhere holds the APIs that other gateways serve, as far as the source knows
	// them.
	Elsewhere []*API `json:"-"`

	// Digest of all APIs and policies, as they are written in the bundle; left out by sources that
	// send no differences.
	// Example: ""
	Digest string `json:"digest,omitempty"`

	// Number by API id that changes each time that the answers kept for the API are to be forgotten.
	// Example: {"orders": 2}
	Caches map[string]int64 `json:"caches,omitempty"`

	// Sealed secrets that the APIs refer to, by organisation and name.
	// Example: {}
	Secrets Secrets `json:"secrets,omitempty"`

	// Whether the bundle may replace APIs by none at all.
	ConfirmedEmpty bool `json:"confirmed_empty,omitempty"`
}

// Skipped is one object that a source could not read.
type Skipped struct {
	// File or row of the object.
	// Example: "orders.json"
	Source string `json:"source"`
	// Id of the API, where it is known.
	// Example: "orders"
	APIID string `json:"api_id,omitempty"`
	// Id of the organisation, where it is known.
	// Example: "acme"
	OrgID string `json:"org_id,omitempty"`
	// Reason for which the object could not be read.
	// Example: "proxy.listen_path: must begin with a slash"
	Reason string `json:"reason"`

	// Listen path of the API, where it is known and requests would come that way: no other API may
	// answer them.
	// Example: "/orders/"
	ListenPath string `json:"listen_path,omitempty"`
	// Host of the API, likewise.
	// Example: "api.example.com"
	Domain string `json:"domain,omitempty"`

	// Whether a GraphQL API has no schema: its requests are answered as those of one with a broken
	// schema.
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
