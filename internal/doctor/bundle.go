package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/redact"
)

// A Note is one file of a bundle.
type Note struct {
	Name string
	Text []byte
}

// asked are the REST paths of the admin in a bundle, by file name.
var asked = []struct{ name, path string }{
	{"admin/config.json", "/api/config"},
	{"admin/gateways.json", "/api/gateways"},
	{"admin/revisions.json", "/api/config/revisions?page_size=50"},
	{"admin/certificates.json", "/api/certs?p=1&page_size=500"},
	{"admin/apis.json", "/api/apis?p=1&page_size=500"},
	{"admin/policies.json", "/api/portal/policies?p=1&page_size=500"},
}

// maxMetrics bounds the metrics in a bundle, in bytes.
const maxMetrics = 16 << 20

// Bundle writes an archive (tar, gzip) for support requests: the findings, the settings,
// and the state of the servers, without secrets and keys. notes are further files, which
// must not hold secrets either.
func (d *Doctor) Bundle(ctx context.Context, to io.Writer, found []Finding, notes ...Note) (files int, err error) {
	zipped := gzip.NewWriter(to)
	out := tar.NewWriter(zipped)
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return 0, fmt.Errorf("writing what was found: %w", err)
	}
	machine := fmt.Sprintf("%s/%s, %d processors, %s, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), d.Now().UTC().Format(time.RFC3339))
	all := append([]Note{{"findings.json", text}, {"machine.txt", []byte(machine)}}, notes...)
	all = append(append(all, d.ofAdmin(ctx)...), d.ofGateway(ctx)...)
	for _, one := range all {
		head := tar.Header{Name: "sluice-bundle/" + one.Name, Mode: 0o600, Size: int64(len(one.Text)), ModTime: d.Now(), Typeflag: tar.TypeReg}
		if err := out.WriteHeader(&head); err != nil {
			return 0, fmt.Errorf("writing %s: %w", one.Name, err)
		}
		if _, err := out.Write(one.Text); err != nil {
			return 0, fmt.Errorf("writing %s: %w", one.Name, err)
		}
	}
	if err := out.Close(); err != nil {
		return 0, fmt.Errorf("writing the bundle: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return 0, fmt.Errorf("writing the bundle: %w", err)
	}
	return len(all), nil
}

// ofAdmin requests files from the admin, if there is one. An error is written in place of
// a file.
func (d *Doctor) ofAdmin(ctx context.Context) (all []Note) {
	if d.Admin == nil {
		return nil
	}
	for _, one := range asked {
		answer, err := d.Admin.Call(ctx, http.MethodGet, one.path, nil)
		if err != nil {
			all = append(all, Note{strings.TrimSuffix(one.name, ".json") + ".error.txt", []byte(redact.Address(err.Error()) + "\n")})
			continue
		}
		all = append(all, Note{one.name, indented(redact.ForOthers(answer))})
	}
	return all
}

func indented(text []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return text
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// ofGateway requests the gateway's health, and the metrics of either server.
func (d *Doctor) ofGateway(ctx context.Context) (all []Note) {
	if d.Gateway != "" {
		if text, err := d.read(ctx, d.ToGateway, d.Gateway+"/hello"); err == nil {
			all = append(all, Note{"gateway/hello.json", indented(redact.ForOthers(text))})
		}
	}
	if d.Admin != nil {
		if text, err := d.read(ctx, d.ToAdmin, d.Admin.Base()+"/metrics"); err == nil {
			all = append(all, Note{"metrics.txt", text})
		}
	}
	return all
}

func (d *Doctor) read(ctx context.Context, over http.RoundTripper, from string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	if token := d.Config.Telemetry.Token.Reveal(); token != "" && strings.HasSuffix(from, "/metrics") {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: over}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", from, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxMetrics))
}
