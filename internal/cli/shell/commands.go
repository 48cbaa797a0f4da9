package shell

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/spf13/cobra"
)

// Group returns a command that only groups others.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: NeedsCommand}
	cmd.AddCommand(commands...)
	return cmd
}

// NeedsCommand runs a command that only groups others.
func NeedsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.HasParent() {
		return cmd.Help()
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	message := "say what to do: " + strings.Join(names, ", ")
	if len(args) > 0 {
		message = fmt.Sprintf("unknown command %q", args[0])
		if near := didyoumean.Nearest(args[0], names); near != "" {
			message += "; did you mean " + near + "?"
		} else if cmd.HasParent() {
			message += "; want " + strings.Join(names, ", ")
		}
	}
	return &UsageError{Cause: errors.New(message), Command: cmd.CommandPath()}
}

// NoArgs refuses arguments to a command that has none.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but there is %q", cmd.Name(), args[0])
	}
	return nil
}

// OneArg requires one argument, which what describes.
func OneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New("want one " + what)
		}
		return nil
	}
}

// Must panics on errors of completions, whose only cause is a misspelt flag name in the
// program.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Fixed completes a flag with choices.
func Fixed(choices ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
}
