package path

// exchange sends a packet of data each way in the session of that key.
func (w *world) exchange(key int) {
	if !w.duplex || !w.known[key] {
		return
	}
	limit := w.m.Largest()
	if limit == 0 && w.m.sizes.State() != SearchOff {
		limit = BaseFrame
	}
	for range cut(w.data, limit) {
		w.sendOut(key, partSize(w.data, limit))
	}
	if w.dead || !w.hearing.Live(w.now) {
		return
	}
	for range cut(w.dataIn, int(w.largest)) {
		w.sendIn(key, partSize(w.dataIn, int(w.largest)))
	}
}

// cut returns in how many parts a frame travels on a path that takes frames up
// to limit, as replicate cuts them; 0 if it does not.
func cut(frame, limit int) int {
	if limit == 0 || frame <= limit {
		return 1
	}
	for n := 2; n <= 4; n++ {
		if 31+(frame-28+n-1)/n <= limit {
			return n
		}
	}
	return 0
}

func partSize(frame, limit int) int {
	if n := cut(frame, limit); n > 1 {
		return 31 + (frame-28+n-1)/n
	}
	return frame
}

func (w *world) sendOut(key, size int) {
	w.seqUp++
	seq := w.seqUp
	if size+wireguardPadding > w.m.Largest() {
		w.full++
	}
	w.own -= w.frame(size) + surroundings(w.ipv6) - wireguardLen // data is not counted
	w.up(w.frame(size), func() {
		if w.known[key] {
			w.hearing.Heard(w.now)
			w.arrive(seq, size)
			w.seen = max(w.seen, uint16(size))
		}
	})
}

func (w *world) sendIn(key, size int) {
	w.seqDown++
	epoch, seq := w.epoch, w.seqDown
	w.down(w.frame(size), func() {
		w.own -= w.frame(size) + surroundings(w.ipv6) - wireguardLen
		if w.wg.current == key && w.usable() {
			w.got()
			w.hear(epoch, seq)
			w.m.Heard(w.now)
			w.m.Seen(size, w.now)
		}
	})
}
