package contacts

// maxFile is the largest file of contacts read, in bytes: 4,096 robots with 8
// carriers take some 5 MB.
const maxFile = 8 << 20
