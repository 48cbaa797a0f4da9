package developers

import (
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicegate/sluice/admin/rest"
)

// Bounds on what is stored of a developer.
const (
	maxEmail  = 254  // bytes
	maxFields = 100  // of one developer
	maxName   = 128  // bytes of a field's name
	maxValue  = 4096 // bytes of a field's value
)

// emailProblem returns the problem of an address, or "".
func emailProblem(email string) string {
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail || !rest.Printable(email) || strings.ContainsRune(email, ' ') {
		return fmt.Sprintf("must be an address such as ann@example.com, of at most %d bytes", maxEmail)
	}
	return ""
}

// fieldProblems returns the problems of the fields of a developer.
func fieldProblems(fields map[string]string) (problems []string) {
	if len(fields) > maxFields {
		return []string{fmt.Sprintf("fields: are %d, and may be %d", len(fields), maxFields)}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(name) > maxName || !rest.Printable(name) || name == "" {
			problems = append(problems, fmt.Sprintf("fields: the name %.40q must be 1…%d bytes of printable text", name, maxName))
		}
		if value := fields[name]; len(value) > maxValue || strings.ContainsFunc(value, unprintable) {
			problems = append(problems, fmt.Sprintf("fields[%.40q]: must be at most %d bytes of printable text", name, maxValue))
		}
	}
	return problems
}

// unprintable reports control characters other than line ends and tabs.
func unprintable(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' || r == unicode.ReplacementChar
}

// signupFieldProblems validates the custom fields that a developer submits against the
// fields that the portal asks for: each of these is required, and no other may be added
// or changed. Before are the fields that the developer has.
func signupFieldProblems(asked []string, before, sent map[string]string) []string {
	problems := fieldProblems(sent)
	for _, name := range asked {
		if strings.TrimSpace(sent[name]) == "" {
			problems = append(problems, fmt.Sprintf("fields[%.40q]: is needed", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		had, has := before[name]
		if slices.Contains(asked, name) || has && had == sent[name] {
			continue
		}
		if len(problems) < maxFields {
			problems = append(problems, fmt.Sprintf("fields[%.40q]: is not asked for; those that are: %s", name, list(asked)))
		}
	}
	return problems
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return rest.Truncate(strings.Join(names, ", "), rest.MaxText)
}
