// Package docs holds the recipes, in Markdown, and the test that pastes the commands of guides
// into a shell. README.md describes how guides mark commands and their output.
package docs
