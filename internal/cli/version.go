package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  shell.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			return s.Print(versionRows(info))
		},
	}
}

// version returns the version number.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprint(versionRows(info).Cells[0][0])
}

// versionRows describes a build; info may be nil.
func versionRows(info *debug.BuildInfo) shell.Rows {
	name, commit, modified, date := "unknown", "unknown", false, "unknown"
	if info != nil {
		name = info.Main.Version
		for _, one := range info.Settings {
			switch one.Key {
			case "vcs.revision":
				commit = one.Value
			case "vcs.time":
				date = one.Value
			case "vcs.modified":
				modified = one.Value == "true"
			}
		}
	}
	return shell.Rows{
		Single:  true,
		Columns: []string{"version", "commit", "modified", "go", "platform", "date"},
		Cells:   [][]any{{name, commit, modified, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, date}},
	}
}
