package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesOfClassicConfigurations: they are taken, or refused with what to write instead.
func TestNamesOfClassicConfigurations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "classic.yaml")
	try := func(text string) (*Config, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := Load(Sources{Files: []string{path}})
		return cfg, err
	}
	cfg, err := try("override_messages: {auth.key_not_found: {message: No, code: 404}, auth: {cert_expired: {code: 401}}}")
	if err != nil || cfg.OverrideMessages.Auth.KeyNotFound != (Message{"No", 404}) || cfg.OverrideMessages.Auth.CertExpired.Code != 401 {
		t.Errorf("dotted names: %+v, %v", cfg, err)
	}
	for text, want := range map[string]string{
		"override_messages: {auth.key_not_found: {code: 404}, auth: {key_not_found: {code: 403}}}": "given twice",
		"override_messages: {auth.key_not_fuond: {code: 404}}":                                     "unknown key",
		"monitor: {configuration: {target_path: x}}":                                               "it is events.quota_webhook, with url, method, template, authorization and cooldown,",
		"policies: {policy_path: policies}":                                                        "it is gateway.policies_file, a JSON object from policy id to policy",
		"template_path: templates":                                                                 "it is events.templates here",
		"enable_sentinel_rate_limiter: true":                                                       "leave it out: rates are counted exactly",
	} {
		if _, err := try(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
