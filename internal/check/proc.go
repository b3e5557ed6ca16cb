package check

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// udpSocket is one line of /proc/net/udp.
type udpSocket struct {
	port  uint16
	inode uint64 // 0: the kernel's own
}

// parseUDP reads /proc/net/udp or udp6; lines that it does not understand are
// passed over.
func parseUDP(text []byte) []udpSocket {
	var out []udpSocket
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		_, port, _ := strings.Cut(f[1], ":")
		p, err := strconv.ParseUint(port, 16, 16)
		inode, err2 := strconv.ParseUint(f[9], 10, 64)
		if err == nil && err2 == nil {
			out = append(out, udpSocket{uint16(p), inode})
		}
	}
	return out
}

// programs finds who has ports of DDS or of this gateway, and the daemon of the
// ros2 command.
func (h Host) programs(f *Facts) {
	sockets := map[uint64]uint16{}
	for _, file := range []string{"proc/net/udp", "proc/net/udp6"} {
		text, _ := h.read(maxSocketTable, file)
		for _, s := range parseUDP(text) {
			listens := slices.Contains(f.Config.Ports, s.port)
			if listens {
				f.hold(Holder{Port: s.port})
			}
			if s.inode != 0 && (listens || s.port >= ddsFirst && s.port <= ddsLast) {
				sockets[s.inode] = s.port
			}
		}
	}
	entries, _ := os.ReadDir(h.path("proc"))
	own, _ := os.Readlink(h.path("proc/self/ns/net"))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			h.program(f, pid, sockets, own)
		}
	}
}

// hold notes who has a port: once for each, with the program if it is known.
func (f *Facts) hold(h Holder) {
	for i, old := range f.Ports {
		if old.Port != h.Port {
			continue
		}
		if old.PID == 0 {
			f.Ports[i] = h
		}
		return
	}
	f.Ports = append(f.Ports, h)
}

// program looks at one process.
func (h Host) program(f *Facts, pid int, sockets map[uint64]uint16, own string) {
	dir := path.Join("proc", strconv.Itoa(pid))
	args := h.args(dir)
	p := Program{PID: pid, Name: programName(args), ROSDaemon: isROSDaemon(args)}
	speaks := false
	for _, port := range h.ports(dir, sockets) {
		speaks = speaks || port >= ddsFirst && port <= ddsLast
		if slices.Contains(f.Config.Ports, port) {
			f.hold(Holder{Port: port, PID: pid, Name: p.Name, Unit: h.unit(dir)})
		}
	}
	if !speaks && p.ROSDaemon { // one in another network namespace is a container's own affair
		ns, err := os.Readlink(h.path(dir, "ns/net"))
		speaks = err != nil || own == "" || ns == own
	}
	if !speaks || len(f.Programs) == maxPrograms {
		return
	}
	p.Unit, p.Started = h.unit(dir), h.started(dir)
	if env, err := h.read(maxSmallFile, dir, "environ"); err == nil {
		profile := h.profile(func(name string) string { return variable(env, name) }, func(file string) string {
			if path.IsAbs(file) {
				return h.path(dir, "root", file) // a container's files are not ours
			}
			return h.path(dir, "cwd", file)
		})
		p.Profile = &profile
	}
	f.Programs = append(f.Programs, p)
}

func (h Host) args(dir string) []string {
	text, _ := h.read(maxSmallFile, dir, "cmdline")
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// programName is what people call the program: the script for an interpreter.
func programName(args []string) string {
	if len(args) == 0 {
		return "a program"
	}
	name := path.Base(args[0])
	if strings.HasPrefix(name, "python") {
		for _, a := range args[1:] {
			if a == "-c" {
				break
			}
			if !strings.HasPrefix(a, "-") {
				return path.Base(a)
			}
		}
	}
	return name
}

// isROSDaemon recognises the process that `ros2 daemon start`, or any ros2
// command, leaves behind.
func isROSDaemon(args []string) bool {
	return len(args) > 0 && path.Base(args[0]) == "_ros2_daemon" ||
		slices.Contains(args, "ros2-daemon") || len(args) > 1 && path.Base(args[1]) == "_ros2_daemon"
}

// ports are those of the sockets that the process has open; none for a process of
// another user, unless root asks.
func (h Host) ports(dir string, sockets map[uint64]uint16) []uint16 {
	if len(sockets) == 0 {
		return nil
	}
	entries, _ := os.ReadDir(h.path(dir, "fd"))
	var out []uint16
	for _, e := range entries {
		target, _ := os.Readlink(h.path(dir, "fd", e.Name()))
		number, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			continue
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
		if port, ok := sockets[inode]; ok && err == nil {
			out = append(out, port)
		}
	}
	return out
}

// unit is the systemd service of the process, or empty.
func (h Host) unit(dir string) string {
	text, _ := h.read(maxSmallFile, dir, "cgroup")
	for line := range strings.Lines(string(text)) {
		_, at, ok := strings.Cut(strings.TrimSpace(line), ":/system.slice/")
		if name := path.Base(at); ok && strings.HasSuffix(name, ".service") {
			return name
		}
	}
	return ""
}

// started is field 22 of /proc/PID/stat (proc(5)), 0 when it cannot be read. The
// name in field 2 may contain anything, also brackets.
func (h Host) started(dir string) time.Duration {
	text, _ := h.read(maxSmallFile, dir, "stat")
	i := bytes.LastIndexByte(text, ')')
	f := strings.Fields(string(text[i+1:]))
	if i < 0 || len(f) < 20 {
		return 0
	}
	ticks, err := strconv.ParseInt(f[19], 10, 64)
	if err != nil || ticks < 0 || ticks > int64(time.Duration(1<<63-1)/(time.Second/ticksPerSecond)) {
		return 0
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}

// variable finds a variable in an environment as the kernel shows it.
func variable(environ []byte, name string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}
