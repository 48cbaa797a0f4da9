package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/config"
)

// outputs are the forms in which data can be printed.
var outputs = []string{"table", "json", "yaml"}

func (s *session) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "An API gateway with exact quotas and a management side on PostgreSQL",
		Long: `Sluice is an API gateway. Run everything in one process with "up", or the two
halves apart with "admin" and "gateway"; a gateway also runs alone on a folder of
API definitions.`,
		Args:              cobra.ArbitraryArgs,
		RunE:              needsCommand,
		Version:           version(),
		PersistentPreRunE: s.begin,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	root.SetVersionTemplate("sluice {{.Version}}\n")
	root.SetIn(s.process.Stdin)
	root.SetOut(s.process.Stdout) // before the completion commands are made, which keep it
	root.SetErr(s.process.Stderr)
	flags := root.PersistentFlags()
	flags.StringArrayVar(&s.configFiles, "config", nil, "YAML `FILE` with the configuration; may be repeated, later files win")
	flags.String("log-level", "", "least `LEVEL` to log: debug, info, warn or error (log.level)")
	flags.String("log-format", "", "`FORM` of the log: text or json (log.format)")
	flags.StringVarP(&s.output, "output", "o", "table", "`FORM` of printed data: table, json or yaml")
	flags.BoolVarP(&s.quiet, "quiet", "q", false, "print no banner and no remarks")
	flags.BoolVar(&s.noColor, "no-color", false, "print without colour, as the variable NO_COLOR does")
	fixed := func(choices ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
	}
	must(root.RegisterFlagCompletionFunc("output", fixed(outputs...)))
	must(root.RegisterFlagCompletionFunc("log-level", fixed("debug", "info", "warn", "error")))
	must(root.RegisterFlagCompletionFunc("log-format", fixed("text", "json")))
	must(root.MarkPersistentFlagFilename("config", "yaml", "yml"))
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(s.upCommand(), s.gatewayCommand(), s.adminCommand(), s.migrateCommand(),
		s.validateCommand(), s.explainCommand(), s.keyCommand(), s.configCommand(), s.applyCommand(), s.diffCommand(), s.exportCommand(), s.importCommand(), s.doctorCommand(), s.topCommand(), s.objectCommand(&apiKind), s.objectCommand(&policyKind), s.versionCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = cobra.ArbitraryArgs, needsCommand // its own answers any word by help
	}
	return root
}

// must takes the errors of completions, which have one cause: a flag without
// such a name, which the first test would meet.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// begin runs before every command, when its arguments are known to be fine.
func (s *session) begin(cmd *cobra.Command, _ []string) error {
	if !slices.Contains(outputs, s.output) {
		return fmt.Errorf("--output %q is unknown; want table, json or yaml", s.output)
	}
	s.started = true
	return nil
}

// needsCommand runs a command that only groups others.
func needsCommand(cmd *cobra.Command, args []string) error {
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
		if near := config.Nearest(args[0], names); near != "" {
			message += "; did you mean " + near + "?"
		} else if cmd.HasParent() {
			message += "; want " + strings.Join(names, ", ")
		}
	}
	return &usageError{err: errors.New(message), command: cmd.CommandPath()}
}

// group makes a command that only groups others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: needsCommand}
	cmd.AddCommand(commands...)
	return cmd
}

// noArgs refuses arguments to a command that has none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but there is %q", cmd.Name(), args[0])
	}
	return nil
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(\S+)$`)
	flagName    = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// flagError adds the nearest name to the complaint about an unknown flag.
func flagError(cmd *cobra.Command, err error) error {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	var names []string
	for _, n := range flagName.FindAllStringSubmatch(cmd.Flags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), -1) {
		names = append(names, n[1])
	}
	if near := config.Nearest(m[1], names); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", m[1], near)
	}
	return fmt.Errorf("unknown flag --%s", m[1])
}

// color marks a text red for a person at a terminal.
func (s *session) color(text string) string {
	f, ok := s.process.Stderr.(*os.File)
	if !ok || s.noColor || slices.ContainsFunc(s.process.Env, func(pair string) bool {
		return strings.HasPrefix(pair, "NO_COLOR=") && pair != "NO_COLOR="
	}) {
		return text
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
