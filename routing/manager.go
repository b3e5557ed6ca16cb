package routing

import (
	"context"
	"errors"
	"log/slog"
)

// Manager holds the kernel's network configuration in the state the daemon wants.
type Manager struct{ log *slog.Logger }

// New opens the configuration of the current network namespace.
func New(runtimeDir string, log *slog.Logger) (*Manager, error) { return &Manager{log: log}, nil }

// SetupTUN brings the TUN device into the state t.
func (m *Manager) SetupTUN(t TUN) error { return errors.ErrUnsupported }

// Watch tells when the configuration changed.
func (m *Manager) Watch(ctx context.Context) (<-chan struct{}, error) {
	return nil, errors.ErrUnsupported
}

// Apply makes each carrier reach its endpoints.
func (m *Manager) Apply(want []Want) ([]Carrier, error) { return nil, errors.ErrUnsupported }

// Close removes what Apply added.
func (m *Manager) Close() error { return errors.ErrUnsupported }

// Report says what Cleanup removed, as lines in the syntax of ip(8) and sysctl(8).
type Report struct {
	Removed []string `json:"removed"`
}

// Cleanup removes what a daemon that died left behind.
func Cleanup(runtimeDir, tunName string, all bool, log *slog.Logger) (Report, error) {
	return Report{}, errors.ErrUnsupported
}

// Prepare makes rp_filter loose on the given interfaces.
func Prepare(runtimeDir string, interfaces []string) error { return errors.ErrUnsupported }
