package admin

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func tagged(id, path, tags string) string {
	return strings.Replace(anAPI(id, path), "{", `{"tags":[`+tags+`],`, 1)
}

func servedIn(b *definition.Bundle) string {
	var ids []string
	for _, api := range b.APIs {
		ids = append(ids, api.ID)
	}
	return strings.Join(ids, " ")
}

// TestGatewaysGetTheAPIsOfTheirTags: those without tags, and those with one of theirs.
func TestGatewaysGetTheAPIsOfTheirTags(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.Call("POST", "/api/apis", b.editor, tagged("eu", "/eu", `"eu","west"`)).Want(200)
	b.Call("POST", "/api/apis", b.editor, tagged("us", "/us", `"us"`)).Want(200)
	b.atRevision("3")
	for tags, want := range map[string]string{"": "a", "eu": "a eu", "us,west": "a eu us", "asia": "a"} {
		r := b.bundle("0s", "", "X-Sluice-Tags", tags).Want(200)
		if got := servedIn(parseBundle(t, r.Body)); got != want {
			t.Errorf("a gateway with the tags %q gets %q, want %q", tags, got, want)
		}
	}
	if got := servedIn(parseBundle(t, b.bundle("0s", "").Want(200).Body)); got != "a eu us" {
		t.Errorf("a gateway that knows of no tags gets %q", got)
	}
}

func TestChangesOfTagsReachGatewaysAsDeltas(t *testing.T) {
	b := start(t)
	for _, id := range []string{"a", "b", "c"} {
		b.createAPI(b.editor, id, "/"+id)
	}
	b.atRevision("3")
	poll := func(have, until string) (tag, body string) {
		t.Helper()
		wait.Until(t, until, func() bool {
			r := b.bundle("0s", have, "X-Sluice-Tags", "eu", "A-IM", definition.DeltaEncoding)
			tag, body = r.Header.Get("ETag"), string(r.Body)
			return (r.Status == 226 || have == "" && r.Status == 200) && strings.Contains(body, until)
		})
		return tag, body
	}
	tag, _ := poll("", `"revision":"3"`)
	b.Call("PUT", "/api/apis/b", b.editor, tagged("b", "/b", `"us"`)).Want(200)
	tag, body := poll(tag, `"revision":"4"`)
	if !strings.Contains(body, `"apis":{"b":null}`) {
		t.Errorf("an API that went to another segment: %s", body)
	}
	b.Call("PUT", "/api/apis/c", b.editor, tagged("c", "/c2", `"eu"`)).Want(200)
	if tag, body = poll(tag, `"revision":"5"`); !strings.Contains(body, `"c":{`) || strings.Contains(body, `"b":`) {
		t.Errorf("an API of the segment: %s", body)
	}
	b.Call("PUT", "/api/apis/b", b.editor, anAPI("b", "/b3")).Want(200)
	if _, body = poll(tag, `"revision":"6"`); !strings.Contains(body, `"b":{`) {
		t.Errorf("an API that lost its tags: %s", body)
	}
}

func TestTheListOfGatewaysHasTheirTags(t *testing.T) {
	b := start(t)
	b.bundle("0s", "", "X-Sluice-Gateway", "g1", "X-Sluice-Tags", definition.JoinTags([]string{"eu", "a,b"}))
	b.bundle("0s", "", "X-Sluice-Gateway", "g2")
	wait.Until(t, "two gateways are known", func() bool {
		return strings.Count(string(b.Call("GET", "/api/gateways", b.viewer, "").Body), `"name":`) == 2
	})
	b.Call("GET", "/api/gateways", b.viewer, "").Want(200).Says(`"tags":["a,b","eu"]`, `"tags":[]`)
}
