package cli

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/spf13/cobra"
)

func (s *session) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "An API gateway with exact quotas and a management side on PostgreSQL",
		Long: `Sluice is an API gateway. Run everything in one process with "up", or the two
halves apart with "admin" and "gateway"; a gateway also runs alone on a folder of
API definitions.`,
		Args:              cobra.ArbitraryArgs,
		RunE:              shell.NeedsCommand,
		Version:           version(),
		PersistentPreRunE: s.begin,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	root.SetVersionTemplate("sluice {{.Version}}\n")
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout) // before the completion commands, which keep it
	root.SetErr(s.Stderr)
	flags := root.PersistentFlags()
	flags.StringArrayVar(&s.ConfigFiles, "config", nil, "YAML `FILE` with the configuration; may be repeated, later files win")
	flags.String("log-level", "", "least `LEVEL` to log: debug, info, warn or error (log.level)")
	flags.String("log-format", "", "`FORM` of the log: text or json (log.format)")
	flags.StringVar(&s.Profile, "profile", "", "`NAME` of the login to use (SLUICE_PROFILE; default: the last one)")
	flags.StringVarP(&s.Output, "output", "o", "table", "`FORM` of printed data: table, json or yaml")
	flags.BoolVarP(&s.Quiet, "quiet", "q", false, "print no banner and no remarks")
	flags.BoolVar(&s.NoColor, "no-color", false, "print without colour, as the variable NO_COLOR does")
	shell.Must(root.RegisterFlagCompletionFunc("output", shell.Fixed(shell.Outputs...)))
	shell.Must(root.RegisterFlagCompletionFunc("log-level", shell.Fixed("debug", "info", "warn", "error")))
	shell.Must(root.RegisterFlagCompletionFunc("log-format", shell.Fixed("text", "json")))
	shell.Must(root.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.Profiles(), cobra.ShellCompDirectiveNoFileComp
	}))
	shell.Must(root.MarkPersistentFlagFilename("config", "yaml", "yml"))
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(s.upCommand(), s.gatewayCommand(), s.adminCommand(), s.migrateCommand(),
		s.validateCommand(), s.explainCommand(), s.keyCommand(), s.configCommand(), s.definitionCommand(), s.schemaCommand(), s.applyCommand(), s.diffCommand(), s.replayCommand(), s.exportCommand(), s.importCommand(), s.doctorCommand(), s.topCommand(), s.objectCommand(&apiKind), s.objectCommand(&policyKind), s.versionCommand())
	root.AddCommand(secretsCommand(s.Shell, s.process.Commands.RotateSecrets, databaseURL))
	root.AddCommand(s.backupCommand(), s.restoreCommand())
	root.AddCommand(portalCommands(s.Shell)...)
	root.AddCommand(accountCommands(s.Shell)...)
	root.AddCommand(loginCommands(s.Shell)...)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = cobra.ArbitraryArgs, shell.NeedsCommand // its own RunE prints help for any argument
	}
	return root
}

// begin runs before every command, after its arguments were validated.
func (s *session) begin(cmd *cobra.Command, _ []string) error {
	if !slices.Contains(shell.Outputs, s.Output) {
		return fmt.Errorf("--output %q is unknown; want table, json or yaml", s.Output)
	}
	s.started = true
	return nil
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(\S+)$`)
	flagName    = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// flagError adds a suggestion to the error about an unknown flag.
func flagError(cmd *cobra.Command, err error) error {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	var names []string
	for _, n := range flagName.FindAllStringSubmatch(cmd.Flags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), -1) {
		names = append(names, n[1])
	}
	if near := didyoumean.Nearest(m[1], names); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", m[1], near)
	}
	return fmt.Errorf("unknown flag --%s", m[1])
}
