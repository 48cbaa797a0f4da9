package portal

import (
	"embed"
	"reflect"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/portal/webhooks"
	"github.com/sluicegate/sluice/internal/definition/reference"
)

//go:embed reference.go model/model.go webhooks/shape.go
var files embed.FS

// objects are the objects of the portal, by name.
type objects struct {
	// Account of a developer, at /api/portal/developers.
	// Example: {"email": "ada@example.com", "fields": {"company": "Example Ltd"}}
	Developer model.Developer `json:"developer"`
	// Offer of an API with a policy, at /api/portal/catalogue/entries.
	// Example: {"name": "Orders", "api_id": "orders", "policy_id": "starter", "show": true}
	Entry model.Entry `json:"entry"`
	// Settings of the portal of an organisation, at /api/portal/configuration.
	// Example: {"require_key_approval": true, "signup_fields": ["company"]}
	Configuration model.Configuration `json:"configuration"`
	// Request of a developer for a credential, at /api/portal/requests.
	// Example: {"for_plan": "starter", "version": "v2"}
	Request model.KeyRequest `json:"request"`
	// OAuth client of a developer, at /api/portal/developers/{id}/oauth-clients.
	// Example: {"client_id": "shop", "redirect_uri": "https://shop.example/done"}
	Client model.Client `json:"client"`
	// Webhook of an organisation or a developer, at /api/portal/webhooks.
	// Example: {"name": "Deliveries", "url": "https://hooks.example/portal", "events": ["key_event.created"]}
	Webhook webhooks.Webhook `json:"webhook"`
}

// source is the declarations of the objects of the portal.
func source() reference.Source {
	return reference.Source{Package: reflect.TypeFor[objects]().PkgPath(), Files: files}
}

// Reference is the reference of the objects of the portal.
func Reference() (reference.Kind, error) {
	comments, err := reference.ReadComments(source())
	if err != nil {
		return reference.Kind{}, err
	}
	return comments.Kind("portal", "Objects of the portal", reflect.TypeFor[objects]()), nil
}
