package site

import (
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
)

func clientRoutes() []route {
	return []route{
		{"GET", "/clients", true, listClients},
		{"POST", "/clients/{client}/secret", true, renewClient},
		{"POST", "/clients/{client}/delete", true, deleteClient},
	}
}

// ownClient is an OAuth client of the visitor.
type ownClient struct {
	model.Client
	Policy string `json:"policy_id"`
	Key    string `json:"key_id"`
}

// clientsView is the list of the visitor's OAuth clients.
type clientsView struct {
	Clients []ownClient
	Token   string // where clients get access tokens
}

func listClients(v *visit) error {
	var found struct{ Data []ownClient }
	if err := v.get("/api/portal/me/oauth-clients?page_size=200", &found); err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "clients", "OAuth clients", &clientsView{found.Data, v.site.origin() + "/oauth/token"})
}

func renewClient(v *visit) error {
	var made model.Client
	if err := v.post("/api/portal/me/oauth-clients/"+escape(v.params["client"])+"/secret", nil, &made); err != nil {
		return err
	}
	return v.showSecret(&secretView{Kind: "oauth", Name: made.AppDescription, Key: made.ClientID, Password: made.Secret, Back: "/clients"})
}

func deleteClient(v *visit) error {
	if v.value("sure") != "yes" {
		return &fault{Status: fasthttp.StatusBadRequest, Message: "Please tick that the client is to be deleted."}
	}
	if _, err := v.call(call{method: fasthttp.MethodDelete, path: "/api/portal/me/oauth-clients/" + escape(v.params["client"])}); err != nil {
		return err
	}
	return v.redirect("/clients?done=deleted")
}
