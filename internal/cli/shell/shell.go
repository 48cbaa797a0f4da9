// Package shell holds what commands share: streams, global flags, output formats,
// prompts, profiles of logins, and calls of a server.
package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// Outputs are the forms in which data can be printed.
var Outputs = []string{"table", "json", "yaml"}

// A Shell is the environment of the commands in one run of the program. Streams and
// variables are set by the caller, the rest by flags.
type Shell struct {
	Env    []string // NAME=value
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	ConfigFiles []string
	Profile     string // of the server to call; "": that of the last login
	Output      string // one of Outputs
	Quiet       bool   // no banner and no remarks
	NoColor     bool

	answers *bufio.Reader // over Stdin, created by the first question
}

// A Setting is a flag for a key of the configuration.
type Setting struct {
	Flag, Key, Usage string
}

// GlobalSettings are the flags of every command.
func GlobalSettings() []Setting {
	return []Setting{{"log-level", "log.level", ""}, {"log-format", "log.format", ""}}
}

// AddSettings adds flags for keys of the configuration.
func AddSettings(cmd *cobra.Command, settings []Setting) {
	for _, one := range settings {
		cmd.Flags().String(one.Flag, "", one.Usage+" ("+one.Key+")")
	}
}

// Load reads the configuration for a command with the given settings.
func (s *Shell) Load(cmd *cobra.Command, role config.Role, settings ...Setting) (*config.Config, config.Origins, error) {
	src := config.Sources{Files: s.ConfigFiles, Env: s.Env, Role: role}
	for _, one := range append(GlobalSettings(), settings...) {
		if !cmd.Flags().Changed(one.Flag) {
			continue
		}
		value, err := cmd.Flags().GetString(one.Flag)
		if err != nil {
			return nil, nil, fmt.Errorf("reading --%s: %w", one.Flag, err)
		}
		src.Flags = append(src.Flags, config.Flag{Name: "--" + one.Flag, Key: one.Key, Value: value})
	}
	return config.Load(src)
}

// Variable returns a variable of the environment, "" when it is not set.
func (s *Shell) Variable(name string) string {
	value, _ := s.Lookup(name)
	return value
}

// Lookup returns a variable of the environment, and whether it is set.
func (s *Shell) Lookup(name string) (string, bool) {
	i := slices.IndexFunc(s.Env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	if i < 0 {
		return "", false
	}
	return s.Env[i][len(name)+1:], true
}

// maxSent is the largest file that is sent, in bytes.
const maxSent = 3 << 20

// ReadInput reads a file of at most 3 MiB, or standard input for "-".
func (s *Shell) ReadInput(name string) ([]byte, error) {
	from := s.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, Exit(ExitUsage, fmt.Sprintf("%s: %v", name, BareCause(err)))
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxSent+1))
	if err == nil && len(data) > maxSent {
		err = fmt.Errorf("it is larger than %d MiB", maxSent>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// BareCause drops the path from an error, because the message has it already.
func BareCause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
