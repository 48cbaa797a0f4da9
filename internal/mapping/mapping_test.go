package mapping

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

func compile(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func body(t *testing.T, d *Doc) string {
	t.Helper()
	if d == nil {
		return "filtered"
	}
	text, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRunMapsACopy(t *testing.T) {
	d := NewDoc([]byte(`{"a":1,"n":12345678901234567890,"f":1.10}`))
	d.SetMeta("x", "1")
	got, err := compile(t, "root = this\nroot.a = this.a + 1\nmeta x = \"2\"").Run(d)
	if err != nil {
		t.Fatal(err)
	}
	if body(t, got) != `{"a":2,"f":1.10,"n":12345678901234567890}` || got.Meta("x") != "2" {
		t.Errorf("got %s, x %q", body(t, got), got.Meta("x"))
	}
	if body(t, d) != `{"a":1,"n":12345678901234567890,"f":1.10}` || d.Meta("x") != "1" {
		t.Errorf("the doc has changed: %s, x %q", body(t, d), d.Meta("x"))
	}
	filtered, err := compile(t, "root = deleted()").Run(d)
	if filtered != nil || err != nil {
		t.Errorf("filtered: %v, %v", filtered, err)
	}
	raw, err := compile(t, `meta size = content().length()`).Run(NewDoc([]byte("not json")))
	if err != nil || body(t, raw) != "not json" || raw.Meta("size") != "8" {
		t.Errorf("a body that is not read need not be JSON: %v", err)
	}
	if _, err = compile(t, "root = this.a").Run(NewDoc([]byte("not json"))); err == nil {
		t.Error("a body that is read must be JSON")
	}
}

func TestWhatJSONCannotExpressIsAnError(t *testing.T) {
	got, err := compile(t, "root.a = (-1.0).log()").Run(NewDoc([]byte("{}")))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := got.Bytes(); err == nil {
		t.Errorf("encoded as %q", text)
	}
}

func TestCheckTakesOnlyBooleans(t *testing.T) {
	d := NewDoc([]byte(`{"a":1,"s":"x"}`))
	d.SetMeta("m", "v")
	for script, want := range map[string]string{
		"this.a == 1": "true", "this.a > 1": "false", `@m == "v"`: "true", `metadata("m") == "w"`: "false", "this.s": "not true or false",
		"this.a": "a number", "deleted()": "deletes the message", "this": "an object", "[1]": "an array", "null": "null",
		"if false { true }": "not true or false", "this.a + this.s": "cannot add", "root = this.a == 1": "true",
	} {
		yes, err := compile(t, script).Check(d)
		if got := fmt.Sprint(yes, " ", err); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", script, got, want)
		}
	}
	if body(t, d) != `{"a":1,"s":"x"}` {
		t.Error("a check has changed the doc")
	}
}

func TestOverlay(t *testing.T) {
	original := NewDoc([]byte(`{"id":7,"a":{"b":1}}`))
	original.SetMeta("from", "original")
	request, err := compile(t, "root.q = this.id\nmeta extra = \"1\"").Overlay(original.Empty(), original)
	if err != nil || body(t, request) != `{"q":7}` || request.Meta("from") != "original" || request.Meta("extra") != "1" {
		t.Fatalf("request %s, %v", body(t, request), err)
	}
	result := NewDoc([]byte(`{"name":"seven"}`))
	result.SetMeta("from", "result")
	folded, err := compile(t, `root.a.name = this.name
root.at = @from
root.meta = metadata("from")`).Overlay(original, result)
	if want := `{"a":{"b":1,"name":"seven"},"at":"original","id":7,"meta":"result"}`; err != nil || body(t, folded) != want {
		t.Errorf("folded %s, %v; want %s", body(t, folded), err, want)
	}
	if body(t, original) != `{"id":7,"a":{"b":1}}` || original.Meta("extra") != "" {
		t.Errorf("the original has changed: %s", body(t, original))
	}
	if gone, err := compile(t, "root = deleted()").Overlay(original, result); gone != nil || err != nil {
		t.Errorf("deleted: %v, %v", gone, err)
	}
}

func TestAPanicOfAScriptIsAnError(t *testing.T) {
	env := language().env.Clone()
	if err := env.RegisterFunctionV2("fail", bloblang.NewPluginSpec(), func(*bloblang.ParsedParams) (bloblang.Function, error) {
		return func() (any, error) { panic("secret") }, nil
	}); err != nil {
		t.Fatal(err)
	}
	s, err := newDialect(env).script(key{text: "root = fail()"})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDoc([]byte("{}"))
	_, err = s.Run(d)
	p, ok := errors.AsType[*PanicError](err)
	if !ok || len(p.Stack) == 0 || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if _, err = s.Check(d); err == nil {
		t.Error("a check that panics succeeds")
	}
	if body(t, d) != "{}" {
		t.Error("the doc cannot be used any more")
	}
}

func TestEqualTextsShareAScriptWhileItIsUsed(t *testing.T) {
	l := newDialect(language().env)
	k := key{text: "root = this.shared"}
	var group sync.WaitGroup
	found := make([]*Script, 20)
	for i := range found {
		group.Go(func() { found[i], _ = l.script(k) })
	}
	group.Wait()
	for _, s := range found {
		if s == nil || s != found[0] {
			t.Fatal("equal texts were compiled twice")
		}
	}
	if other, _ := l.script(key{text: "root = this.other"}); other == found[0] {
		t.Fatal("different texts share a script")
	}
	for range 2 {
		if _, err := l.script(key{text: "root = ("}); err == nil {
			t.Fatal("no error")
		}
	}
	runtime.KeepAlive(found)
	found = nil
	for range 1000 { // cleanups run some time after a collection
		runtime.GC()
		runtime.Gosched()
		l.mu.Lock()
		n := len(l.kept)
		l.mu.Unlock()
		if n == 0 {
			return
		}
	}
	t.Errorf("%d scripts are kept that nobody uses", len(l.kept))
}

func TestOneDocIsReadByManyGoroutines(t *testing.T) {
	d := NewDoc([]byte(`{"a":[1,2,3],"b":{"c":"x"}}`))
	d.SetMeta("m", "v")
	run, overlay := compile(t, "root = this\nroot.b.d = @m"), compile(t, "root.z = this.b.c")
	template, err := CompileTemplate("${! this.b.c } ${! @m }")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				got, err := run.Run(d)
				if err != nil {
					t.Error(err)
					return
				}
				got.SetMeta("m", "w")
				if _, err = overlay.Overlay(d, got); err != nil {
					t.Error(err)
				}
				if text, err := template.Text(func() *Doc { return d }); err != nil || text != "x v" {
					t.Errorf("%q, %v", text, err)
				}
				if text, err := d.Bytes(); err != nil || len(text) == 0 {
					t.Error(err)
				}
				d.Size(1000)
			}
		})
	}
	group.Wait()
}

func TestItemsAndJoin(t *testing.T) {
	d := NewDoc([]byte(`{"a":{"list":[1,"x",null,{"k":[2]}]}}`))
	d.SetMeta("m", "v")
	items, err := d.Items("a.list", 4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range items {
		got = append(got, body(t, item)+item.Meta("m"))
	}
	if strings.Join(got, " ") != `1v "x"v nullv {"k":[2]}v` {
		t.Errorf("items %s", got)
	}
	joined, err := Join(items)
	if err != nil || body(t, joined) != `[1,"x",null,{"k":[2]}]` || joined.Meta("m") != "v" {
		t.Errorf("joined %v, %v", joined, err)
	}
	for path, want := range map[string]string{
		"a": "a is not an array", "": "the message is not an array", "b.c": "b.c does not exist", "a.list.9": "a.list.9 does not exist", "a.list.3.k": "",
	} {
		if _, err := d.Items(path, 4); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%q: %v; want %s", path, err, want)
		}
	}
	if _, err = d.Items("a.list", 3); err == nil {
		t.Error("more items than allowed")
	}
	if _, err = NewDoc([]byte("x")).Items("", 3); err == nil {
		t.Error("items of a text")
	}
}

func TestSizeIsThatOfTheBodyOrLess(t *testing.T) {
	for _, text := range []string{`{"a":[1,2.5,true,null,"xyz"],"b":{"c":"<>\n"}}`, `[]`, `"x"`, "raw", ""} {
		d := NewDoc([]byte(text))
		if got := d.Size(1 << 20); got != len(text) {
			t.Errorf("%s: %d", text, got)
		}
	}
	d, err := compile(t, "root = this").Run(NewDoc([]byte(`{"a":[1,2.5,true,null,"xyz"],"b":{"c":"<>\n"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	estimate := d.Size(1 << 20)
	if whole := len(body(t, d)); estimate > whole || estimate < whole/2 {
		t.Errorf("estimated %d of %d", estimate, whole)
	}
	if d, err = compile(t, `root.a = range(0, 10000).map_each("x".repeat(100))`).Run(NewDoc(nil)); err != nil {
		t.Fatal(err)
	}
	if got := d.Size(5000); got < 5000 || got > 6000 {
		t.Errorf("counted to %d; want to stop above 5000", got)
	}
}
