package check

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	udpHead = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
	udpDDS  = "  157: 00000000:1CE8 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 4001 2 0000000000000000 0\n" // 7400
	udpWG   = "  158: 00000000:CA6C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0000000000000000 0\n"    // 51820
	udpDNS  = "  159: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4003 2 0000000000000000 0\n"
)

// process are the files of one.
func process(pid, name, args, ns, start string, inodes ...string) map[string]string {
	files := map[string]string{
		"proc/" + pid + "/cmdline": strings.ReplaceAll(args, " ", "\x00") + "\x00",
		"proc/" + pid + "/stat":    pid + " (" + name + ") S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 " + start + " 1 1 1",
		"proc/" + pid + "/ns/net":  "->" + ns,
	}
	for i, inode := range inodes {
		files["proc/"+pid+"/fd/"+string(rune('0'+i))] = "->" + inode
	}
	return files
}

func TestPrograms(t *testing.T) {
	h := quiet(t.TempDir())
	put(t, h.Root, map[string]string{
		"proc/net/udp":     udpHead + udpDDS + udpWG + udpDNS + "nonsense\n",
		"proc/net/udp6":    udpHead + strings.ReplaceAll(udpWG, " 0 2 ", " 4002 2 "),
		"proc/self/ns/net": "->net:[1]",
	})
	put(t, h.Root, process("300000001", "a) b (c", "/opt/talker --ros-args", "net:[3]", "12345", "/dev/null", "socket:[4001]"))
	put(t, h.Root, process("300000002", "wg", "/usr/bin/wireguard-go wg0", "net:[1]", "1", "socket:[4002]"))
	put(t, h.Root, process("300000003", "python3", "/usr/bin/python3 -c x --name ros2-daemon", "net:[1]", "500"))
	put(t, h.Root, process("300000004", "python3", "/usr/bin/python3 -c x --name ros2-daemon", "net:[2]", "500")) // a container's
	put(t, h.Root, process("300000005", "named", "/usr/sbin/named", "net:[1]", "5", "socket:[4003]", "socket:[9]", "anon_inode:x"))
	put(t, h.Root, map[string]string{
		"proc/300000001/environ":        "PATH=/bin\x00CYCLONEDDS_URI=file:///etc/c.xml\x00",
		"proc/300000001/root/etc/c.xml": pointed,
		"proc/300000001/cgroup":         "0::/system.slice/talker.service\n",
		"proc/300000002/cgroup":         "0::/user.slice/user-0.slice/session-1.scope\n",
		"proc/300000006/comm":           "gone\n",
		"proc/irq/x":                    "",
	})
	f := &Facts{Config: Config{Ports: []uint16{51820}}}
	h.programs(f)
	want := []Program{
		{PID: 300000001, Name: "talker", Unit: "talker.service", Started: 123450 * time.Millisecond, Profile: &Profile{
			Cyclone: Setting{Variable: "CYCLONEDDS_URI", Value: "file:///etc/c.xml", Text: pointed}, FastDDS: Setting{Variable: "FASTRTPS_DEFAULT_PROFILES_FILE"}}},
		{PID: 300000003, Name: "python3", ROSDaemon: true, Started: 5 * time.Second},
	}
	if !reflect.DeepEqual(f.Programs, want) {
		t.Errorf("programs\n%+v, want\n%+v", f.Programs, want)
	}
	if want := []Holder{{Port: 51820, PID: 300000002, Name: "wireguard-go"}}; !reflect.DeepEqual(f.Ports, want) {
		t.Errorf("ports %+v, want %+v", f.Ports, want)
	}
	// The kernel's own sockets have no program.
	put(t, h.Root, map[string]string{"proc/net/udp6": ""})
	f = &Facts{Config: Config{Ports: []uint16{51820}}}
	h.programs(f)
	if want := []Holder{{Port: 51820}}; !reflect.DeepEqual(f.Ports, want) {
		t.Errorf("ports %+v, want %+v", f.Ports, want)
	}
}

func TestProgramName(t *testing.T) {
	for args, want := range map[string]string{
		"/usr/bin/python3 /opt/ros/humble/lib/demo/talker --x": "talker", "/usr/bin/python3.11 -c": "python3.11", "node": "node", "": "a program",
	} {
		var list []string
		if args != "" {
			list = strings.Split(args, " ")
		}
		if got := programName(list); got != want {
			t.Errorf("%q: %q", args, got)
		}
	}
	for args, want := range map[string]bool{
		"/usr/bin/python3 /opt/ros/humble/bin/_ros2_daemon": true, "/opt/ros/bin/_ros2_daemon --x": true, "python3 talker": false, "x": false,
	} {
		if got := isROSDaemon(strings.Split(args, " ")); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

func TestProfile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.xml": "<a>plr0</a>", "b.xml": "<b/>", "folder/x": ""})
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ value, text, problem string }{
		{"", "", ""},
		{"file://" + dir + "/a.xml", "<a>plr0</a>", ""},
		{dir + "/b.xml, file://" + dir + "/a.xml,", "<b/>\n<a>plr0</a>", ""},
		{"<CycloneDDS>a,b</CycloneDDS>", "<CycloneDDS>a,b</CycloneDDS>", ""},
		{dir + "/none.xml", "", "no such file"},
		{dir + "/pipe", "", "is not a file"},
		{dir + "/folder", "", "is not a file"},
		{"/dev/null", "", "is not a file"},
	} {
		s := setting("X", c.value, func(f string) string { return f })
		if s.Text != c.text || !strings.Contains(s.Problem, c.problem) || (s.Problem == "") != (c.problem == "") {
			t.Errorf("%q: %+v", c.value, s)
		}
	}
	env := map[string]string{"RMW_IMPLEMENTATION": "rmw_x", "FASTRTPS_DEFAULT_PROFILES_FILE": "/old", "FASTDDS_DEFAULT_PROFILES_FILE": dir + "/b.xml", "ROS_LOCALHOST_ONLY": "1"}
	p := quiet("").profile(func(n string) string { return env[n] }, func(f string) string { return f })
	if p.RMW != "rmw_x" || p.FastDDS.Text != "<b/>" || len(p.Obstacles) != 1 || p.Cyclone.Value != "" {
		t.Errorf("%+v", p)
	}
}

func TestMentioned(t *testing.T) {
	words := []string{"plr0", "10.77.0.2"}
	for text, want := range map[string]int{
		`<x name="plr0"/>`: 1, `<x>plr0,lo</x>`: 1, `<x>eth0</x><!-- plr0 -->`: 0, `<x name="plr01"/>`: 0, `<a>10.77.0.2</a><b>plr0</b><c>plr0</c>`: 2,
		`<unclosed name="plr0">`: 1, `not XML & plr0`: 1, "": 0, "<": 0,
	} {
		if got := mentioned(text, words); len(got) != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// This process finds itself in no list, but its own start is after the machine's.
func TestStarted(t *testing.T) {
	h := quiet("/")
	if s := h.started(filepath.Join("proc", "self")); s <= 0 {
		t.Errorf("started %v", s)
	}
	for _, text := range []string{"", "1 (x", "1 (x) S 1", "1 (x) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 99999999999999999999 1", strings.Repeat(")", 30)} {
		root := t.TempDir()
		put(t, root, map[string]string{"proc/1/stat": text})
		if s := quiet(root).started("proc/1"); s != 0 {
			t.Errorf("%q: %v", text, s)
		}
	}
}

func FuzzMentioned(f *testing.F) {
	f.Add(pointed)
	f.Add("<a b=plr0 c><![CDATA[plr0]]>")
	f.Fuzz(func(t *testing.T, text string) { mentioned(text, []string{"plr0"}) })
}

func FuzzProc(f *testing.F) {
	f.Add([]byte(udpHead+udpDDS+udpWG), "X")
	f.Add([]byte("X=1\x00Y=2"), "Y")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		parseUDP(text)
		variable(text, name)
	})
}
