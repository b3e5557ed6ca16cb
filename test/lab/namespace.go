package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// prepareNetnsDir makes the directory of named namespaces a shared mount of its
// own, as iproute2 does, so that what is mounted and unmounted in it is seen
// everywhere.
func prepareNetnsDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	share := func() error { return unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	if share() == nil {
		return nil
	}
	if err := unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", netnsDir, err)
	}
	if err := share(); err != nil {
		return fmt.Errorf("share %s: %w", netnsDir, err)
	}
	return nil
}

// bindNamespace gives the calling thread's network namespace a name.
func bindNamespace(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Close(), unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, ""))
	if err != nil {
		return errors.Join(fmt.Errorf("name namespace %s: %w", path, err), removeNamespace(path))
	}
	return nil
}

// removeNamespace takes a namespace's name away; the namespace itself goes with
// its last process. One that does not exist is no error.
func removeNamespace(path string) error {
	for unix.Unmount(path, unix.MNT_DETACH) == nil {
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// killInside ends every process in the namespace and waits until they are gone.
func killInside(path string) error {
	var ns unix.Stat_t
	if err := unix.Stat(path, &ns); err != nil {
		return fmt.Errorf("namespace %s: %w", path, err)
	}
	for end := time.Now().Add(stopGrace); ; time.Sleep(10 * time.Millisecond) {
		pids, err := processesIn(&ns)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v do not leave namespace %s", pids, path)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may just have ended by itself
		}
	}
}

// processesIn lists the living processes in a network namespace, without this
// one.
func processesIn(ns *unix.Stat_t) ([]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		var s unix.Stat_t
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || unix.Stat(dir+"/ns/net", &s) != nil {
			continue // no process, or gone, or a zombie
		}
		if s.Dev == ns.Dev && s.Ino == ns.Ino {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
