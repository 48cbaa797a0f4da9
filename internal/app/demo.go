package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// demo is the sample upstream and what was made to govern it.
type demo struct {
	upstream *sample
	key      secret.Value
}

// demoQuota and demoPeriod are what the keyed API of the demo admits.
const (
	demoQuota  = 10
	demoPeriod = 60 // seconds
)

// The ids of what the demo makes.
const (
	demoOpen   = "demo-open"
	demoKeyed  = "demo-keyed"
	demoPolicy = "demo"
)

// seed makes whatever of the demo is missing, through the admin's REST as
// anybody would. What people changed since stays as it is, but for the address
// of the sample upstream.
func (u *allInOne) seed(ctx context.Context) error {
	if u.management.key.Empty() {
		return fmt.Errorf("%s is gone, so the demo cannot be looked after; start without --demo", u.management.keyFile)
	}
	upstream, err := startSample()
	if err != nil {
		return err
	}
	u.demo = &demo{upstream: upstream}
	s := &seeder{client: &http.Client{Transport: overMemory(u.memory), Timeout: 15 * time.Second}, key: u.management.key}
	for _, api := range []demoAPI{
		{demoOpen, "Demo, open", "/open/", true, upstream.url()},
		{demoKeyed, "Demo, with a key", "/keyed/", false, upstream.url()},
	} {
		if err := s.api(ctx, api); err != nil {
			return err
		}
	}
	if err := s.policy(ctx); err != nil {
		return err
	}
	u.demo.key, err = s.consumer(ctx, filepath.Join(u.cfg.DataDir, "demo.key"))
	return err
}

// tell prints lines to copy.
func (d *demo) tell(w io.Writer, gateway string) {
	say(w, "demo           2 APIs, 1 policy (%d calls per %d s), 1 key. Try:\n", demoQuota, demoPeriod)
	say(w, "  curl -i %s/open/hello\n", gateway)
	say(w, "  curl -i %s/keyed/hello -H 'Authorization: %s'\n", gateway, d.key.Reveal())
	say(w, "  for i in $(seq 12); do curl -s -o /dev/null -w '%%{http_code}\\n' %s/keyed/hello -H 'Authorization: %s'; done\n", gateway, d.key.Reveal())
}

// seeder calls the admin.
type seeder struct {
	client *http.Client
	key    secret.Value
}

var errAbsent = errors.New("not there")

// call makes one call and decodes the answer into into, unless that is nil.
func (s *seeder) call(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, inMemoryURL+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", s.key.Reveal())
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest && method == http.MethodGet:
		return errAbsent
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// demoAPI is one API of the demo.
type demoAPI struct {
	id, name, listenPath string
	open                 bool // no key is asked for
	target               string
}

// api makes an API, or corrects its target: the sample may have another port.
func (s *seeder) api(ctx context.Context, api demoAPI) error {
	def := map[string]any{}
	err := s.call(ctx, http.MethodGet, "/api/apis/"+api.id, nil, &def)
	if errors.Is(err, errAbsent) {
		return s.call(ctx, http.MethodPost, "/api/apis", map[string]any{
			"api_id": api.id, "name": api.name, "use_keyless": api.open, "strip_auth_data": !api.open,
			"proxy": map[string]any{"listen_path": api.listenPath, "target_url": api.target, "strip_listen_path": true},
		}, nil)
	}
	if err != nil {
		return err
	}
	proxy, ok := def["proxy"].(map[string]any)
	if !ok || proxy["target_url"] == api.target {
		return nil
	}
	proxy["target_url"] = api.target
	return s.call(ctx, http.MethodPut, "/api/apis/"+api.id, def, nil)
}

func (s *seeder) policy(ctx context.Context) error {
	err := s.call(ctx, http.MethodGet, "/api/portal/policies/"+demoPolicy, nil, nil)
	if !errors.Is(err, errAbsent) {
		return err
	}
	return s.call(ctx, http.MethodPost, "/api/portal/policies", map[string]any{
		"id": demoPolicy, "name": "Demo", "rate": 20, "per": 1, "quota_max": demoQuota, "quota_renewal_rate": demoPeriod,
		"access_rights": map[string]any{demoKeyed: map[string]any{"api_id": demoKeyed, "api_name": "Demo, with a key", "versions": []string{"Default"}}},
	}, nil)
}

// consumer returns the demo's key, making one where the file does not have it.
func (s *seeder) consumer(ctx context.Context, file string) (secret.Value, error) {
	kept, err := secret.ReadFile(file)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return kept, err
	}
	var made struct {
		Key string `json:"key_id"`
	}
	if err := s.call(ctx, http.MethodPost, "/api/keys", map[string]any{"alias": "demo", "apply_policies": []string{demoPolicy}}, &made); err != nil {
		return secret.Value{}, err
	}
	v, _, err := secret.KeepFile(file, func() string { return made.Key })
	return v, err
}
