package validate

import (
	"cmp"
	"slices"
	"strings"
)

const (
	maxSimilar  = 100       // bytes of a name that suggestions are looked for
	maxProposed = 5         // that are proposed
	maxCompared = 5_000_000 // of comparing, for all names of a document
	caseChanged = 1         // edits that a change of case counts as
)

// A nameFinder finds similar names for one document. It stops after maxCompared steps.
type nameFinder struct {
	steps    int
	a, b     []byte
	rows     [3][]int
	distance map[string]int
}

// like returns the options that are similar to a name, the most similar first.
func (f *nameFinder) like(name string, options func(yield func(string) bool)) []string {
	if len(name) > maxSimilar {
		return nil
	}
	most := len(name)*2/5 + 1
	f.distance = map[string]int{}
	var found []string
	for option := range options {
		if option == "" {
			continue
		}
		if f.steps > maxCompared {
			break
		}
		f.steps += 1 + len(option)
		d := f.between(name, option, most)
		if _, known := f.distance[option]; d <= most && !known {
			f.distance[option] = d
			found = append(found, option)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.distance[a], f.distance[b]), compareNatural(a, b))
	})
	return found
}

// between returns how many edits lead from one name to the other: characters
// put in, left out, replaced or swapped with the next; more than most when there
// are so many. Letters of another case are one edit for the whole name.
func (f *nameFinder) between(name, option string, most int) int {
	if name == option {
		return 0
	}
	f.a = append(f.a[:0], strings.ToLower(option)...)
	f.b = append(f.b[:0], strings.ToLower(name)...)
	a, b := f.a, f.b
	if string(a) == string(b) {
		return caseChanged
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > most {
		return most + 1
	}
	for i := range f.rows {
		f.rows[i] = slices.Grow(f.rows[i][:0], len(b)+1)[:len(b)+1]
	}
	for j := range f.rows[0] {
		f.rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		if f.row(i, a, b) > most {
			return most + 1
		}
	}
	return f.rows[len(a)%3][len(b)]
}

// row fills in the edits from the first i bytes of a to each start of b, and
// returns the fewest.
func (f *nameFinder) row(i int, a, b []byte) int {
	f.steps += len(b)
	above, row := f.rows[(i-1)%3], f.rows[i%3]
	row[0] = i
	fewest := i
	for j := 1; j <= len(b); j++ {
		replaced := above[j-1]
		if a[i-1] != b[j-1] {
			replaced++
		}
		row[j] = min(above[j]+1, row[j-1]+1, replaced)
		if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
			row[j] = min(row[j], f.rows[(i-2)%3][j-2]+1)
		}
		fewest = min(fewest, row[j])
	}
	return fewest
}

// compareNatural orders names with the numbers in them by value.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			var x, y string
			x, a = number(a)
			y, b = number(b)
			if order := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); order != 0 {
				return order
			}
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// number cuts the number that a text begins with off it, without leading zeros.
func number(s string) (digits, rest string) {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return strings.TrimLeft(s[:end], "0"), s[end:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// didYouMean returns options as a question after a message, with words in front of
// them, "" when there are none.
func didYouMean(words string, options []string) string {
	if len(options) == 0 {
		return ""
	}
	options = options[:min(len(options), maxProposed)]
	var text strings.Builder
	text.WriteString(" Did you mean " + words)
	for i, option := range options {
		switch {
		case i == 0:
		case i < len(options)-1:
			text.WriteString(", ")
		case i == 1:
			text.WriteString(" or ")
		default:
			text.WriteString(", or ")
		}
		text.WriteString(`"` + option + `"`)
	}
	return text.String() + "?"
}
