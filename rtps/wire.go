package rtps

// Sizes, in octets.
const (
	headerSize        = 20 // of a message (9.4.4)
	submessageHeader  = 4  // of a submessage (9.4.5.1)
	encapsulationSize = 4  // before a payload (10.2)
)

// magic begins every message (9.3.2.1, PROTOCOL_RTPS).
const magic = "RTPS"

// A Kind is what a submessage is (9.4.5.1.1).
type Kind byte

// The kinds of RTPS 2.5, and those of DDS Security 1.1. Kinds from
// 0x80 on are a vendor's own.
const (
	KindHeaderExtension Kind = 0x00
	KindPad             Kind = 0x01
	KindAckNack         Kind = 0x06
	KindHeartbeat       Kind = 0x07
	KindGap             Kind = 0x08
	KindInfoTS          Kind = 0x09
	KindInfoSrc         Kind = 0x0c
	KindInfoReplyIP4    Kind = 0x0d
	KindInfoDst         Kind = 0x0e
	KindInfoReply       Kind = 0x0f
	KindNackFrag        Kind = 0x12
	KindHeartbeatFrag   Kind = 0x13
	KindData            Kind = 0x15
	KindDataFrag        Kind = 0x16
	KindSecBody         Kind = 0x30
	KindSecPrefix       Kind = 0x31
	KindSecPostfix      Kind = 0x32
	KindSRTPSPrefix     Kind = 0x33
	KindSRTPSPostfix    Kind = 0x34
)

// kindCRC is RTI's own: a checksum over all of the message that it begins.
const kindCRC Kind = 0x80

// security says that k is of the range kept for DDS Security (Table 9.14).
func (k Kind) security() bool { return k >= 0x30 && k <= 0x3f }

// Flags of submessages. What a bit means depends on the kind.
const (
	flagLittleEndian = 0x01 // E, of every kind (9.4.5.1.2)

	flagLength     = 0x02 // L of HEADER_EXTENSION (9.4.5.2.1)
	flagTimestamp  = 0x04 // T
	flagUExtension = 0x08 // U
	flagWExtension = 0x10 // W
	flagChecksum2  = 0x20 // C2: alone, a checksum of 4 octets
	flagChecksum1  = 0x40 // C1: alone, one of 8; with C2, one of 16

	flagInvalidate = 0x02 // I of INFO_TS (9.4.5.12.1)

	flagInlineQos       = 0x02 // Q of DATA and DATA_FRAG (9.4.5.4.1, 9.4.5.5.1)
	flagData            = 0x04 // D of DATA
	flagKey             = 0x08 // K of DATA
	flagNonStandard     = 0x10 // N of DATA
	flagFragKey         = 0x04 // K of DATA_FRAG
	flagFragNonStandard = 0x08 // N of DATA_FRAG

	flagFinal      = 0x02 // F of HEARTBEAT and ACKNACK (9.4.5.7.1, 9.4.5.3.1)
	flagLiveliness = 0x04 // L of HEARTBEAT
)

// Flags of StatusInfo_t, in its last octet (9.6.4.9).
const (
	statusDisposed     = 0x01 // D
	statusUnregistered = 0x02 // U
)

// Representations of a payload (10.2), big endian; one more is little endian.
const (
	plainCDR = 0x0000
	listCDR  = 0x0002 // a parameter list
)

// Entity ids of discovery (9.3.1.3, Table 9.2).
const (
	EntityUnknown             EntityID = 0x00000000 // every reader
	EntityParticipant         EntityID = 0x000001c1
	EntityParticipantWriter   EntityID = 0x000100c2 // SPDP
	EntityParticipantReader   EntityID = 0x000100c7
	EntityPublicationsWriter  EntityID = 0x000003c2 // SEDP: writers
	EntityPublicationsReader  EntityID = 0x000003c7
	EntitySubscriptionsWriter EntityID = 0x000004c2 // SEDP: readers
	EntitySubscriptionsReader EntityID = 0x000004c7
)
