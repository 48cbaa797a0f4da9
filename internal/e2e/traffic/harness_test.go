package traffic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// testSecret is the gateway API's in tests of traffic.
const testSecret = "secret-of-the-traffic-tests"

// traffic is a gateway on files, with its access log.
type traffic struct {
	*rig.Server
	addr   string // of the gateway, without scheme
	log    string // path of the access log
	signed int    // keys that were made
}

// newTraffic starts a gateway that serves definitions and policies from files.
func newTraffic(t testing.TB, with settings, policies object, apis ...object) *traffic {
	t.Helper()
	dir := rig.DataDir(t)
	apps := filepath.Join(dir, "apps")
	if err := os.MkdirAll(apps, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		writeJSON(t, filepath.Join(apps, fmt.Sprint(api["api_id"], ".json")), api)
	}
	g := &traffic{log: filepath.Join(dir, "access.log")}
	own := settings{
		"data_dir": dir, "gateway.apps_dir": apps, "log.access": "file", "log.access_file": g.log, "secret": testSecret,
		"upstream.response_timeout": "30s",
	}
	if policies != nil {
		own["gateway.policies_file"] = filepath.Join(dir, "policies.json")
		writeJSON(t, own["gateway.policies_file"], policies)
	}
	g.Server = rig.NewGateway(t, rig.Merge(own, with))
	g.addr = strings.TrimPrefix(g.Traffic, "http://")
	g.StartReady()
	return g
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newKey makes a key from a session by the gateway API.
func (g *traffic) newKey(session object) string {
	g.T.Helper()
	var made struct{ Key string }
	got := rig.Call(g.T, http.MethodPost, g.Control+"/svc/keys", session, "X-Svc-Authorization", testSecret)
	if got.Status != http.StatusOK {
		g.T.Fatalf("making a key: %s", got)
	}
	got.Into(g.T, &made)
	return rig.Plant(made.Key)
}

// logged returns the access log after it has been written: a last request, of
// which the log must tell, is behind all others.
func (g *traffic) logged() string {
	g.T.Helper()
	g.signed++
	last := fmt.Sprintf("/last-%d", g.signed)
	rig.Call(g.T, http.MethodGet, g.Traffic+last, nil)
	var text []byte
	rig.Eventually(g.T, "the access log", func() (err error) {
		if text, err = os.ReadFile(g.log); err == nil {
			err = rig.Lacks(string(text), last)
		}
		return err
	})
	return string(text)
}

// deadAddress is where nobody listens.
func deadAddress(t testing.TB) string { return "http://" + rig.FreeAddress(t) }

// connect opens a connection that nothing waits on for ever.
func connect(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(rig.Patience))
	return c.(*net.TCPConn)
}

// conversation sends bytes as they are, ends the sending side, and returns what
// came back until the other side ended as well.
func conversation(t testing.TB, addr, raw string) string {
	t.Helper()
	c := connect(t, addr)
	defer c.Close()
	go func() { // the answer may come, and the connection end, before all is sent
		_, _ = io.WriteString(c, raw)
		_ = c.CloseWrite()
	}()
	var got bytes.Buffer
	_, _ = io.Copy(&got, c) // a reset ends it as well; what counts is what came
	return got.String()
}

// parse takes a conversation apart into its answers, interim ones left out. The
// methods are those of the requests in turn.
func parse(t testing.TB, raw string, methods ...string) (all []rig.Answer) {
	t.Helper()
	br := bufio.NewReader(strings.NewReader(raw))
	for {
		if _, err := br.Peek(1); err != nil {
			return all
		}
		method := http.MethodGet
		if len(all) < len(methods) {
			method = methods[len(all)]
		}
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			t.Errorf("answer %d: %v in %.300q", len(all), err, raw)
			return all
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("body of answer %d: %v in %.300q", len(all), err, raw)
			return all
		}
		if resp.StatusCode >= 200 {
			all = append(all, rig.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)})
		}
	}
}

// seen is what an upstream was asked, request line by request line.
type seen struct {
	mu    sync.Mutex
	lines []string
	heads []string
}

func (s *seen) add(line, head string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines, s.heads = append(s.lines, line), append(s.heads, head)
}

// with returns the request lines that contain a text.
func (s *seen) with(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// lastHead returns the head of the last request.
func (s *seen) lastHead() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) == 0 {
		return ""
	}
	return s.heads[len(s.heads)-1]
}

// request is what an upstream was asked. Its body is still to be read.
type request struct {
	method, path string
	header       http.Header
	br           *bufio.Reader
	length       int64 // of the body, -1 when chunked
}

// readRequest reads one request's head, and notes it.
func (s *seen) readRequest(br *bufio.Reader) (*request, error) {
	var head bytes.Buffer
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return nil, err
		}
		head.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	line, _, _ := strings.Cut(head.String(), "\r\n")
	s.add(line, head.String())
	req, err := http.ReadRequest(bufio.NewReader(&head))
	if err != nil {
		return nil, err
	}
	return &request{req.Method, req.RequestURI, req.Header, br, req.ContentLength}, nil
}

// drain reads the body to its end, and not a byte further.
func (r *request) drain() ([]byte, error) {
	var body bytes.Buffer
	err := r.drainTo(&body)
	return body.Bytes(), err
}

// drainTo is drain for bodies of any size.
func (r *request) drainTo(w io.Writer) error {
	if r.length >= 0 {
		_, err := io.CopyN(w, r.br, r.length)
		return err
	}
	if _, err := io.Copy(w, httputil.NewChunkedReader(r.br)); err != nil {
		return err
	}
	for { // trailers, of which there should be none, and the empty line
		line, err := r.br.ReadString('\n')
		if err != nil || line == "\r\n" {
			return err
		}
	}
}
