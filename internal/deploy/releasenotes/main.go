// Command releasenotes prints the notes of a version out of a changelog.
//
//	releasenotes VERSION CHANGELOG.md
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "releasenotes:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want VERSION and the path of the changelog, got %d arguments", len(args))
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	found, err := notes(string(text), args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	_, err = fmt.Println(found)
	return err
}

// notes returns the text between the heading "## version" and the next heading of
// its level, without blank lines around it. The version may begin with a v, as tags
// do; the heading may have brackets around the version and a date after it. A version
// without a heading, or without text, is an error.
func notes(changelog, version string) (string, error) {
	want := strings.TrimPrefix(version, "v")
	if want == "" {
		return "", fmt.Errorf("VERSION is empty; give one such as v1.2.0")
	}
	var kept []string
	inside, found := false, false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			inside = headingVersion(heading) == want
			found = found || inside
		} else if inside {
			kept = append(kept, line)
		}
	}
	text := strings.TrimSpace(strings.Join(kept, ""))
	switch {
	case !found:
		return "", fmt.Errorf("version %s has no heading; add \"## %s\"", want, want)
	case text == "":
		return "", fmt.Errorf("version %s has a heading but no notes", want)
	}
	return text, nil
}

// headingVersion returns the version of a heading's text: its first word.
func headingVersion(heading string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
	return strings.TrimPrefix(strings.Trim(first, "[]"), "v")
}
