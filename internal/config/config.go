// Package config reads, defaults and checks the configuration of a process: YAML
// files, environment variables and command-line flags, strictly. Everything that
// is wrong is reported at once, each with its place and what would be right.
package config
