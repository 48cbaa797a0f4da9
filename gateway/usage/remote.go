package usage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/usage"
)

// dialWithin bounds an attempt to connect to the admin.
const dialWithin = 5 * time.Second

// Remote is an admin in another process.
type Remote struct {
	address string
	token   secret.Value
	client  *http.Client
}

// NewRemote returns the admin at a URL. Requests carry token as a bearer token. over may be
// nil: Go's own transport.
func NewRemote(url string, token secret.Value, over http.RoundTripper) *Remote {
	if over == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.DialContext = (&net.Dialer{Timeout: dialWithin}).DialContext
		own.MaxIdleConnsPerHost = 1
		over = own
	}
	return &Remote{
		address: strings.TrimSuffix(url, "/") + "/api/gateway/usage", token: token,
		client: &http.Client{Transport: over, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// maxAnswer bounds an answer of the admin, in bytes.
const maxAnswer = 16 << 10

// Receive implements Receiver.
func (r *Remote) Receive(ctx context.Context, b *usage.Batch) (refused usage.Receipt, err error) {
	body, err := json.Marshal(b)
	if err != nil {
		return refused, &RefusedError{fmt.Errorf("writing a batch: %w", err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address, bytes.NewReader(body))
	if err != nil {
		return refused, fmt.Errorf("sending usage: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token.Reveal())
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return refused, fmt.Errorf("sending usage: %w", err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // for the error, and so that the connection can be used again
	if resp.StatusCode == http.StatusOK {
		return receiptIn(said), nil
	}
	said = said[:min(len(said), 512)]
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return refused, &RefusedError{fmt.Errorf("the admin answered %s: %s", resp.Status, said)}
	}
	return refused, fmt.Errorf("sending usage: the admin answered %s: %s", resp.Status, said)
}

// receiptIn returns the receipt in an answer; an answer without one, as of an older
// admin, means that all counts.
func receiptIn(answer []byte) usage.Receipt {
	var said struct{ Meta usage.Receipt }
	if json.Unmarshal(answer, &said) != nil {
		return usage.Receipt{}
	}
	return said.Meta
}
