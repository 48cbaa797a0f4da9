package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// A step is what a reader pastes at once, with the output that the guide shows for it.
type step struct {
	line     int    // of the guide, from 1
	commands string // for a shell
	output   string // pattern of what is printed, "" if the guide shows none
	skip     string // why the step is not run, "" if it is
}

// A block is a fenced block of a guide.
type block struct {
	line int    // of its first line of text, from 1
	info string // what follows the fence
	text string
}

var (
	skipMark   = regexp.MustCompile(`skip="([^"]+)"`)
	fence      = regexp.MustCompile("^\\s*```(.*)$")
	prompt     = regexp.MustCompile(`(?m)^\$ `)
	whitespace = regexp.MustCompile(`[ \t\r]+\n`)
)

// elsewhere are the guides that other tests follow, by the path of that test.
var elsewhere = map[string]string{"README.md": "internal/e2e/system/story_test.go"}

// guides returns the paths of all guides, relative to the root of the repository, in order.
func guides() (paths []string, err error) {
	root := rig.ModuleRoot()
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		below, err := filepath.Rel(root, path)
		if below = filepath.ToSlash(below); elsewhere[below] == "" {
			paths = append(paths, below)
		}
		return err
	})
	return paths, err
}

// readSteps returns the steps of a guide in their order.
func readSteps(path string) ([]step, error) {
	text, err := os.ReadFile(filepath.Join(rig.ModuleRoot(), path))
	if err != nil {
		return nil, err
	}
	blocks, err := parseBlocks(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var steps []step
	follows := false // whether the block before this one is a step without output
	for _, b := range blocks {
		language, rest, _ := strings.Cut(b.info, " ")
		skip := ""
		if found := skipMark.FindStringSubmatch(rest); found != nil {
			skip = found[1]
		} else if rest != "" {
			return nil, fmt.Errorf("%s:%d: %q is not skip=\"reason\"", path, b.line-1, rest)
		}
		switch language {
		case "sh":
			steps, follows = append(steps, step{b.line, b.text, "", skip}), true
		case "console":
			steps, follows = append(steps, b.consoleSteps(skip)...), false
		case "text":
			if follows {
				steps[len(steps)-1].output = b.text
			}
			follows = false
		default:
			follows = false
		}
	}
	return steps, nil
}

// parseBlocks returns the fenced blocks of a Markdown text.
func parseBlocks(text string) (blocks []block, err error) {
	var open *block
	for i, line := range strings.Split(text, "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case mark == nil && open != nil:
			open.text += line + "\n"
		case mark == nil:
		case open == nil:
			open = &block{line: i + 2, info: strings.TrimSpace(mark[1])}
		default:
			blocks, open = append(blocks, *open), nil
		}
	}
	if open != nil {
		err = errors.New("the last fenced block has no end")
	}
	return blocks, err
}

// consoleSteps splits a block with prompts. One without a prompt shows output alone.
func (b *block) consoleSteps(skip string) (steps []step) {
	line := b.line
	for i, part := range prompt.Split(b.text, -1) {
		if i > 0 {
			commands, output := part, ""
			for end := 0; ; {
				next := strings.IndexByte(part[end:], '\n')
				if next < 0 {
					break
				}
				end += next + 1
				if !strings.HasSuffix(part[:end], "\\\n") {
					commands, output = part[:end], part[end:]
					break
				}
			}
			steps = append(steps, step{line, commands, output, skip})
		}
		line += strings.Count(part, "\n")
	}
	return steps
}

// lines returns how many lines a reader pastes.
func (s *step) lines() (n int) {
	for line := range strings.Lines(s.commands) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// tidy removes spaces at the ends of lines and the whole text.
func tidy(text string) string {
	return strings.TrimSpace(whitespace.ReplaceAllString(text+"\n", "\n"))
}

// matches reports whether a step printed what the guide shows. "…" stands for any text in a
// line, and for any lines when it stands alone.
func matches(shown, printed string) bool {
	var expr strings.Builder
	expr.WriteString(`\A`)
	for line := range strings.Lines(tidy(shown) + "\n") {
		if strings.TrimSpace(line) == "…" {
			expr.WriteString(`(?:.*\n)*?`)
			continue
		}
		expr.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
	}
	expr.WriteString(`\z`)
	return regexp.MustCompile(expr.String()).MatchString(tidy(printed) + "\n")
}
