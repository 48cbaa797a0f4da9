package control

import (
	"slices"
	"testing"
)

type forgotten []string

func (f *forgotten) Invalidate(api string) { *f = append(*f, api) }

func TestCachedResponsesOfAnAPIAreDropped(t *testing.T) {
	var asked forgotten
	b := onFiles(t, func(d *Deps) { d.Answers = &asked })
	b.want("POST", "/svc/apis", definitionOf("shop", ""), 200, done("shop", "added"))
	b.reload()
	b.want("DELETE", "/svc/cache/shop", "", 200, `{"status":"ok","message":"cache invalidated"}`)
	if got := b.call("DELETE", "/svc/cache/unknown", ""); got.status != 404 {
		t.Errorf("an API that is not there: %d %s", got.status, got.body)
	}
	if !slices.Equal(asked, []string{"shop"}) {
		t.Errorf("forgotten: %v", asked)
	}
}
