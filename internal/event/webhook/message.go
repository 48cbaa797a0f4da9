package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/event"
)

// A member is one of a message's, by its name in JSON and in templates.
type member struct{ name, inTemplate, value string }

// membersOf returns what a message says of an event, its name first.
func membersOf(e *event.Event) []member {
	message := []member{{"event", "", string(e.Name)}, {"message", "Message", messageOf(e)}}
	switch e.Name {
	case event.TriggerExceeded:
		return append(message, member{"org", "OrgID", e.Org}, member{"key", "Key", cmp.Or(e.RawKey, e.Key)},
			member{"trigger_limit", "TriggerLimit", strconv.Itoa(e.Trigger.Limit)},
			member{"usage_percentage", "UsagePercentage", strconv.Itoa(e.Trigger.Usage)})
	case event.HostDown, event.HostUp:
		u := upstreamOf(e)
		return append(message, member{"url", "URL", u.URL}, member{"response_code", "ResponseCode", strconv.Itoa(u.Status)},
			member{"tcp_error", "TCPError", u.Error}, member{"host", "Host", u.Host}, member{"api_id", "APIID", e.API})
	case event.BreakerTripped, event.BreakerReset, event.BreakerTriggered:
		u := upstreamOf(e)
		message = append(message, member{"api_id", "APIID", e.API}, member{"path", "Path", u.Path})
		if e.Name == event.BreakerTriggered {
			message = append(message, member{"Status", "CircuitEvent", openOrClosed(u.Open)})
		}
		return message
	}
	if c := e.Certificate; c != nil {
		return append(message, member{"api_id", "APIID", e.API}, member{"cert_id", "CertID", c.Sum},
			member{"cert_names", "CertNames", strings.Join(c.Names, ", ")}, member{"expires_at", "ExpiresAt", c.NotAfter.UTC().Format(time.RFC3339)})
	}
	origin := ""
	if e.Origin.IsValid() {
		origin = e.Origin.String()
	}
	return append(message, member{"path", "Path", e.Path}, member{"origin", "Origin", origin},
		member{"key", "Key", cmp.Or(e.RawKey, e.Key)}, member{"reason", "Reason", e.Detail})
}

func upstreamOf(e *event.Event) event.Upstream {
	if e.Upstream == nil {
		return event.Upstream{}
	}
	return *e.Upstream
}

func openOrClosed(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

// messageOf is what receivers of comparable gateways' messages know.
func messageOf(e *event.Event) string {
	switch e.Name {
	case event.QuotaExceeded:
		return "Key Quota Limit Exceeded"
	case event.AuthFailure:
		return "Auth Failure"
	case event.VersionFailure:
		return "Attempted access to disallowed version / path."
	case event.OrgQuotaExceeded:
		return "Organisation quota has been exceeded"
	case event.OrgRateLimitExceeded:
		return "Organisation rate limit has been exceeded"
	case event.TriggerExceeded:
		return "Quota trigger reached"
	case event.CertificateExpiringSoon:
		return "Certificate expires soon."
	case event.CertificateExpired:
		return "Certificate has expired."
	case event.TokenCreated:
		return "Key generated."
	case event.TokenUpdated:
		return "Key modified."
	case event.TokenDeleted:
		return "Key deleted."
	case event.KeyExpired:
		if strings.Contains(e.Detail, "inactive") {
			return "Attempted access from inactive key."
		}
		return "Attempted access from expired key."
	}
	return e.Detail
}

// usual is the message of a hook without a template.
func usual(e *event.Event) []byte {
	var b bytes.Buffer
	for i, m := range membersOf(e) {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(quoted(m.name))
		b.WriteByte(':')
		b.Write(quoted(m.value))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quoted returns a text as JSON.
func quoted(s string) []byte {
	text, _ := json.Marshal(s) // a text always can be
	return text
}
