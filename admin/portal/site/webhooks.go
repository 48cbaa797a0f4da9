package site

import (
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/webhooks"
	"github.com/sluicegate/sluice/admin/rest"
)

func webhookRoutes() []route {
	return []route{
		{"GET", "/webhooks", true, listWebhooks},
		{"POST", "/webhooks", true, addWebhook},
		{"GET", "/webhooks/{id}", true, showWebhook},
		{"POST", "/webhooks/{id}", true, saveWebhook},
		{"POST", "/webhooks/{id}/secret", true, renewWebhook},
		{"POST", "/webhooks/{id}/do", true, actOnWebhook},
		{"GET", "/webhooks/{id}/{delivery}", true, showDelivery},
		{"POST", "/webhooks/{id}/{delivery}", true, replayDelivery},
	}
}

const webhooksPath = "/api/portal/me/webhooks"

// webhooksView is the list of the visitor's webhooks.
type webhooksView struct {
	Webhooks []webhooks.Webhook
	Form     *form
	subscription
}

// A subscription is the types of events that a form offers, and those that it chooses.
type subscription struct {
	Types  []webhooks.EventType
	Chosen map[string]bool
}

// OfPortal returns the types of events of the portal itself.
func (s subscription) OfPortal() []webhooks.EventType { return s.types(false) }

// OfStreams returns the types of events that streams publish.
func (s subscription) OfStreams() []webhooks.EventType { return s.types(true) }

func (s subscription) types(ofStreams bool) (some []webhooks.EventType) {
	for _, t := range s.Types {
		if len(t.APIs) > 0 == ofStreams {
			some = append(some, t)
		}
	}
	return some
}

// choosePortal chooses what "*" stands for: all types of events of the portal itself.
func (s subscription) choosePortal() {
	for _, t := range s.OfPortal() {
		s.Chosen[t.Type] = true
	}
}

func webhookForm() *form {
	return newForm(
		&field{Name: "name", Label: "Name", Hint: "For yourself."},
		&field{Name: "url", Label: "URL", Type: "url", Required: true, Hint: "Messages are posted to it by https."},
	)
}

func (v *visit) webhooksView() (*webhooksView, error) {
	var found webhooks.List
	if err := v.get(webhooksPath+"?page_size=100", &found); err != nil {
		return nil, err
	}
	view := &webhooksView{Webhooks: found.Data, Form: webhookForm()}
	var err error
	view.subscription, err = v.subscription()
	return view, err
}

// subscription returns one that chooses nothing.
func (v *visit) subscription() (subscription, error) {
	var known webhooks.Types
	err := v.get("/api/portal/webhooks/events", &known)
	return subscription{known.Data, make(map[string]bool)}, err
}

func listWebhooks(v *visit) error {
	view, err := v.webhooksView()
	if err != nil {
		return err
	}
	if event := v.query("event"); event != "" {
		view.Chosen[event] = true
	} else {
		view.choosePortal()
	}
	return v.show(fasthttp.StatusOK, "webhooks", "Webhooks", view)
}

// events returns the types of events that the form chose; all but those of streams are "*".
func (v *visit) events(of subscription) []string {
	chosen := v.values("events")
	every := subscription{of.Types, make(map[string]bool)}
	every.choosePortal()
	others := slices.DeleteFunc(slices.Clone(chosen), func(e string) bool { return every.Chosen[e] })
	if len(chosen)-len(others) < len(every.Chosen) {
		return chosen
	}
	return append([]string{"*"}, others...)
}

func addWebhook(v *visit) error {
	view, err := v.webhooksView()
	if err != nil {
		return err
	}
	body := webhooks.Wanted{Name: v.value("name"), URL: v.value("url"), Events: v.events(view.subscription)}
	var answer struct {
		rest.Envelope
		Meta webhooks.Shown
	}
	if err := v.post(webhooksPath, &body, &answer); err != nil {
		view.Form.take(v)
		for _, e := range v.values("events") {
			view.Chosen[e] = true
		}
		status, err := view.Form.refused(err)
		if err != nil {
			return err
		}
		return v.show(status, "webhooks", "Webhooks", view)
	}
	return v.showSecret(&secretView{Kind: "webhook", Name: body.Name, Key: answer.Meta.Secret, Back: "/webhooks/" + answer.ID})
}

// webhookView is the page of one webhook with its log.
type webhookView struct {
	Hook  webhooks.Webhook
	Tag   string
	Form  *form
	Log   []delivery.Entry
	Pager *pager
	subscription
}

func (v *visit) webhookView() (*webhookView, error) {
	view := &webhookView{Form: webhookForm()}
	path := webhooksPath + "/" + escape(v.params["id"])
	var err error
	if view.Tag, err = v.call(call{method: fasthttp.MethodGet, path: path, into: &view.Hook}); err != nil {
		return nil, err
	}
	if view.subscription, err = v.subscription(); err != nil {
		return nil, err
	}
	for _, e := range view.Hook.Events {
		view.Chosen[e] = true
	}
	if view.Chosen["*"] {
		view.choosePortal()
	}
	view.Form.Fields["name"].Value, view.Form.Fields["url"].Value = view.Hook.Name, view.Hook.URL
	var log delivery.Log
	n := v.pageNumber()
	err = v.get(fmt.Sprintf("%s/deliveries?page_size=20&p=%d", path, n), &log)
	view.Log, view.Pager = log.Data, newPager(v, "/webhooks/"+v.params["id"], n, log.Pages)
	return view, err
}

func showWebhook(v *visit) error {
	view, err := v.webhookView()
	if err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "webhook", "Webhook", view)
}

func saveWebhook(v *visit) error {
	view, err := v.webhookView()
	if err != nil {
		return err
	}
	body := map[string]any{"name": v.value("name"), "url": v.value("url"), "events": v.events(view.subscription)}
	_, err = v.call(call{method: fasthttp.MethodPut, path: webhooksPath + "/" + escape(v.params["id"]), body: body, match: v.value("tag")})
	if err == nil {
		return v.redirect("/webhooks/" + v.params["id"] + "?done=saved")
	}
	view.Form.take(v)
	status, err := view.Form.refused(err)
	if err != nil {
		return err
	}
	return v.show(status, "webhook", "Webhook", view)
}

func renewWebhook(v *visit) error {
	var answer struct{ Meta webhooks.Shown }
	if err := v.post(webhooksPath+"/"+escape(v.params["id"])+"/secret", map[string]string{"grace": "24h"}, &answer); err != nil {
		return err
	}
	until := v.site.deps.Now().Add(mustDuration("24h")).UTC().Format(timeFormat)
	return v.showSecret(&secretView{Kind: "webhook", Key: answer.Meta.Secret, Former: until, Back: "/webhooks/" + v.params["id"]})
}

// webhookActs are the paths and results of what can be done with a webhook.
var webhookActs = map[string]string{"ping": "pinged", "enable": "enabled", "disable": "disabled"}

func actOnWebhook(v *visit) error {
	id, act := v.params["id"], v.value("act")
	path := webhooksPath + "/" + escape(id)
	if act == "delete" {
		if v.value("sure") != "yes" {
			return &fault{Status: fasthttp.StatusBadRequest, Message: "Please tick that the webhook is to be deleted."}
		}
		if _, err := v.call(call{method: fasthttp.MethodDelete, path: path}); err != nil {
			return err
		}
		return v.redirect("/webhooks?done=deleted")
	}
	done := webhookActs[act]
	if done == "" {
		return &fault{Status: fasthttp.StatusBadRequest, Message: "There is no such action."}
	}
	if err := v.post(path+"/"+act, nil, nil); err != nil {
		return err
	}
	return v.redirect("/webhooks/" + id + "?done=" + done)
}

// deliveryView is the page of one message to a webhook.
type deliveryView struct {
	Hook  string
	Entry delivery.Entry
}

func showDelivery(v *visit) error {
	view := &deliveryView{Hook: v.params["id"]}
	if err := v.get("/api/portal/me/deliveries/"+escape(v.params["delivery"]), &view.Entry); err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "delivery", "Message", view)
}

func replayDelivery(v *visit) error {
	if err := v.post("/api/portal/me/deliveries/"+escape(v.params["delivery"])+"/replay", nil, nil); err != nil {
		return err
	}
	return v.redirect("/webhooks/" + v.params["id"] + "?done=replayed")
}
