package main

import (
	"strings"
	"testing"
)

const changelog = `# Changelog

## Unreleased

- new

## [1.10.0] - 2026-02-01

### Added

- ten

## v1.1.0

- one

## 1.0.0
`

func TestNotesOfAVersion(t *testing.T) {
	for version, want := range map[string]string{
		"Unreleased": "- new",
		"v1.10.0":    "### Added\n\n- ten",
		"1.10.0":     "### Added\n\n- ten",
		"v1.1.0":     "- one",
	} {
		got, err := notes(changelog, version)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", version, got, err, want)
		}
	}
}

func TestVersionsWithoutNotesAreRefused(t *testing.T) {
	for version, want := range map[string]string{
		"":      "VERSION is empty",
		"v1.1":  "version 1.1 has no heading",
		"1.0.0": "version 1.0.0 has a heading but no notes",
	} {
		got, err := notes(changelog, version)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v; want an error with %q", version, got, err, want)
		}
	}
}
