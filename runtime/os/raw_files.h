/* Files and descriptors as a handler of a signal may use them: system calls alone. */
#ifndef DOMI_RUNTIME_OS_RAW_FILES_H
#define DOMI_RUNTIME_OS_RAW_FILES_H

#include <stddef.h>

/* ---- own_file ---------------------------------------------------------------------------------*/

/* Opens a file for a trace, in the handler of a signal, too. */

#define DOMI_OWN_FILE_PATH_MAX 1023 /* bytes of a path, without the zero at its end */

/* Open the file of this path for writing: empty, with the mode 0600. It is made, or it is there and
 * is a regular file of this user that has no other name; a symbolic link is not followed. So nobody
 * who may write to the directory can lead the trace elsewhere, or read it.
 *
 * Returns the descriptor; the kernel's error; -EEXIST if the path is something else. It allocates
 * nothing and takes no lock. Any thread. */
int domi_own_file_open(const char *path);

/* Close it. */
void domi_own_file_close(int fd);

/* ---- write_all --------------------------------------------------------------------------------*/

/* Bytes to a descriptor, from a signal handler, too. */

/* Write all bytes, and wait if the descriptor blocks. Returns 0; the negative errno of write(2), or
 * -EIO if it writes nothing. It is async-signal-safe, but changes errno. Thread-safety: any
 * thread. */
int domi_write_all(int fd, const void *bytes, size_t length);

#endif
