package config

import (
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// JWT holds the settings of JSON Web Tokens.
type JWT struct {
	// Verified tokens that are cached, so that their signatures are checked once.
	CacheSize int `yaml:"cache_size" range:"1..10000000"`
	// Interval between two fetches of an issuer's published keys.
	KeysRefresh time.Duration `yaml:"keys_refresh" range:"100ms..24h"`
	// Least time between two fetches caused by tokens with unknown key ids.
	KeysRetry time.Duration `yaml:"keys_retry" range:"100ms..1h"`
	// How long keys are used while their issuer is unreachable.
	KeysStale time.Duration `yaml:"keys_stale" range:"100ms..720h"`
	// Time for one fetch.
	KeysTimeout time.Duration `yaml:"keys_timeout" range:"100ms..1m"`
}

// Events holds the settings of event handlers.
type Events struct {
	// Whether webhooks may call private and loopback addresses: allow, refuse, or
	// auto (allow in `up`, refuse elsewhere). Link-local and metadata addresses
	// are never called.
	PrivateTargets string `yaml:"private_targets" oneof:"auto allow refuse" required:"true"`
	// Folder of the templates that definitions refer to. Empty: no templates.
	Templates string `yaml:"templates"`
	// Time for one attempt to send a message.
	Timeout time.Duration `yaml:"timeout" range:"100ms..5m"`
	// Messages that may wait for one service; further ones are dropped and counted.
	Queue int `yaml:"queue" range:"1..100000"`
	// Send keys to webhooks as clients sent them. Off: the beginning of their hash, as in
	// logs.
	RawKeys bool `yaml:"raw_keys"`
	// Receives events of keys and of the process, which belong to no API.
	Webhook Webhook `yaml:"webhook"`
	// Receives TriggerExceeded events.
	QuotaWebhook Webhook `yaml:"quota_webhook"`
}

// Webhook is a service that receives events over HTTP.
type Webhook struct {
	// URL to call. Empty: no webhook.
	URL secret.Value `yaml:"url"`
	// Method of the call.
	Method string `yaml:"method" oneof:"GET POST PUT PATCH DELETE" required:"true"`
	// File in events.templates for the message. Empty: the default one.
	Template string `yaml:"template"`
	// Authorization header of the call.
	Authorization secret.Value `yaml:"authorization" form:"sent"`
	// Time during which the same message is not sent again. 0: it is always sent.
	Cooldown time.Duration `yaml:"cooldown" range:"0s..24h"`
}
