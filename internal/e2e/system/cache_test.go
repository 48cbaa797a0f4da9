package system

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

func TestKeptAnswersAreForgottenByEveryGatewayOfAnAdmin(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	up := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { fmt.Fprint(ctx, calls.Add(1)) })
	s := newSplit(t, 2, testenv.Postgres(t))
	def := rig.APIDef("books", up, true)
	def["cache_options"] = object{"enable_cache": true, "cache_timeout": 600, "cache_all_safe_requests": true}
	s.rest.Do(http.MethodPost, "/api/apis", def)
	s.everywhere("the API", "/books/x", "", status(200))
	rig.ForgetEverywhere(t, s.gateways, "/books/x", func() {
		if got := rig.Call(t, "DELETE", s.gateways[0].Traffic+"/svc/cache/books", nil, "X-Svc-Authorization", splitSecret); got.Status != 200 {
			t.Fatal(got)
		}
	})
	rig.ForgetEverywhere(t, s.gateways, "/books/x", func() { s.rest.Do(http.MethodDelete, "/api/apis/books/cache", nil) })
}
