package admin

import (
	"embed"
	"reflect"

	"github.com/sluicegate/sluice/internal"
	"github.com/sluicegate/sluice/internal/definition/reference"
)

// bodies are the files that declare what calls are sent and answered.
//
//go:embed acme.go apis.go certificates.go connections.go events.go explaintypes.go gateways.go graphqluse.go history.go hooks.go keyfind.go
//go:embed keylists.go keys.go keysession.go operations.go orgs.go origin.go playground.go policies.go pulse.go revisions.go rotation.go
//go:embed rows.go rows_users.go schemas.go secrets.go settings.go streams.go streamstate.go streamtry.go try.go users.go uses.go
//go:embed apply/apply.go apply/effect.go apply/words.go delivery/log.go delivery/mailbox.go portal/brand/brand.go
//go:embed portal/catalogue/documentation.go portal/catalogue/documents.go portal/catalogue/entry.go portal/catalogue/limits.go
//go:embed portal/catalogue/public.go portal/catalogue/streams.go portal/catalogue/whole.go portal/content/menu.go portal/content/pages.go
//go:embed portal/credentials/clients_routes.go portal/credentials/clients_token.go portal/credentials/keys_routes.go
//go:embed portal/credentials/keys_view.go portal/credentials/requests_decide.go portal/credentials/requests_routes.go
//go:embed portal/developers/login.go portal/developers/me.go portal/developers/operators.go portal/developers/recovery.go
//go:embed portal/developers/rows.go portal/developers/signup.go portal/model/model.go portal/model/notifications.go portal/webhooks/ingest.go portal/webhooks/shape.go
//go:embed replay/replay.go replay/result.go rest/answer.go rest/problems.go rest/rows.go schemas/compose.go schemas/effect.go
//go:embed schemas/probe.go schemas/schemas.go schemas/status.go schemas/sync.go signin/forgot.go signin/links.go signin/passwords.go
//go:embed signin/session.go signin/signin.go store/publish.go store/usage/refusals.go store/usage/samples.go usage/refusals.go
//go:embed usage/report.go
var bodies embed.FS

// sources returns the declarations whose comments describe the members of bodies.
func sources() []reference.Source {
	return []reference.Source{{Package: reflect.TypeFor[Server]().PkgPath(), Files: bodies}, internal.Source()}
}
