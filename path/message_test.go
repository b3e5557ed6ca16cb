package path

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"
	"time"
)

func TestProbeGolden(t *testing.T) {
	for _, c := range []struct {
		p    Probe
		wire string
		back Probe
	}{
		{Probe{}, "0000000000000000", Probe{}},
		{Probe{0x01020304, 200 * time.Millisecond, 0.5}, "0102030400c87fff", Probe{0x01020304, 200 * time.Millisecond, 0.5}},
		{Probe{math.MaxUint32, 5 * time.Second, -1}, "ffffffff1388ffff", Probe{math.MaxUint32, 5 * time.Second, -1}},
		{Probe{7, time.Hour, 1}, "00000007fffffffe", Probe{7, 65535 * time.Millisecond, 1}},
		{Probe{7, -time.Second, 1.5}, "000000070000fffe", Probe{7, 0, 1}},
		{Probe{7, 1999 * time.Microsecond, math.NaN()}, "000000070001ffff", Probe{7, time.Millisecond, -1}},
	} {
		b := make([]byte, ProbeLen)
		c.p.Put(b)
		if got := hex.EncodeToString(b); got != c.wire {
			t.Errorf("%+v: %s, want %s", c.p, got, c.wire)
		}
		got, err := DecodeProbe(append(b, 1, 2, 3))
		if err != nil || got != c.back {
			t.Errorf("%s: %+v, %v, want %+v", c.wire, got, err, c.back)
		}
	}
}

func TestReplyGolden(t *testing.T) {
	for _, c := range []struct {
		r    Reply
		wire string
	}{
		{Reply{}, "000000000000"},
		{Reply{0x01020304, 0.5}, "010203047fff"},
		{Reply{math.MaxUint32, -1}, "ffffffffffff"},
		{Reply{7, 1}, "00000007fffe"},
	} {
		b := make([]byte, ReplyLen)
		c.r.Put(b)
		if got := hex.EncodeToString(b); got != c.wire {
			t.Errorf("%+v: %s, want %s", c.r, got, c.wire)
		}
		got, err := DecodeReply(append(b, 1, 2, 3))
		if err != nil || got != c.r {
			t.Errorf("%s: %+v, %v, want %+v", c.wire, got, err, c.r)
		}
	}
}

func TestShortMessages(t *testing.T) {
	for n := range ProbeLen {
		if _, err := DecodeProbe(make([]byte, n)); !errors.Is(err, ErrShort) {
			t.Errorf("probe of %d octets: %v", n, err)
		}
	}
	for n := range ReplyLen {
		if _, err := DecodeReply(make([]byte, n)); !errors.Is(err, ErrShort) {
			t.Errorf("reply of %d octets: %v", n, err)
		}
	}
}

// What is decoded is written back as the same octets.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 0, 200, 0x7f, 0xff})
	f.Add([]byte{1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var out [ProbeLen]byte
		if p, err := DecodeProbe(b); err == nil {
			p.Put(out[:])
			if !bytes.Equal(out[:], b[:ProbeLen]) {
				t.Errorf("probe %x became %x", b[:ProbeLen], out)
			}
			if p.LossIn > 1 || p.LossIn < 0 && p.LossIn != -1 {
				t.Errorf("share %v", p.LossIn)
			}
		}
		if r, err := DecodeReply(b); err == nil {
			r.Put(out[:ReplyLen])
			if !bytes.Equal(out[:ReplyLen], b[:ReplyLen]) {
				t.Errorf("reply %x became %x", b[:ReplyLen], out[:ReplyLen])
			}
		}
	})
}
