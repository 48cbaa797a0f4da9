// Package image has the image of admin and gateway.
package image

import (
	"go/version"
	"os"
	"regexp"
	"testing"
)

var (
	base     = regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+\.\d+)(@sha256:[0-9a-f]{64})? AS build$`)
	language = regexp.MustCompile(`(?m)^go (\S+)$`)
)

// The image is built by an exact version of Go, which is recent enough for the module.
func TestTheImageIsBuiltByAVersionOfGo(t *testing.T) {
	find := func(path string, pattern *regexp.Regexp) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := pattern.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has nothing like %s", path, pattern)
		}
		return string(found[1])
	}
	if got, want := find("Dockerfile", base), find("../../../go.mod", language); version.Compare("go"+got, "go"+want) < 0 {
		t.Errorf("the image is built by Go %s, older than %s of go.mod", got, want)
	}
}
