// Package event names what happens in a gateway and hands it to whoever
// listens.
package event

// Name is the wire name of an event.
type Name string

// The events that traffic raises.
const (
	AuthFailure       Name = "AuthFailure"       // unknown or wrong credential
	KeyExpired        Name = "KeyExpired"        // expired or inactive key
	VersionFailure    Name = "VersionFailure"    // no version for the call, or a list of paths of it
	QuotaExceeded     Name = "QuotaExceeded"     // quota refusal
	RatelimitExceeded Name = "RatelimitExceeded" // rate refusal
	TokenCreated      Name = "TokenCreated"
	TokenUpdated      Name = "TokenUpdated"
	TokenDeleted      Name = "TokenDeleted"
	CounterStoreDown  Name = "CounterStoreDown" // the outage policy is in force
	CounterStoreUp    Name = "CounterStoreUp"   // shared counting again
)
