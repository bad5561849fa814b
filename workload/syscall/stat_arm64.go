package syscalls

import "golang.org/x/sys/unix"

// sysStat is the call behind fstatat(2), which has a name of its own on each
// architecture.
const sysStat = unix.SYS_FSTATAT
