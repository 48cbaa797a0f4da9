// Package live tests GraphQL connections with the clients and servers that others use:
// npm packages, and Chromium. It holds tests only.
package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

const schema = "type Query { hello(name: String): String } type Mutation { add(n: Int!): Int } type Subscription { count(to: Int!): Int }"

// The APIs, by how their upstreams stream.
var apis = []struct{ id, kind, options string }{
	{"transport", "graphql-transport-ws", `{}`},
	{"legacy", "graphql-ws", `{}`},
	{"events", "sse", `{}`},
	{"posted", "sse", `{"sse_use_post": true}`},
}

// wants is what a client gets, by operation.
var wants = map[string]string{
	"query":        `[{"hello":"Hello you"},"complete"]`,
	"mutation":     `[{"add":0},"complete"]`,
	"subscription": `[{"count":1},{"count":2},{"count":3},"complete"]`,
	"refused":      `["error: field: nope not defined on type: Query"]`,
}

// outcome is what a client got of an operation.
type outcome struct{ Client, API, Operation, Got string }

func TestClientsAndServersOfOthers(t *testing.T) {
	testenv.Packages(t, "internal/e2e/live")
	gateway, key := start(t, upstreams(t))
	check(t, node(t, "clients.mjs", gateway, key), 3, slices.Sorted(maps.Keys(wants)))
}

// EventSource can neither send mutations, which take POST, nor see why it is refused.
func TestEventSource(t *testing.T) {
	chromium := testenv.Chromium(t)
	testenv.Packages(t, "internal/e2e/live")
	gateway, key := start(t, upstreams(t))
	check(t, node(t, "eventsource.mjs", gateway, key, "LIVE_CHROMIUM="+chromium), 1, []string{"query", "subscription"})
}

// upstreams starts the servers, and returns their addresses by transport.
func upstreams(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.Command("node", "upstreams.mjs")
	cmd.SysProcAttr = testenv.ChildAttr(syscall.SIGTERM)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	addresses := make(map[string]string)
	if err == nil {
		err = json.Unmarshal(line, &addresses)
	}
	if err != nil {
		t.Fatalf("the upstreams do not start: %v: %s", err, &stderr)
	}
	return addresses
}

// start starts a gateway in front of the upstreams, and returns its address and a key.
func start(t *testing.T, addresses map[string]string) (gateway, key string) {
	t.Helper()
	const secret = "secret-of-the-live-tests"
	dir := rig.DataDir(t)
	apps, ids := filepath.Join(dir, "apps"), []string(nil)
	if err := os.MkdirAll(apps, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		var proxy rig.Object
		if err := json.Unmarshal([]byte(api.options), &proxy); err != nil {
			t.Fatal(err)
		}
		proxy["subscription_type"] = api.kind
		def := rig.GraphDef(api.id, addresses[api.kind], false, rig.Object{"schema": schema, "proxy": proxy})
		def["auth"] = rig.Object{"auth_header_name": "Authorization", "use_param": true, "param_name": "key"}
		rig.SaveJSON(t, filepath.Join(apps, api.id+".json"), def)
		ids = append(ids, api.id)
	}
	g := rig.NewGateway(t, rig.Settings{"data_dir": dir, "gateway.apps_dir": apps, "gateway.websockets": "true", "secret": secret}).StartReady()
	var made struct{ Key string }
	rig.Call(t, "POST", g.Control+"/svc/keys", rig.Object{"org_id": "", "rate": -1, "quota_max": -1, "access_rights": rig.AccessTo(ids...)}, "X-Svc-Authorization", secret).Into(t, &made)
	return strings.TrimPrefix(g.Traffic, "http://"), rig.Plant(made.Key)
}

// node runs a program of clients, and returns what they got.
func node(t *testing.T, program, gateway, key string, more ...string) (all []outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
	defer cancel()
	var ids []string
	for _, api := range apis {
		ids = append(ids, api.id)
	}
	cmd := exec.CommandContext(ctx, "node", program)
	cmd.SysProcAttr = testenv.ChildAttr(syscall.SIGTERM)
	cmd.Env = append(os.Environ(), "LIVE_GATEWAY="+gateway, "LIVE_KEY="+key, "LIVE_APIS="+strings.Join(ids, " "))
	cmd.Env = append(cmd.Env, more...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", program, err, out, &stderr)
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var one outcome
		if err := lines.Decode(&one); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v\n%s%s", program, err, out, &stderr)
		}
		all = append(all, one)
	}
}

// check compares what clients got with what they should get, and prints it as a table.
func check(t *testing.T, all []outcome, clients int, operations []string) {
	t.Helper()
	if want := clients * len(apis) * len(operations); len(all) != want {
		t.Errorf("%d outcomes, want %d", len(all), want)
	}
	var table strings.Builder
	for _, one := range all {
		fmt.Fprintf(&table, "%-26s | %-9s | %-12s | %s\n", one.Client, one.API, one.Operation, one.Got)
		want := wants[one.Operation]
		if one.Client == "graphql-sse" && one.Operation == "refused" {
			want = `["error: Server responded with 400: Bad Request"]` // it does not read the body
		}
		if one.Got != want {
			t.Errorf("%s, %s of %s: got %s, want %s", one.Client, one.Operation, one.API, one.Got, want)
		}
	}
	t.Logf("client | API | operation | got\n%s", &table)
}
