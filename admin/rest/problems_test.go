package rest

import (
	"fmt"
	"testing"
)

func TestProblemsAreLocatedInWhatWasSent(t *testing.T) {
	const body = `{
  "name": "täst 😀", "a\"b": 1,
  "proxy": {"listen_path": "/x", "listen_path":
    "/y"},
  "auth_configs": {"a.b": {"use_param": true}, "basic": {}},
  "list": [1, {"id": "x"}, [ 2 , {"deep": null} ]]
}`
	for path, want := range map[string]string{
		"name": "2:3", `["a\"b"]`: "2:22", "proxy": "3:3", "proxy.listen_path": "3:34", "proxy.target_url": "3:3", `auth_configs["a.b"].use_param`: "5:28",
		"auth_configs": "5:3", `auth_configs["none"].use_param`: "5:3", "list[0]": "6:12", "list[1].id": "6:16", `list["x"].id`: "6:16", "list[2][1].deep": "6:35", "list[9]": "6:3", "nothing": "1:1",
	} {
		found := []Problem{{Path: path}}
		locate(found, []byte(body))
		if got := fmt.Sprintf("%d:%d", found[0].Line, found[0].Column); got != want {
			t.Errorf("%s is at %s instead of %s", path, got, want)
		}
	}
}

func TestProblemsAreLocatedInWrappedObjectsAndBatches(t *testing.T) {
	for _, c := range []struct{ body, path, want string }{
		{"{\"strict\":true,\n\"api_definition\":{\n\"name\":1}}", "name", "3:1"},
		{"{\"apis\":[{\"api_id\":\"a\"},\n{\"api_id\":\"b\",\n\"proxy\":{}}]}", `apis["b"].proxy.listen_path`, "3:1"},
		{"{\"keys\":[\n{\"key_hash\":\"h\",\n\"session\":{\n\"rate\":1}}]}", `keys["h"].session.rate`, "4:1"},
		{"[1]", "name", "1:1"},
		{"{", "name", "0:0"},
		{"", "name", "0:0"},
		{`{"a":}`, "a", "0:0"},
	} {
		found := []Problem{{Path: c.path}}
		locate(found, []byte(c.body))
		if got := fmt.Sprintf("%d:%d", found[0].Line, found[0].Column); got != c.want {
			t.Errorf("%s in %s is at %s instead of %s", c.path, c.body, got, c.want)
		}
	}
}

func TestTextsOfProblemsAreDivided(t *testing.T) {
	for text, want := range map[string]Problem{
		"proxy.listen_path: must begin with /":  {Path: "proxy.listen_path", Message: "must begin with /"},
		`access_rights["a: b"].limit: is wrong`: {Path: `access_rights["a: b"].limit`, Message: "is wrong"},
		"list[2].x: a: b":                       {Path: "list[2].x", Message: "a: b"},
		"there are further problems":            {Message: "there are further problems"},
		"some words: and more":                  {Message: "some words: and more"},
		"[: x":                                  {Message: "[: x"},
	} {
		if got := problemsOf([]string{text})[0]; got != want {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// FuzzLocate looks for bodies and paths that break the walk.
func FuzzLocate(f *testing.F) {
	f.Add(`{"a":[1,{"b":"c"}]}`, "a[1].b")
	f.Add(`{"":{"\"":[[[]]]}}`, `[""]["\""][0][0]`)
	f.Add(" {} ", "a")
	f.Fuzz(func(t *testing.T, body, path string) {
		found := []Problem{{Path: path}}
		locate(found, []byte(body))
		if found[0].Line < 0 || found[0].Column < 0 {
			t.Errorf("%q in %q is at %d:%d", path, body, found[0].Line, found[0].Column)
		}
	})
}
