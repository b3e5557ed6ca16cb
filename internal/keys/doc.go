// Package keys holds the Curve25519 keys of nodes and carriers: their files,
// their text form (base64, as `wg genkey` writes it) and the derivation of a
// robot's carrier keys from its node key.
package keys
