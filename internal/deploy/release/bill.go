package main

import (
	"encoding/json"
	"runtime/debug"
	"time"
)

// A bill lists the modules of a program (CycloneDX 1.6, in JSON).
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOf returns the modules that are linked into a program, with the sums that go.sum has of
// them. The library of Go is one of them.
func billOf(info *debug.BuildInfo, version string, at time.Time) ([]byte, error) {
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata:   metadata{at.Format(time.RFC3339), componentOf("application", info.Main.Path, version)},
		Components: []component{componentOf("library", "std", info.GoVersion)},
	}
	for _, one := range info.Deps {
		if one.Replace != nil {
			one = one.Replace
		}
		c := componentOf("library", one.Path, one.Version)
		c.Properties = []property{{"go:sum", one.Sum}}
		b.Components = append(b.Components, c)
	}
	return json.MarshalIndent(b, "", "  ")
}

func componentOf(kind, path, version string) component {
	return component{Type: kind, Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
}
