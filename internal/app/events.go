package app

import (
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/event/webhook"
	"github.com/sluicegate/sluice/internal/secret"
)

// pauses are those before each further attempt to reach a webhook.
var pauses = [...]time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// webhookTargets returns which addresses webhooks may have. inUp: admin and gateway are
// in one process.
func webhookTargets(e *config.Events, inUp bool) dialguard.Policy {
	return dialguard.Policy{Private: e.PrivateTargets == "allow" || e.PrivateTargets == "auto" && inUp}
}

// newHandling returns the sink that sends events to webhooks. inUp: admin and gateway
// are in one process.
func newHandling(base common, l *live, inUp bool) (*webhook.Sink, *webhook.Sender, error) {
	e := base.cfg.Events
	sender := webhook.New(webhook.Options{
		Addresses: webhookTargets(&e, inUp),
		Timeout:   e.Timeout, Pauses: pauses[:], Queue: e.Queue, Log: base.log,
	})
	all, err := newHook("events.webhook", &e, &e.Webhook)
	if err != nil {
		return nil, nil, err
	}
	trigger, err := newHook("events.quota_webhook", &e, &e.QuotaWebhook)
	if err != nil {
		return nil, nil, err
	}
	o := webhook.SinkOptions{API: l.API, Sender: sender, Templates: e.Templates, Trigger: trigger, Log: base.log}
	if all != nil {
		o.All = append(o.All, all)
	}
	return webhook.NewSink(o), sender, nil
}

// newHook returns the webhook of the settings under key, or nil if it has no URL.
func newHook(key string, e *config.Events, said *config.Webhook) (*webhook.Hook, error) {
	if said.URL.Empty() {
		return nil, nil
	}
	if problem := definition.CheckWebhook(said.URL.Reveal()); problem != "" {
		return nil, fmt.Errorf("%s.url: %s", key, problem)
	}
	t, err := webhook.LoadTemplate(e.Templates, said.Template, "")
	if err != nil {
		return nil, fmt.Errorf("%s.template: %w", key, err)
	}
	return &webhook.Hook{Method: said.Method, URL: said.URL.Reveal(), Header: authorization(said.Authorization), Template: t, Cooldown: said.Cooldown}, nil
}

func authorization(value secret.Value) map[string]string {
	if value.Empty() {
		return nil
	}
	return map[string]string{"Authorization": value.Reveal()}
}
