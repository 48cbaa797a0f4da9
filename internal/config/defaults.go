package config

import (
	"path/filepath"
	"time"
)

// Default returns the default configuration. Its DataDir is root's; Load sets that of the
// user who runs the process.
func Default() *Config {
	return &Config{
		DataDir:          rootDataDir,
		Gateway:          defaultGateway(),
		GraphQL:          defaultGraphQL(),
		Upstream:         defaultUpstream(),
		Cache:            Cache{MaxBytes: 128 << 20, MaxBody: 256 << 10},
		Overload:         Overload{TargetDelay: 50 * time.Millisecond, MaxDelay: 500 * time.Millisecond},
		Keys:             defaultKeys(),
		Passwords:        Passwords{CacheSize: 10_000, CacheTTL: time.Minute, WrongPerUser: 10, WrongPerAddress: 60, HashesAtOnce: 2, MaxBody: 64 << 10},
		Quota:            Quota{OnStoreError: "local", MaxWaiting: 1000},
		Monitor:          Monitor{GlobalTriggerLimit: 80, MonitorUserKeys: true},
		Database:         Database{MaxConns: 20, StatementTimeout: 10 * time.Second},
		Postgres:         Postgres{SharedBuffers: 64 << 20},
		Valkey:           Valkey{Timeout: 200 * time.Millisecond},
		JWT:              defaultJWT(),
		Events:           defaultEvents(),
		Admin:            Admin{Listen: "127.0.0.1:8081", TLS: ListenerTLS{MinVersion: "1.2"}, LoginRate: 5, AuditRetention: 730 * 24 * time.Hour, PageSize: 10, PrivateUpstreams: "auto"},
		Portal:           defaultPortal(),
		Streaming:        defaultStreaming(),
		Telemetry:        Telemetry{Metrics: true, Listen: "127.0.0.1:8082", TLS: ListenerTLS{MinVersion: "1.2"}, OTLP: OTLP{Sample: 0.01}},
		OverrideMessages: ownMessages(),
		Usage:            Usage{Flush: 10 * time.Second, RetentionMinute: 8 * 24 * time.Hour, RetentionHour: 400 * 24 * time.Hour, RetentionRefusals: 7 * 24 * time.Hour, RetentionSamples: 7 * 24 * time.Hour, SamplesKept: 10_000},
		Log:              Log{Level: "info", Format: "auto", Access: "stdout", SampleOK: 1},
	}
}

func defaultGateway() Gateway {
	return Gateway{
		Listen:         ":8080",
		TLS:            TLS{AskClients: "auto", MinVersion: "1.2", HandshakeTimeout: 10 * time.Second, MaxHandshakes: 1000},
		ACME:           ACME{Directory: letsEncrypt, Challenges: []string{"tls-alpn-01", "http-01"}},
		Group:          "default",
		ReloadCPU:      0.2,
		DrainDelay:     5 * time.Second,
		DrainTimeout:   15 * time.Second,
		ReadTimeout:    15 * time.Second,
		WriteTimeout:   60 * time.Second,
		IdleTimeout:    75 * time.Second,
		MaxRequestBody: 4 << 20,
		MaxHeader:      16 << 10,
		MaxHeaderCount: 100,
		MaxURL:         8 << 10,

		ControlLoginRate:     5,
		PathLists:            "anchored",
		WebsocketIdleTimeout: 10 * time.Minute,
		TunnelRecheck:        time.Second,
		MaxTunnelsPerKey:     1000,
		MaxTunnelsPerAPI:     10_000,
		GraphQLConnections: GraphQLConnections{
			MaxOperations: 100,
			MaxMessage:    1 << 20,
			MaxQueue:      4 << 20,
			MaxResponse:   4 << 20,
			InitTimeout:   15 * time.Second,

			MaxUnauthenticated: 1000,
			DrainSpread:        5 * time.Second,

			Heartbeat:    15 * time.Second,
			WriteTimeout: 10 * time.Second,
		},
		RatelimitHeaders: RatelimitHeaders{
			Source:    "quotas",
			Limit:     "X-RateLimit-Limit",
			Remaining: "X-RateLimit-Remaining",
			Reset:     "X-RateLimit-Reset",
		},
		ErrorDetail: "reason", RefusalsKept: 2048,
	}
}

func defaultGraphQL() GraphQL {
	return GraphQL{
		MaxBody:       1 << 20,
		MaxBatch:      100,
		MaxTokens:     15_000,
		MaxDepth:      64,
		DepthBase:     1,
		MaxValueDepth: 32,
		MaxAliases:    1_000,
		MaxDirectives: 500,
		MaxLiterals:   2_000,
		MaxFragments:  200,
		MaxOperations: 50,
		MaxRootFields: 500,
		MaxFields:     20_000,
		Cache:         32 << 20,
		RefusedCache:  2 << 20,
		Plans:         32 << 20,
	}
}

func defaultUpstream() Upstream {
	return Upstream{
		DialTimeout:     3 * time.Second,
		ResponseTimeout: 30 * time.Second,
		MaxConnsPerHost: 512,
		MaxConnWait:     time.Second,
		MaxWaiting:      4096,
		IdleConnTimeout: 60 * time.Second,
		Retries:         1,
		RawIO:           true,
	}
}

func defaultKeys() Keys {
	return Keys{
		Hash:         "sha256",
		CacheSize:    200_000,
		CacheTTL:     60 * time.Second,
		OnStoreError: "serve",
		StaleTTL:     60 * time.Second,
		NegativeSize: 100_000,
		NegativeTTL:  2 * time.Second,
		Prefix:       "slk_",
		MinLength:    3,
		MinOwnLength: 16,
	}
}

const rootDataDir = "/var/lib/sluice"

// dataDir returns the default directory of state: the system's for root, the user's for
// others, "" for a user without a home.
func dataDir(uid int, lookup func(string) (string, bool)) string {
	if uid == 0 {
		return rootDataDir
	}
	// The XDG specification ignores relative paths.
	if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice")
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "sluice")
	}
	return ""
}

func defaultJWT() JWT {
	return JWT{
		CacheSize:   50_000,
		KeysRefresh: 5 * time.Minute,
		KeysRetry:   10 * time.Second,
		KeysStale:   24 * time.Hour,
		KeysTimeout: 5 * time.Second,
	}
}

func defaultEvents() Events {
	post := Webhook{Method: "POST"}
	return Events{PrivateTargets: "auto", Timeout: 10 * time.Second, Queue: 1000, Webhook: post, QuotaWebhook: post}
}
