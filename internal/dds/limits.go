package dds

// Sizes of messages, in bytes.
const (
	// headers4 and headers6 are what IP and UDP add to a message: RFC 791
	// without options, RFC 8200 without extensions, RFC 768.
	headers4 = 20 + 8
	headers6 = 40 + 8
	// fragmentHeaders is the room that Cyclone DDS gets for what stands around a
	// fragment's data (DDSI-RTPS 2.3, 8.3 and 9.4): header 20, INFO_DST 16,
	// INFO_TS 12, DATA_FRAG 36, its inline QoS of up to 32, rounded up.
	fragmentHeaders = 120
	// minFastMessage is the least that Fast DDS is limited to. It cannot split
	// what it says of a participant, so with less it finds nobody: at 548 it did
	// not, at 600 it did, and names and user data need their room.
	minFastMessage = 1200
	// segment is the memory that every Fast DDS participant reserves for the
	// transport that is there for its limit alone (Fast DDS: 512 KiB). It must
	// hold one message.
	segment = 64 << 10
)
