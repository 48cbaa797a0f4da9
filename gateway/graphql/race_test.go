//go:build race

package graphql_test

const raceEnabled = true
