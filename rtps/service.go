package rtps

import (
	"bytes"
	"encoding/binary"
)

// A Role is what a DDS topic is to ROS 2.
type Role int

// The roles of DDS topics.
const (
	RoleTopic   Role = iota // rt/<name>
	RoleRequest             // rq/<name>Request
	RoleReply               // rr/<name>Reply
)

// ServiceOf takes the name of a DDS topic apart: the name that ROS 2 shows,
// beginning with a slash, and what the topic is to it. The name is a view into
// topic. False means that the topic is not one of ROS 2.
//
// An action is three services, /<action>/_action/send_goal, cancel_goal and
// get_result, and two topics, feedback and status.
func ServiceOf(topic []byte) (name []byte, role Role, ok bool) {
	if len(topic) < 4 || topic[0] != 'r' || topic[2] != '/' {
		return nil, 0, false
	}
	name, ok = topic[2:], true
	switch topic[1] {
	case 't':
		role = RoleTopic
	case 'q':
		role = RoleRequest
		name, ok = bytes.CutSuffix(name, []byte("Request"))
	case 'r':
		role = RoleReply
		name, ok = bytes.CutSuffix(name, []byte("Reply"))
	default:
		ok = false
	}
	if !ok || len(name) < 2 {
		return nil, 0, false
	}
	return name, role, true
}

// ActionOf returns the name of the action that a service or topic with the given
// name, from ServiceOf, is a part of. False means that it is part of none.
func ActionOf(name []byte) (action []byte, ok bool) {
	i := bytes.LastIndex(name, []byte("/_action/"))
	if i < 1 {
		return nil, false
	}
	return name[:i], true
}

// A RequestID names a request: a reply carries the one of the request that it
// answers. It is unique within a service, as far as the mapping makes it so.
type RequestID struct {
	// Client is the reader that gets the reply, or the writer of the request
	// (rmw_fastrtps); or eight octets, and zeros behind them (rmw_cyclonedds).
	Client GUID
	Number int64
}

// requestHeader is what rmw_cyclonedds puts before requests and replies: client
// and number, octets.
const requestHeader = 16

// CycloneRequest returns the id of the request that d is, or answers, with
// rmw_cyclonedds: the header in the payload. Requests and replies of other
// mappings have none, but nothing says so: ask only for writers whose
// participant has that vendor. False means that it is not here.
func (d *Data) CycloneRequest() (id RequestID, ok bool) {
	b, o, ok := d.body(plainCDR)
	if !ok || len(b) < requestHeader {
		return RequestID{}, false
	}
	binary.BigEndian.PutUint64(id.Client.Prefix[:], o.u64(b))
	id.Number = int64(o.u64(b[8:]))
	return id, true
}

// FastRequest returns the id of the request d, by a writer of source, with
// rmw_fastrtps: the client named in the inline QoS, or else the writer, and the
// sample's number. False means that the inline QoS is not here: only the first
// fragment of a sample needs to have it.
func (d *Data) FastRequest(source Prefix) (id RequestID, ok bool) {
	id, ok = RelatedIdentity(d.InlineQos)
	if !ok && d.partial {
		return RequestID{}, false
	}
	if id.Client == (GUID{}) {
		id.Client = GUID{source, d.Writer}
	}
	id.Number = int64(d.Seq)
	return id, true
}

// RelatedIdentity returns the identity of another sample that p names (DDS-RPC
// 1.0, 7.6.2): with rmw_fastrtps that of the request which a reply answers.
// False means that it names none.
func RelatedIdentity(p Parameters) (id RequestID, ok bool) {
	for q := (Parameter{}); p.Next(&q); {
		if (q.ID == PIDRelatedIdentity || q.ID == PIDRelatedIdentityVendor) && len(q.Value) == 24 {
			return RequestID{guid(q.Value), int64(p.order.sequence(q.Value[16:]))}, true
		}
	}
	return RequestID{}, false
}
