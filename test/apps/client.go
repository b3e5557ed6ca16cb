package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// Client is a running RPC client. It reads what the program prints.
type Client struct {
	cmd *lab.Cmd

	mu      sync.Mutex
	partial []byte // the line that is not complete yet
	summary []byte
	events  []Event
}

// NewClient reads the output of an RPC client that is not started yet.
func NewClient(cmd *lab.Cmd) *Client {
	c := &Client{cmd: cmd}
	cmd.Stdout = c
	return c
}

// Cmd is the program.
func (c *Client) Cmd() *lab.Cmd { return c.cmd }

// Write takes the program's output.
func (c *Client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial = append(c.partial, p...)
	for {
		line, rest, whole := bytes.Cut(c.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if e, ok := ParseEvent(line); ok {
			c.events = append(c.events, e)
		} else if bytes.HasPrefix(line, []byte(summaryMark)) {
			c.summary = bytes.Clone(line)
		}
		c.partial = rest
	}
}

// Events returns the events until now.
func (c *Client) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// AwaitFirst waits for the first event: the client has found its servers.
func (c *Client) AwaitFirst(ctx context.Context) error {
	for len(c.Events()) == 0 {
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

// Finish returns the summary of a client that has ended. Lost calls, for which
// the client ends with status 1, are no error here.
func (c *Client) Finish() (s Summary, err error) {
	err = c.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if parseErr := ParseSummary(c.summary, &s); parseErr != nil {
		return s, errors.Join(parseErr, err)
	}
	if s.Lost == 0 && s.Requests > 0 && err != nil {
		return s, err
	}
	return s, nil
}
