package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzValkeyURL(f *testing.F) {
	for _, seed := range []string{"redis://u:p@a:1,b/2", "rediss://[::1]", "unix:///x", "redis://@@/", "redis://a:b:c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := parseValkeyURL(text)
		if err == nil && (len(target.Addresses) == 0 || target.Addresses[0] == "") {
			t.Errorf("%q gives no address: %+v", text, target)
		}
	})
}

func FuzzYAML(f *testing.F) {
	for _, c := range problemCases {
		for _, text := range c.files {
			if len(text) < 4096 {
				f.Add([]byte(text))
			}
		}
	}
	f.Add([]byte(Default().YAML(nil)))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := Default()
		l := newLoader(cfg, func(string) (string, bool) { return "", false })
		l.readYAML(newSource("f.yaml", text), text)
		l.check(AnyRole)
		if len(l.problems) == 0 {
			return
		}
		message := (&Problems{List: l.problems}).Error()
		if !utf8.ValidString(message) && utf8.Valid(text) {
			t.Errorf("the message is not UTF-8: %q", message)
		}
		for _, p := range l.problems {
			if p.Message == "" || p.Origin.Kind == FromFile && p.Origin.Name == "" {
				t.Errorf("a problem without words: %+v", p)
			}
		}
	})
}

func TestHostileTextsAreRefusedWithinMemory(t *testing.T) {
	staircase := ""
	for i := 0; len(staircase) < maxFile-400; i++ {
		staircase += strings.Repeat(" ", i) + "a:\n"
	}
	for _, text := range []string{
		strings.Repeat("[", maxFile), strings.Repeat("{a: ", maxFile/4), strings.Repeat("- ", maxFile/2), strings.Repeat("? ", maxFile/2),
		strings.Repeat("!!a ", maxFile/4), strings.Repeat("&a ", maxFile/3), strings.Repeat("a: ", maxFile/3), strings.Repeat("a:\n", 2000),
		strings.Repeat("a\n", 2000), strings.Repeat("\"", maxFile), strings.Repeat("-\n", 2000), strings.Repeat("a: [b]\n", 2000), staircase,
		"secret: |\n" + strings.Repeat("  x\n", maxFile/5) + "y: [",
	} {
		l := newLoader(Default(), func(string) (string, bool) { return "", false })
		l.readYAML(newSource("f.yaml", []byte(text)), []byte(text))
		if len(l.problems) == 0 {
			t.Errorf("%.10q… was accepted", text)
		}
	}
}

func TestALongReportIsCutAndSaysSo(t *testing.T) {
	var text strings.Builder
	for i := range 70 {
		text.WriteString(fmt.Sprintf("zzz%d: 1\n", i))
	}
	_, _, err := load(t, Sources{}, text.String())
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) != mostProblems || !strings.HasPrefix(err.Error(), "configuration: 70 problems\n") || !strings.HasSuffix(err.Error(), "\n… and 20 more") {
		t.Errorf("%v", err)
	}
}
