package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName  = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	alertName = regexp.MustCompile(`\bSluice[A-Z]\w+`)
)

// TestEveryOutageIsTested holds the page about outages against the tests and the alerts:
// each row of its tables names at least one test, and each test and alert that it names
// exists.
func TestEveryOutageIsTested(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "internal/app/OUTAGES.md"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(filepath.Join(root, "gateway/observe/dashboards/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, rows := testNames(t), 0
	for line := range strings.Lines(string(page)) {
		for _, name := range testName.FindAllString(line, -1) {
			if !tests[name] {
				t.Errorf("the page names %s, which does not exist", name)
			}
		}
		for _, name := range alertName.FindAllString(line, -1) {
			if !strings.Contains(string(rules), "- alert: "+name+"\n") {
				t.Errorf("the page names the alert %s, which does not exist", name)
			}
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| What is away ") || strings.HasPrefix(line, "|---") {
			continue
		}
		if rows++; !testName.MatchString(line) {
			t.Errorf("no test is named for: %s", line)
		}
	}
	if rows < 15 {
		t.Errorf("the page has %d rows", rows)
	}
}

// testNames returns the names of all tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
