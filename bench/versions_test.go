package bench

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// versioned are the APIs whose calls choose a version, or are held against lists
// of paths.
var versioned = map[string]func(*definition.API){
	"byheader": versions(definition.VersionSelector{Location: definition.VersionInHeader, Key: "X-Api-Version"}),
	"byparam":  versions(definition.VersionSelector{Location: definition.VersionInParam, Key: "v", StripVersioningData: true}),
	"bypath":   versions(definition.VersionSelector{Location: definition.VersionInPath, StripPath: true}),
	"lists": version(definition.Version{UseExtendedPaths: true, GlobalSizeLimit: 1 << 20, ExtendedPaths: testenv.Part[definition.ExtendedPaths](`{
		"ignored": [{"path": "/health"}], "black_list": [{"path": "/admin"}, {"path": "^/[0-9]+$"}],
		"white_list": [{"path": "/some", "method": "GET"}, {"path": "/some", "method": "POST"}, {"path": "/mock"}],
		"mock_response": [{"path": "/mock", "method": "GET", "body": "hello"}]}`)}),
}

// versions gives an API two versions to choose between.
func versions(by definition.VersionSelector) func(*definition.API) {
	return func(a *definition.API) {
		a.Selector = &by
		a.VersionData = &definition.VersionData{Versions: map[string]*definition.Version{"v1": {}, "v2": {}}}
	}
}
