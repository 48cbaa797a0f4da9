package config

import (
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// JWT holds the settings of JSON Web Tokens.
type JWT struct {
	// Tokens that are remembered, so that their signatures are checked once.
	CacheSize int `yaml:"cache_size" range:"1..10000000"`
	// Time between two fetches of the keys that an issuer publishes.
	KeysRefresh time.Duration `yaml:"keys_refresh" range:"100ms..24h"`
	// Least time between two fetches that tokens with unknown key ids bring about.
	KeysRetry time.Duration `yaml:"keys_retry" range:"100ms..1h"`
	// How long keys are used whose issuer cannot be asked.
	KeysStale time.Duration `yaml:"keys_stale" range:"100ms..720h"`
	// Time for one fetch.
	KeysTimeout time.Duration `yaml:"keys_timeout" range:"100ms..1m"`
}

// Events holds the settings of who is told of events.
type Events struct {
	// Whether webhooks may call private and loopback addresses: allow, refuse, or
	// auto (allow in `up`, refuse elsewhere). Link-local and metadata addresses
	// are never called.
	PrivateTargets string `yaml:"private_targets" oneof:"auto allow refuse" required:"true"`
	// Folder of the templates that definitions name. Empty: they can name none.
	Templates string `yaml:"templates"`
	// Time for one try to send a message.
	Timeout time.Duration `yaml:"timeout" range:"100ms..5m"`
	// Messages that may wait for one service; what is beyond is dropped and
	// counted.
	Queue int `yaml:"queue" range:"1..100000"`
	// Told of events of keys and of the process, which belong to no API.
	Webhook Webhook `yaml:"webhook"`
	// Told of the shares of quotas that are reached.
	QuotaWebhook Webhook `yaml:"quota_webhook"`
}

// Webhook is a service that is told of events over HTTP.
type Webhook struct {
	// Address to call. Empty: nobody is told.
	URL secret.Value `yaml:"url"`
	// Method of the call.
	Method string `yaml:"method" oneof:"GET POST PUT PATCH DELETE" required:"true"`
	// File in events.templates that makes the message. Empty: the usual one.
	Template string `yaml:"template"`
	// Authorization header of the call.
	Authorization secret.Value `yaml:"authorization"`
	// Time in which the same message is not sent again. 0: it always is.
	Cooldown time.Duration `yaml:"cooldown" range:"0s..24h"`
}
