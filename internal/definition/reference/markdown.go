package reference

import (
	"fmt"
	"strings"
)

// Markdown is the reference of a kind as a table.
func (k *Kind) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nIn paths `[]` is any element of a list, `{}` any value by name. A member that is left out has its default.\n\n", k.Title)
	b.WriteString("| Member | Type | Default | Range | Meaning | Example |\n|---|---|---|---|---|---|\n")
	for _, m := range k.Members {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | `%s` |\n", m.Path, m.TypeAndUnit(), cell(m.Default), cell(m.Range()), cell(m.Text), cell(string(m.Example)))
	}
	return b.String()
}

// TypeAndUnit is the type, and the unit of numbers.
func (m *Member) TypeAndUnit() string {
	if m.Unit == "" {
		return m.Type
	}
	return m.Type + " (" + m.Unit + ")"
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text)
}
