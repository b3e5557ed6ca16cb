package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Family is which addresses a question asks for.
type Family uint8

// The two families: A records and AAAA records.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// String is "IPv4" or "IPv6".
func (f Family) String() string { return fmt.Sprintf("IPv%d", uint8(f)) }

func (f Family) recordType() dnsmessage.Type {
	if f == IPv4 {
		return dnsmessage.TypeA
	}
	return dnsmessage.TypeAAAA
}

// ErrNotFound says that a DNS server answered: the name does not exist, or has no
// address of that family.
var ErrNotFound = errors.New("the name has no such address")

// errForeign is a message that is no answer to our question: forged, late, or
// broken on the way.
var errForeign = errors.New("answers something else")

// newQuestion returns the question for an absolute name. No EDNS is offered: some
// home routers answer it with an error, and 512 bytes are enough for addresses.
func newQuestion(name string, f Family) (dnsmessage.Question, error) {
	n, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return dnsmessage.Question{}, fmt.Errorf("DNS name %q: %w", name, err)
	}
	return dnsmessage.Question{Name: n, Type: f.recordType(), Class: dnsmessage.ClassINET}, nil
}

// pack returns the message that asks q (RFC 1035, section 4), behind room for the
// length that TCP needs.
func pack(q dnsmessage.Question, id uint16, room int) ([]byte, error) {
	b := dnsmessage.NewBuilder(make([]byte, room, room+64), dnsmessage.Header{ID: id, RecursionDesired: true})
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if err := b.Question(q); err != nil {
		return nil, err
	}
	return b.Finish()
}

// unpack reads an answer to question q that carried id. It returns errForeign for
// what is none, ErrNotFound, or what the server said instead. A truncated answer
// has no addresses.
//
// All records of the family count, whatever name they have: a recursive server
// puts the whole chain of aliases before them (RFC 1034, section 4.3.1).
func unpack(msg []byte, q dnsmessage.Question, id uint16) (found []netip.Addr, truncated bool, err error) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || h.ID != id || !h.Response {
		return nil, false, errForeign
	}
	asked, err := p.Question()
	if err != nil || asked.Type != q.Type || asked.Class != q.Class || !strings.EqualFold(asked.Name.String(), q.Name.String()) {
		return nil, false, errForeign
	}
	if err := p.SkipAllQuestions(); err != nil {
		return nil, false, errForeign
	}
	switch {
	case h.Truncated:
		return nil, true, nil
	case h.RCode == dnsmessage.RCodeNameError:
		return nil, false, ErrNotFound
	case h.RCode != dnsmessage.RCodeSuccess:
		return nil, false, fmt.Errorf("answers with the error %s", strings.TrimPrefix(h.RCode.String(), "RCode"))
	}
	if found, err = addresses(&p, q.Type); err != nil {
		return nil, false, errForeign
	}
	if len(found) == 0 {
		if !h.Authoritative && !h.RecursionAvailable {
			return nil, false, errors.New("does not resolve names for us")
		}
		return nil, false, ErrNotFound
	}
	return found, false, nil
}

func addresses(p *dnsmessage.Parser, t dnsmessage.Type) (found []netip.Addr, err error) {
	for {
		h, err := p.AnswerHeader()
		switch {
		case errors.Is(err, dnsmessage.ErrSectionDone):
			return found, nil
		case err != nil:
			return nil, err
		case h.Type != t || h.Class != dnsmessage.ClassINET:
			err = p.SkipAnswer()
		case t == dnsmessage.TypeA:
			var r dnsmessage.AResource
			if r, err = p.AResource(); err == nil {
				found = append(found, netip.AddrFrom4(r.A))
			}
		default:
			var r dnsmessage.AAAAResource
			if r, err = p.AAAAResource(); err == nil {
				found = append(found, netip.AddrFrom16(r.AAAA))
			}
		}
		if err != nil {
			return nil, err
		}
	}
}
