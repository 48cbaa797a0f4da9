package match

import "testing"

func TestPathsAreReadAsTheLeastCarefulDo(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b": "/a/b", "/a;x/b": "/a/b", "/a%2Fb": "/a/b", "/a%5Cb": "/a/b", "//a///b/": "/a/b/", "/;x/a": "/a", "/a;x%2Fb;": "/a/b", "/a%25b": "/a%25b", "/": "/",
	} {
		if got := string(AppendPlain([]byte("x"), []byte(path))); got != "x"+want {
			t.Errorf("%s is read as %s, not %s", path, got[1:], want)
		}
		if IsPlain([]byte(path)) && want != path {
			t.Errorf("%s is plain", path)
		}
	}
}

func TestNoWayOfWritingAPathLeadsAroundARule(t *testing.T) {
	list, err := CompileEndpoints([]Endpoint[string]{
		{Path: "/hot", Method: "GET", Value: "hot"}, {Path: "/a/b", Value: "a/b"}, {Path: "/listen/x", Value: "x"}, {Path: "/cold", Value: "cold"}, {Path: "/odd;v=1", Value: "odd"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var room []byte
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/hot", "hot"},
		{"GET", "/hot;x", "hot"},
		{"GET", "/hot%2Fx", "hot"},
		{"GET", "/;/hot", "hot"},
		{"POST", "/hot;x", ""},
		{"GET", "/hotter;x", ""},
		{"GET", "/a//b", "a/b"},
		{"GET", "/a%2Fb;y/z", "a/b"},
		{"GET", "//x", "x"},
		{"GET", "/x", "x"},
		{"GET", "/cold;/a/b", "cold"},
		{"GET", "/odd;v=1", "odd"},
		{"GET", "/odd", ""},
	} {
		got, found, grown := list.FindStrict([]byte(c.method), []byte(c.path), []byte("/listen"+c.path), room)
		if room = grown; got != c.want || found != (c.want != "") {
			t.Errorf("%s %s: %q %t, want %q", c.method, c.path, got, found, c.want)
		}
	}
	path := []byte("/a%2Fb;y")
	if n := testing.AllocsPerRun(100, func() { _, _, room = list.FindStrict([]byte("GET"), path, path, room) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
