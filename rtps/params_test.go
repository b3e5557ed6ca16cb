package rtps

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func TestParameters(t *testing.T) {
	for _, c := range []struct {
		name, octets string
		want         []string
		how          end
		rest         int
	}{
		{"empty", "0100 0000", nil, ended, 0},
		{"a sentinel with a length", "0100 ffff 01020304", nil, ended, 4},
		{"some", "7100 0400 00000003 0500 0000 0100 0000 99", []string{"0071:00000003", "0005:"}, ended, 1},
		{"padding", "0000 0800 0102030405060708 0000 0000 7100 0400 00000003 0000 0000 0100 0000",
			[]string{"0071:00000003"}, ended, 0},
		{"the same twice", "0500 0000 0500 0400 01020304 0100 0000", []string{"0005:", "0005:01020304"}, ended, 0},
		{"a vendor's own", "0f80 0000 0100 0000", []string{"800f:"}, ended, 0},
		{"nothing", "", nil, cut, 0},
		{"no sentinel", "7100 0400 00000003", []string{"0071:00000003"}, cut, 0},
		{"half a header", "7100", nil, cut, 2},
		{"half a value", "7100 0800 00000003", nil, cut, 8},
		{"not aligned", "7100 0200 0000 0100 0000", nil, broken, 10},
	} {
		b := unhex(t, c.octets)
		p := newParameters(b, littleEndian)
		if got := list(p); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if rest, how := p.skip(); how != c.how || len(rest) != c.rest {
			t.Errorf("%s: ended %v, %d octets left", c.name, how, len(rest))
		}
	}
	if list(Parameters{}) != nil {
		t.Error("the zero value has parameters")
	}
}

func TestParametersFind(t *testing.T) {
	e := newEncoder(false).parameter(PIDPad, 9, 9, 9, 9).parameter(PIDStatusInfo, 0, 0, 0, 1).
		parameter(PIDStatusInfo, 0, 0, 0, 2).sentinel().parameter(PIDKeyHash, 1, 2, 3, 4)
	p := newParameters(e.b, bigEndian)
	if v, ok := p.Find(PIDStatusInfo); !ok || !bytes.Equal(v, []byte{0, 0, 0, 1}) {
		t.Errorf("status: %v %v", ok, v)
	}
	for _, id := range []ParameterID{PIDPad, PIDSentinel, PIDKeyHash} { // padding, and what is behind the end
		if v, ok := p.Find(id); ok {
			t.Errorf("%04x: %v", uint16(id), v)
		}
	}
}

// A list of nothing but padding or empty parameters ends at a bound.
func TestParametersBounded(t *testing.T) {
	for id, want := range map[ParameterID]int{PIDPad: 0, PIDTopicName: maxParameters} {
		e := newEncoder(true)
		for range 2 * maxParameters {
			e.parameter(id)
		}
		p := newParameters(e.sentinel().b, littleEndian)
		if n := len(list(p)); n != want {
			t.Errorf("%04x: %d parameters", uint16(id), n)
		}
		if rest, how := p.skip(); how != broken || len(rest) != 4*(maxParameters+1) {
			t.Errorf("%04x: ended %v, %d octets left", uint16(id), how, len(rest))
		}
	}
}

func TestName(t *testing.T) {
	long := bytes.Repeat([]byte{'a'}, maxName+1)
	for _, c := range []struct {
		value string
		want  string
		ok    bool
	}{
		{"\x02\x00\x00\x00a\x00\x00\x00", "a", true},
		{"\x04\x00\x00\x00abc\x00", "abc", true},
		{"\x01\x00\x00\x00\x00\x00\x00\x00", "", true},
		{"\x01\x01\x00\x00" + string(long[:maxName]) + "\x00\x00\x00\x00", string(long[:maxName]), true},
		{"\x02\x01\x00\x00" + string(long) + "\x00\x00\x00", "", false}, // too long
		{"\x00\x00\x00\x00", "", false},
		{"\x05\x00\x00\x00abc\x00", "", false},
		{"\xff\xff\xff\xffabc\x00", "", false},
		{"\x03\x00\x00\x00abc\x00", "", false}, // no NUL at its end
		{"\x02\x00\x00", "", false},
		{"", "", false},
	} {
		if got, ok := littleEndian.name([]byte(c.value)); ok != c.ok || string(got) != c.want {
			t.Errorf("%q: %v %q", c.value, ok, got)
		}
	}
	if got := fmt.Sprint(bigEndian.name([]byte("\x00\x00\x00\x02a\x00\x00\x00"))); got != "[97] true" {
		t.Errorf("big endian: %s", got)
	}
}
