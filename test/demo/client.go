package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
)

// client is a running rpc_client. It reads what the program prints.
type client struct {
	cmd *lab.Cmd

	mu      sync.Mutex
	partial []byte // the line that is not complete yet
	output  bytes.Buffer
	events  []apps.Event
}

func newClient(cmd *lab.Cmd) *client {
	c := &client{cmd: cmd}
	cmd.Stdout = c
	return c
}

// Write takes the program's output.
func (c *client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.output.Write(p)
	c.partial = append(c.partial, p...)
	for {
		line, rest, whole := bytes.Cut(c.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if e, ok := apps.ParseEvent(line); ok {
			c.events = append(c.events, e)
		}
		c.partial = rest
	}
}

// soFar returns the events until now.
func (c *client) soFar() []apps.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// awaitFirst waits for the first event: the client has found its servers.
func (c *client) awaitFirst(ctx context.Context) error {
	for len(c.soFar()) == 0 {
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case <-c.cmd.Done():
			return fmt.Errorf("the client ended before its first call: %w", c.cmd.Wait())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// finish returns the summary of a client that has ended. Lost calls, for which
// the client ends with status 1, are no error here.
func (c *client) finish() (s apps.Summary, err error) {
	err = c.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if parseErr := apps.ParseSummary(c.output.Bytes(), &s); parseErr != nil {
		return s, errors.Join(parseErr, err)
	}
	if s.Lost == 0 && err != nil {
		return s, err
	}
	return s, nil
}
