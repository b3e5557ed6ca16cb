package rtps

import "testing"

func TestServiceOf(t *testing.T) {
	for _, c := range []struct {
		topic, name string
		role        Role
		ok          bool
		action      string
	}{
		{"rq/add_two_intsRequest", "/add_two_ints", RoleRequest, true, ""},
		{"rr/add_two_intsReply", "/add_two_ints", RoleReply, true, ""},
		{"rt/chatter", "/chatter", RoleTopic, true, ""},
		{"rq/robot/arm/planRequest", "/robot/arm/plan", RoleRequest, true, ""},
		{"rq/RequestRequest", "/Request", RoleRequest, true, ""},
		{"rt/planRequest", "/planRequest", RoleTopic, true, ""},
		{"rq/fib/_action/send_goalRequest", "/fib/_action/send_goal", RoleRequest, true, "/fib"},
		{"rr/a/fib/_action/get_resultReply", "/a/fib/_action/get_result", RoleReply, true, "/a/fib"},
		{"rt/fib/_action/feedback", "/fib/_action/feedback", RoleTopic, true, "/fib"},
		{"rt/fib/_actions/feedback", "/fib/_actions/feedback", RoleTopic, true, ""},
		{"rt/_action/feedback", "/_action/feedback", RoleTopic, true, ""},
		{"rq/planReply", "", 0, false, ""},
		{"rr/planRequest", "", 0, false, ""},
		{"rq/plan", "", 0, false, ""},
		{"rq/Request", "", 0, false, ""},
		{"rr/Reply", "", 0, false, ""},
		{"rt/", "", 0, false, ""},
		{"rs/plan", "", 0, false, ""},
		{"rt", "", 0, false, ""},
		{"rtchatter", "", 0, false, ""},
		{"Square", "", 0, false, ""},
		{"ros_discovery_info", "", 0, false, ""},
		{"", "", 0, false, ""},
	} {
		name, role, ok := ServiceOf([]byte(c.topic))
		if string(name) != c.name || role != c.role || ok != c.ok {
			t.Errorf("%s: %q %v %v", c.topic, name, role, ok)
		}
		if action, ok := ActionOf(name); string(action) != c.action || ok != (c.action != "") {
			t.Errorf("%s: action %q %v", c.topic, action, ok)
		}
	}
}

func TestCycloneRequest(t *testing.T) {
	want := RequestID{GUID{Prefix: Prefix{1, 2, 3, 4, 5, 6, 7, 8}}, 42}
	for name, c := range map[string]struct {
		data Data
		ok   bool
	}{
		"little endian": {Data{Payload: unhex(t, "00010000 0807060504030201 2a00000000000000")}, true},
		"big endian":    {Data{Payload: unhex(t, "00000000 0102030405060708 000000000000002a 99")}, true},
		"short":         {Data{Payload: unhex(t, "00000000 0102030405060708 00000000000000")}, false},
		"a list":        {Data{Payload: unhex(t, "00030000 0807060504030201 2a00000000000000")}, false},
		"later":         {Data{Payload: unhex(t, "00010000 0807060504030201 2a00000000000000"), partial: true}, false},
		"empty":         {Data{}, false},
	} {
		id, ok := c.data.CycloneRequest()
		if ok != c.ok || ok && id != want {
			t.Errorf("%s: %v %+v", name, ok, id)
		}
	}
}

func TestFastRequest(t *testing.T) {
	client := GUID{Prefix{1, 15, 9}, 0x404}
	identity := func(id ParameterID, g GUID, n SequenceNumber, more ...byte) Parameters {
		value := newEncoder(true).guid(g).seq(n).raw(more...).b
		return newParameters(newEncoder(true).parameter(PIDStatusInfo, 0, 0, 0, 0).parameter(id, value...).sentinel().b, littleEndian)
	}
	source := Prefix{1, 15, 8}
	writer := GUID{source, 0x103}
	for name, c := range map[string]struct {
		data    Data
		request RequestID // as a request
		reply   RequestID // as a reply
		ok      bool      // both are known
	}{
		"of Fast DDS": {Data{InlineQos: identity(PIDRelatedIdentityVendor, client, 5)}, RequestID{client, 7}, RequestID{client, 5}, true},
		"of DDS-RPC":  {Data{InlineQos: identity(PIDRelatedIdentity, client, 5)}, RequestID{client, 7}, RequestID{client, 5}, true},
		"unknown GUID": {Data{InlineQos: identity(PIDRelatedIdentity, GUID{}, -1<<32)}, RequestID{writer, 7},
			RequestID{Number: -1 << 32}, true},
		"another size":              {Data{InlineQos: identity(PIDRelatedIdentityVendor, client, 5, 0)}, RequestID{writer, 7}, RequestID{}, true},
		"none":                      {Data{}, RequestID{writer, 7}, RequestID{}, true},
		"none, but not all is here": {Data{partial: true}, RequestID{}, RequestID{}, false},
		"in a later fragment, too": {Data{partial: true, InlineQos: identity(PIDRelatedIdentity, client, 5)}, RequestID{client, 7},
			RequestID{client, 5}, true},
	} {
		c.data.Writer, c.data.Seq = writer.Entity, 7
		if id, ok := c.data.FastRequest(source); ok != c.ok || id != c.request {
			t.Errorf("%s: request %v %+v", name, ok, id)
		}
		if id, ok := RelatedIdentity(c.data.InlineQos); ok != (c.reply != RequestID{}) || id != c.reply {
			t.Errorf("%s: reply %v %+v", name, ok, id)
		}
	}
}
