package cli

// Wired returns the commands as this program has them.
func Wired() Commands {
	return Commands{}
}
