package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// record says who owns a laboratory. A pid alone may be somebody else's by now,
// so the time when the process started is kept with it.
type record struct {
	Run   string `json:"run"`
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

func writeRecord(run string) (string, error) {
	start, err := startTime(os.Getpid())
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(recordDir, 0o755); err != nil {
		return "", err
	}
	data, err := json.Marshal(record{Run: run, PID: os.Getpid(), Start: start})
	if err != nil {
		return "", err
	}
	// A record is never seen half written: another Sweep may be reading.
	path := filepath.Join(recordDir, run+".json")
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// startTime returns when a process started, in the kernel's own unit (field 22
// of proc_pid_stat(5)).
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is a name in parentheses that may hold anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	if fields[0] == "Z" {
		return "", fmt.Errorf("process %d has ended, though nobody has taken note", pid)
	}
	return fields[19], nil
}

// Sweep removes the namespaces, and the processes in them, of laboratories
// whose owner is dead. Those of living owners are left alone.
func Sweep() error {
	paths, err := filepath.Glob(filepath.Join(recordDir, "*.json"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		if err := sweep(path); err != nil {
			errs = append(errs, fmt.Errorf("remove the laboratory of %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

func sweep(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // closed, or swept by somebody else, in between
	}
	if err != nil {
		return err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if start, err := startTime(r.PID); err == nil && start == r.Start {
		return nil
	}
	namespaces, err := filepath.Glob(filepath.Join(netnsDir, namePrefix+r.Run+"-*"))
	if err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(os.TempDir(), namePrefix+r.Run+"-*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range logs {
		errs = append(errs, os.RemoveAll(dir))
	}
	for _, ns := range namespaces {
		if err := killInside(ns); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, removeNamespace(ns))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
