package arbitrate

import (
	"hash/maphash"
	"iter"
)

// table is a map that holds at most limit keys. It allocates only while it holds
// more than ever before; values do not move. A Go map would grow now and then if
// keys come and go.
type table[K comparable, V any] struct {
	limit, count int
	seed         maphash.Seed
	chains       []*entry[K, V] // by hash; a power of two
	spare        *entry[K, V]
}

type entry[K comparable, V any] struct {
	key   K
	value V
	next  *entry[K, V]
}

func newTable[K comparable, V any](limit int) table[K, V] {
	size := 1
	for size < limit {
		size *= 2
	}
	return table[K, V]{limit: limit, seed: maphash.MakeSeed(), chains: make([]*entry[K, V], size)}
}

func (t *table[K, V]) chain(k K) **entry[K, V] {
	return &t.chains[maphash.Comparable(t.seed, k)&uint64(len(t.chains)-1)]
}

// get returns the value of k, nil if there is none.
func (t *table[K, V]) get(k K) *V {
	for e := *t.chain(k); e != nil; e = e.next {
		if e.key == k {
			return &e.value
		}
	}
	return nil
}

func (t *table[K, V]) full() bool { return t.count == t.limit }

// add makes room for the value of k, which must not be there, and returns it: a
// zero value, or one that was removed. It returns nil if the table is full.
func (t *table[K, V]) add(k K) *V {
	if t.full() {
		return nil
	}
	e := t.spare
	if e == nil {
		e = new(entry[K, V])
	} else {
		t.spare = e.next
	}
	chain := t.chain(k)
	e.key, e.next = k, *chain
	*chain = e
	t.count++
	return &e.value
}

// remove takes k out. Its value may be used again by add.
func (t *table[K, V]) remove(k K) {
	for at := t.chain(k); *at != nil; at = &(*at).next {
		if e := *at; e.key == k {
			*at = e.next
			e.next, t.spare = t.spare, e
			t.count--
			return
		}
	}
}

// all iterates over the values, in no order. None may be added or removed meanwhile.
func (t *table[K, V]) all() iter.Seq[*V] {
	return func(yield func(*V) bool) {
		for _, e := range t.chains {
			for ; e != nil; e = e.next {
				if !yield(&e.value) {
					return
				}
			}
		}
	}
}
