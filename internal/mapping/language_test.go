package mapping

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

var update = flag.Bool("update", false, "write testdata/names.txt")

// TestNamesAreThoseAllowed fails when an upgrade of the library brings names that nobody
// has looked at: each might read files or keep state.
func TestNamesAreThoseAllowed(t *testing.T) {
	var names []string
	language().env.WalkFunctions(func(name string, _ *bloblang.FunctionView) { names = append(names, "function "+name) })
	language().env.WalkMethods(func(name string, _ *bloblang.MethodView) { names = append(names, "method "+name) })
	slices.Sort(names)
	got := strings.Join(names, "\n") + "\n"
	if *update {
		if err := os.WriteFile("testdata/names.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	allowed := strings.Split(strings.TrimSpace(string(want)), "\n")
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			t.Errorf("new in the language: %s; remove or bound it, or allow it in testdata/names.txt", name)
		}
	}
	for _, name := range allowed {
		if !slices.Contains(names, name) {
			t.Errorf("no longer in the language: %s", name)
		}
	}
}

func TestRemovedNamesAreRefusedWithTheReason(t *testing.T) {
	for name, why := range removed() {
		for _, script := range []string{"root = 1\nroot.a = " + name + `("a")`, "root = 1\nroot.a = this.b." + name + `("a")`, "root = 1\nroot.a = " + name + "(this.x)"} {
			_, err := Compile(script)
			p, ok := errors.AsType[*Problem](err)
			if !ok || p.Line != 2 || !strings.Contains(p.Message, why) {
				t.Errorf("%q: %v", script, err)
			}
		}
		if _, err := CompileTemplate("a ${! " + name + `("a") }`); err == nil {
			t.Errorf("a template may use %s", name)
		}
	}
}

func TestWhatCannotBeCompiledIsAProblemOfOneLine(t *testing.T) {
	for _, c := range []struct {
		script, want string
	}{
		{`import "./other.blobl"`, "1:1: failed to read import: imports are disabled"},
		{"root = 1\nimport \"/etc/passwd\"", "2:1: failed to read import: imports are disabled"},
		{`from "/etc/passwd"`, "1:1: failed to read import: imports are disabled"},
		{"root = range(0, 10001)", "at most 10000"},
		{"root = range(0, 9223372036854775807)", "at most 10000"},
		{"root = range(-9223372036854775807, 9223372036854775807)", "at most 10000"},
		{"root = range(9223372036854775807, -9223372036854775807, -1)", "at most 10000"},
		{"root = range(0, 5, 0)", "must not be 0"},
		{"root = range(5, 0)", "must be less than"},
		{"root = range(0, 5, -1)", "must not be greater"},
		{`root = "abc".repeat(1000000)`, "at most 1048576 bytes"},
		{`root = "abc".repeat(-1)`, "must not be negative"},
		{`root = this.a.decompress("lz4")`, "use gzip"},
		{"root = nanoid(257)", "want 1 to 256"},
		{`root = nanoid(10, "")`, "1 to 255 characters"},
		{"root = [\n 1\n 2 ]", "2:3: expected query"},
		{"root = \"a\nb", "end quote"},
		{"root = " + strings.Repeat("(", 40) + "1" + strings.Repeat(")", 40), "1:40: brackets are nested"},
		{strings.Repeat("root.a = 1\n", 2000), "larger than 16 KiB"},
	} {
		_, err := Compile(c.script)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%.40q: %v; want %s", c.script, err, c.want)
		}
	}
}

func TestBoundsHoldWhileScriptsRun(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, maxDecompress+1))
	_ = w.Close()
	for _, c := range []struct {
		script string
		body   []byte
		want   string
	}{
		{"root = range(0, this.n)", []byte(`{"n":10001}`), "at most 10000"},
		{`root = this.s.repeat(this.n)`, []byte(`{"s":"ab","n":1000000}`), "at most 1048576 bytes"},
		{`root = content().decompress("gzip")`, packed.Bytes(), "more than 16777216 bytes"},
		{"root = nanoid(this.n)", []byte(`{"n":257}`), "want 1 to 256"},
		{"map a {\n root = this.apply(\"a\")\n}\nroot = this.apply(\"a\")", []byte("{}"), "maximum allowed stacks of 32"},
		{"map a {\n root = this.apply(\"b\")\n}\nmap b {\n root = this.apply(\"a\")\n}\nroot = this.apply(\"a\")", []byte("{}"), "maximum allowed stacks of 32"},
	} {
		s, err := Compile(c.script)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Run(NewDoc(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.script, err, c.want)
		}
	}
}

// TestOwnFunctionsAnswerLikeThoseOfTheLibrary compares what was replaced, within its bounds.
func TestOwnFunctionsAnswerLikeThoseOfTheLibrary(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("hello"))
	_ = w.Close()
	for _, script := range []string{
		"root = range(0, 5)", "root = range(0, 5, 2)", "root = range(5, 0, -2)", "root = range(-3, 3)", "root = range(0, 1, 5)",
		"root = range(start: 0, stop: this.n, step: 3)", "root = range(3, 3, -1)",
		`root = "ab".repeat(3)`, `root = "".repeat(3)`, `root = "ab".repeat(0)`, `root = content().repeat(2)`, "root = this.n.repeat(2)",
		"root = nanoid(12, \"a\")", "root = nanoid().length()", "root = nanoid(40).length()",
		`root = this.z.decode("base64").decompress("gzip")`, `root = this.z.decompress("gzip")`,
	} {
		ours, err := Compile(script)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := bloblang.NewEnvironment().Parse(script)
		if err != nil {
			t.Fatal(err)
		}
		doc := NewDoc([]byte(`{"n":10,"z":"H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA=="}`))
		got, err := ours.Run(doc)
		want, wantErr := doc.message.BloblangQuery(theirs)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v; the library says %v", script, err, wantErr)
			continue
		}
		if err != nil {
			continue
		}
		body, _ := got.Bytes()
		if wantBody, _ := want.AsBytes(); !bytes.Equal(body, wantBody) {
			t.Errorf("%s: %s; the library says %s", script, body, wantBody)
		}
	}
}
