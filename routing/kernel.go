package routing

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// kernel is what Manager needs of the kernel. All calls are for the network
// namespace that the implementation was opened in; errors wrap the errno. It is
// used by one goroutine at a time.
type kernel interface {
	// view dumps everything; rpFilter is read for "all" and the names given.
	view(names []string) (*view, error)
	// device looks up the hardware behind the link; nothing when it is not known.
	device(l link) device

	addRule(r rule) error
	delRule(r rule) error
	// addRoute fails with EEXIST when the table has a route with r's key, unless
	// replace is set.
	addRoute(r route, replace bool) error
	delRoute(r route) error
	// setRPFilter needs CAP_NET_ADMIN alone; /proc/sys may be read-only.
	setRPFilter(index, value int) error

	setMTU(index, mtu int) error
	setTxQueueLen(index, packets int) error
	setMulticast(index int) error
	setUp(index int) error
	setAlias(index int, alias string) error
	// addrGenNone says that the kernel makes no IPv6 address of its own for the
	// interface; setAddrGenNone makes it so.
	addrGenNone(name string) bool
	setAddrGenNone(index int) error
	addAddress(index int, p netip.Prefix) error
	delAddress(a address) error
	delLink(index int) error

	// namespace identifies the network namespace (inode of nsfs).
	namespace() uint64
	// subscriber returns a source of subscriptions that outlives close.
	subscriber() (subscriber, error)
	close()
}

// subscriber opens subscriptions to changes of interfaces, addresses, routes,
// rules and rp_filter. Unlike kernel it may be used by another goroutine.
type subscriber interface {
	subscribe() (subscription, error)
	close()
}

// subscription is a stream of change messages.
type subscription interface {
	// receive blocks until there was a change. It returns an error wrapping
	// os.ErrClosed after close, unix.ENOBUFS when messages were lost. close may
	// be called meanwhile, and more than once.
	receive() error
	close()
}

// gone says that what was to be deleted is not there any more.
func gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.EADDRNOTAVAIL)
}

// unsupported says that the kernel was built without what was asked for.
func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT)
}

// refusalError is an error in plain words; it wraps the kernel's.
type refusalError struct {
	text string
	err  error
}

func (e refusalError) Error() string { return e.text }
func (e refusalError) Unwrap() error { return e.err }

// why puts the reason of a refusal into plain words.
func why(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		text = "not permitted: it takes the capability CAP_NET_ADMIN, which root and the systemd unit have"
	case errors.Is(err, unix.ENODEV):
		text = "the interface has just gone"
	}
	return refusalError{text, err}
}
