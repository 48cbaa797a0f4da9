// Package event names what happens in a gateway and passes it on to sinks.
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
	OrgQuotaExceeded  Name = "OrgQuotaExceeded"  // quota refusal for an organisation's sake

	OrgRateLimitExceeded    Name = "OrgRateLimitExceeded" // rate refusal for an organisation's sake
	TriggerExceeded         Name = "TriggerExceeded"      // a share of a quota is used
	TokenCreated            Name = "TokenCreated"
	TokenUpdated            Name = "TokenUpdated"
	TokenDeleted            Name = "TokenDeleted"
	HostDown                Name = "HostDown"                // a target is not called any more, because it fails or a check says so
	HostUp                  Name = "HostUp"                  // a target is called again
	BreakerTriggered        Name = "BreakerTriggered"        // a circuit breaker tripped or was reset
	BreakerTripped          Name = "BreakerTripped"          // calls are refused because too many have failed
	BreakerReset            Name = "BreakerReset"            // calls pass again
	CertificateExpiringSoon Name = "CertificateExpiringSoon" // a certificate of the gateway or of an API expires within two weeks
	CertificateExpired      Name = "CertificateExpired"
	CounterStoreDown        Name = "CounterStoreDown" // the outage policy is in force
	CounterStoreUp          Name = "CounterStoreUp"   // shared counting again
)
