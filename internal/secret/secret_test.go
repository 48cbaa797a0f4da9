package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const planted = "hunter2-planted-value"

// holder keeps its secrets where package fmt cannot call their methods.
type holder struct {
	hidden Value
	key    Key
	Shown  Value
}

func TestNoWayOfPrintingShowsASecret(t *testing.T) {
	v, k := New(planted), NewKey()
	h := holder{hidden: v, key: k, Shown: v}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s", "%T"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+" "+verb+" "+verb+"\n", v, &v, h, []Value{v}, map[string]Key{"k": k})
	}
	fmt.Fprintln(&out, v, h, k, v.GoString(), k.GoString(), k.String(), fmt.Errorf("%w %v", fmt.Errorf("x"), v))
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("m", "value", v, "holder", h, "key", k, "pointer", &v)
	}
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		data, err := marshal(map[string]any{"value": v, "key": k, "holder": h})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	for _, clear := range []string{planted, k.Text().Reveal(), fmt.Sprintf("%x", planted), strings.Trim(fmt.Sprint(k.bytes()[:6]), "[]")} {
		if strings.Contains(out.String(), clear) {
			t.Errorf("the output holds a secret in clear: %s", out.String())
		}
	}
	if !strings.Contains(out.String(), mask) {
		t.Error("the output has no mask, so nothing was printed")
	}
}

func TestEveryTextFormIsTheMask(t *testing.T) {
	for _, v := range []Value{New(planted), {}} {
		text, _ := v.MarshalText()
		jsonText, _ := json.Marshal(v)
		yamlText, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{v.String(), fmt.Sprintf("%q", v), string(text), string(jsonText), strings.Trim(strings.TrimSpace(string(yamlText)), `"'`), v.LogValue().String()}
		want := []string{mask, mask, mask, `"***"`, mask, mask}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("form %d is %q, want %q", i, got[i], want[i])
			}
		}
	}
}

func TestEqual(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	for _, c := range []struct {
		name      string
		v         Value
		presented string
		want      bool
	}{
		{"the same", New(planted), planted, true},
		{"other of the same length", New("abcd"), "abce", false},
		{"a beginning", New(planted), planted[:3], false},
		{"longer", New(planted), planted + "x", false},
		{"nothing", New(planted), "", false},
		{"longer than the hash's buffer", New(long), long, true},
		{"long and other at the end", New(long), long[:999] + "x", false},
		{"nothing against an empty value", Value{}, "", false},
		{"something against an empty value", New(""), "x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.v.Equal([]byte(c.presented)); got != c.want {
				t.Errorf("Equal = %v, want %v", got, c.want)
			}
		})
	}
}

func TestEqualDoesNotAllocate(t *testing.T) {
	v, presented := New(strings.Repeat("x", 200)), bytes.Repeat([]byte("x"), 200)
	if n := testing.AllocsPerRun(100, func() { v.Equal(presented) }); n != 0 {
		t.Errorf("Equal allocates %v times", n)
	}
}

func TestRevealGivesTheContentBack(t *testing.T) {
	if v := New(planted); v.Reveal() != planted || v.Empty() {
		t.Errorf("Reveal = %q, Empty = %v", v.Reveal(), v.Empty())
	}
	if v := New(""); v.Reveal() != "" || !v.Empty() {
		t.Errorf("of an empty value: Reveal = %q, Empty = %v", v.Reveal(), v.Empty())
	}
}
