package object

import "fmt"

// Faults collects what is wrong with an object.
type Faults []Fault

// Add adds a fault, unless the message is empty or there are MaxFaults already.
func (f *Faults) Add(path, message string) {
	if message != "" && len(*f) <= MaxFaults {
		*f = append(*f, Fault{Path: path, Message: message})
	}
}

// Addf is Add with a message that has values in it.
func (f *Faults) Addf(path, format string, args ...any) { f.Add(path, fmt.Sprintf(format, args...)) }

// Count adds a fault if a list at path has more than most entries.
func (f *Faults) Count(path string, n, most int) {
	if n > most {
		f.Addf(path, "has %d entries; at most %d are allowed", n, most)
	}
}

// Below adds faults of the part of the object at path.
func (f *Faults) Below(path string, part []Fault) {
	for _, one := range part {
		switch {
		case one.Path == "":
			one.Path = path
		case one.Path[0] == '[':
			one.Path = path + one.Path
		default:
			one.Path = Member(path, one.Path)
		}
		f.Add(one.Path, one.Message)
	}
}
