package admin

import (
	"context"
	"fmt"
	"testing"
)

func TestAdminsOfTheFirstOrganisationSeeSettingsAndFindings(t *testing.T) {
	b := start(t, func(d *Deps) {
		d.Settings = func() []Setting {
			return []Setting{{Key: "admin.master_key", Value: "***", Origin: "env SLUICE_ADMIN_MASTER_KEY"}}
		}
		d.Examine = func(ctx context.Context, ask Ask) []Finding {
			users, err := ask(ctx, "/api/users?q=viewer")
			_, missing := ask(ctx, "/api/apis/none")
			return []Finding{{State: "ok", Check: "users", Detail: fmt.Sprint(string(users), err)}, {State: "warn", Check: "apis", Detail: fmt.Sprint(missing), Remedy: "make one"}}
		}
	})
	for _, path := range []string{"/api/settings", "/api/doctor"} {
		b.Call("GET", path, b.editor, "").Want(403)
		b.Call("GET", path, b.other, "").Want(403).Says("first organisation")
	}
	b.Call("GET", "/api/settings", b.admin, "").Want(200).Says(`{"key":"admin.master_key","value":"***","origin":"env SLUICE_ADMIN_MASTER_KEY"}`)
	b.Call("GET", "/api/doctor", b.admin, "").Want(200).Says("viewer@example.com", "GET /api/apis/none: 404", `"remedy":"make one"`)
	u := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.admin))
	u.call("GET", "/api/doctor", "").Want(200).Says("viewer@example.com")
}
