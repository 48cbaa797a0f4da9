// Package browser tests the pages of the product in a real browser. Each file of
// stories is a subtest with a product of its own; README.md says how to add one.
package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// storyWithin bounds one file of stories.
const storyWithin = 8 * time.Minute

// options are read off the first lines of a file: "// product: --demo" adds arguments of
// `sluice up`, "// setting: portal.gateway_url=http://a.example" settings.
var (
	argumentsLine = regexp.MustCompile(`(?m)^// product: (.+)$`)
	settingLine   = regexp.MustCompile(`(?m)^// setting: ([\w.]+)=(.*)$`)
	linkLine      = regexp.MustCompile(`http://\S+/enter#\S+`)
)

func TestStories(t *testing.T) {
	chromium := testenv.Chromium(t)
	testenv.Packages(t, "internal/e2e/browser")
	files, err := filepath.Glob("stories/*.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".mjs"), func(t *testing.T) {
			t.Parallel()
			runStory(t, file, chromium)
		})
	}
}

// runStory starts a product and runs the stories of a file against it.
func runStory(t *testing.T, file, chromium string) {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var arguments []string
	if found := argumentsLine.FindSubmatch(source); found != nil {
		arguments = strings.Fields(string(found[1]))
	}
	with := rig.Settings{}
	for _, found := range settingLine.FindAllSubmatch(source, -1) {
		with[string(found[1])] = string(found[2])
	}
	s := rig.NewUp(t, rig.DataDir(t), with, arguments...).StartReady()
	var link string
	s.Await("the link to sign in", func() error {
		if link = linkLine.FindString(s.Run.Stdout.String()); link == "" {
			return errors.New("the banner has none")
		}
		return nil
	})

	ctx, cancel := context.WithTimeout(t.Context(), storyWithin)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", file)
	node.SysProcAttr = testenv.ChildAttr(syscall.SIGTERM)
	node.Env = append(os.Environ(),
		"SLUICE_URL="+s.Admin, "SLUICE_GATEWAY="+s.Traffic, "SLUICE_KEY="+s.AdminKey(), "SLUICE_LINK="+link,
		"SLUICE_UPSTREAM=http://"+testenv.Origin(t, rig.Echo), "SLUICE_CHROMIUM="+chromium, "SLUICE_DATA="+s.Settings["data_dir"],
	)
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}
