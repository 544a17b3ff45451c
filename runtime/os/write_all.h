/* Bytes to a descriptor, from a signal handler, too. */
#ifndef DOMI_RUNTIME_OS_WRITE_ALL_H
#define DOMI_RUNTIME_OS_WRITE_ALL_H

#include <stddef.h>

/* Write all bytes, and wait if the descriptor blocks. Returns 0; the negative errno of write(2), or
 * -EIO if it writes nothing. It is async-signal-safe, but changes errno. Thread-safety: any
 * thread. */
int domi_write_all(int fd, const void *bytes, size_t length);

#endif
