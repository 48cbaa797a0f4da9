package graph

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"
)

// A topicFetch takes the value of a subscription's root field of a message. It is the source
// of a subscription for the planner, and that of a query for the resolver: an event that has
// come is the response of the plan's first request.
type topicFetch struct {
	noFiles
	*restField
	key   string
	shape shape
}

// Load implements resolve.DataSource.
func (f *topicFetch) Load(ctx context.Context, _ http.Header, _ []byte) ([]byte, error) {
	r := runOf(ctx)
	sh := shaper{schema: f.graph.data.Schema, out: []byte(`{"data":{` + strconv.Quote(f.key) + `:`)}
	event, err := astjson.ParseBytes(r.event.body)
	switch {
	case err != nil:
		err = f.faultf(r, "the event is not JSON")
	case event.Exists("fault"):
		err = f.faultf(r, "%s", event.GetStringBytes("fault"))
	case !event.Exists("message"):
		err = f.faultf(r, "the topics are not served now")
	}
	if err != nil {
		sh.out = append(sh.out, `null},"errors":`...)
		return append(appendErrors(sh.out, err.Error(), [][]string{{f.key}}, nil), '}'), nil
	}
	sh.value(&f.shape, event.Get("message"))
	return append(sh.out, `}}`...), nil
}

var errNotCalled = errors.New("subscriptions are begun by the gateway")

// Start implements resolve.SubscriptionDataSource.
func (f *topicFetch) Start(*resolve.Context, http.Header, []byte, resolve.SubscriptionUpdater) error {
	return errNotCalled
}

// HashTriggerInput implements resolve.SubscriptionDataSource.
func (f *topicFetch) HashTriggerInput([]byte, *xxhash.Digest) error { return errNotCalled }
