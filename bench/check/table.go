package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Marks that stand around the table in a file that keeps it.
const (
	markBegin = "<!-- bench-check: begin -->\n"
	markEnd   = "<!-- bench-check: end -->\n"
)

// verdicts are what the check found.
type verdicts struct {
	base release
	of   []comparison
}

// worse returns errWorse with the cases that failed, or nil.
func (v verdicts) worse() error {
	var failed []string
	for _, c := range v.of {
		if c.verdict == slower || c.verdict == allocates || c.verdict == both {
			failed = append(failed, fmt.Sprintf("%s: %s", c.name, strings.Trim(string(c.verdict), "*")))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", errWorse, strings.Join(failed, "\n  "))
}

// table returns the result as Markdown.
func (v verdicts) table(now string, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s: %s, %s/%s, %d rounds of %d turns, %d readings of %d requests in each run.\n\n",
		now, v.base, runtime.Version(), runtime.GOOS, runtime.GOARCH, o.rounds, turns, readings, o.times)
	b.WriteString("| Case | release µs | now µs | ratio | 99 % | release against itself | allocations | verdict |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, c := range v.of {
		if c.missing == "" {
			fmt.Fprintf(&b, "| %s | %.1f | %.1f | **%.3f** | %.3f – %.3f | ± %.1f %% | %.0f → %.0f | %s |\n",
				c.name, c.base.cost(c.byTime), c.now.cost(c.byTime), c.ratio.median, c.ratio.low, c.ratio.high,
				100*c.noise, c.base.allocs, c.now.allocs, c.verdict)
		}
	}
	v.notes(&b)
	return b.String()
}

// notes says what the table leaves out, and where it proves little.
func (v verdicts) notes(b *strings.Builder) {
	lists := map[string][]string{}
	for _, c := range v.of {
		if c.missing != "" {
			lists[c.missing] = append(lists[c.missing], c.name)
		} else if c.verdict == unclear {
			lists["unclear"] = append(lists["unclear"], c.name)
		}
	}
	for _, of := range []string{"the release", "the working tree"} {
		if names := lists[of]; len(names) > 0 {
			fmt.Fprintf(b, "\nNot compared, since %s does not have them: %s.\n", of, strings.Join(names, "; "))
		}
	}
	if names := lists["unclear"]; len(names) > 0 {
		fmt.Fprintf(b, "\nThe machine was too busy to tell whether these are slower: %s. More rounds, or a quieter hour, would.\n", strings.Join(names, "; "))
	}
}

// keep replaces what stands between the marks in a file.
func keep(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("keeping the table: %w", err)
	}
	before, rest, begun := strings.Cut(string(text), markBegin)
	_, after, ended := strings.Cut(rest, markEnd)
	if !begun || !ended {
		return fmt.Errorf("keeping the table: %s must hold the lines %s and %s around it", file, strings.TrimSpace(markBegin), strings.TrimSpace(markEnd))
	}
	if err := os.WriteFile(file, []byte(before+markBegin+"\n"+table+"\n"+markEnd+after), 0o644); err != nil {
		return fmt.Errorf("keeping the table: %w", err)
	}
	return nil
}
