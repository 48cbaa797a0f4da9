package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

var (
	linkForm    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingForm = regexp.MustCompile("(?m)^#+ (.+)$")
	notInSlug   = regexp.MustCompile(`[^\pL\pN_ -]`)
	fencedForm  = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```$")
)

// prose returns a guide without its fenced blocks.
func prose(t *testing.T, guide string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rig.ModuleRoot(), guide))
	if err != nil {
		t.Fatal(err)
	}
	return fencedForm.ReplaceAllString(string(text), "")
}

// Links between guides lead to files and headings that exist.
func TestLinksOfGuidesLeadSomewhere(t *testing.T) {
	all, err := guides()
	if err != nil {
		t.Fatal(err)
	}
	for guide := range elsewhere {
		all = append(all, guide)
	}
	anchors, texts := make(map[string][]string), make(map[string]string)
	for _, guide := range all {
		texts[guide] = prose(t, guide)
		for _, heading := range headingForm.FindAllStringSubmatch(texts[guide], -1) {
			slug := notInSlug.ReplaceAllString(strings.ToLower(heading[1]), "")
			anchors[guide] = append(anchors[guide], strings.ReplaceAll(slug, " ", "-"))
		}
	}
	links := 0
	for _, guide := range all {
		for _, link := range linkForm.FindAllStringSubmatch(texts[guide], -1) {
			if strings.Contains(link[1], ":") { // of the web
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link[1], "#")
			to := guide
			if file != "" {
				to = path.Join(path.Dir(guide), file)
			}
			if _, err := os.Stat(filepath.Join(rig.ModuleRoot(), to)); err != nil {
				t.Errorf("%s: %s: %v", guide, link[1], err)
			} else if anchor != "" && !slices.Contains(anchors[to], anchor) {
				t.Errorf("%s: %s: %s has no such heading", guide, link[1], to)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}
