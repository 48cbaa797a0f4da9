package app

import (
	"context"
	"fmt"
	"sync"
)

// tasks are goroutines that end together. The first error stops the process.
type tasks struct {
	group sync.WaitGroup
	fail  context.CancelCauseFunc
}

// start runs one in the background.
func (t *tasks) start(name string, run func() error) {
	t.group.Go(func() {
		if err := run(); err != nil {
			t.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// wait returns once all have ended.
func (t *tasks) wait() { t.group.Wait() }
