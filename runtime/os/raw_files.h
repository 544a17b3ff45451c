/* Files and descriptors by system calls alone, so that the handler of a signal may use these
 * functions. */
#ifndef DOMI_RUNTIME_OS_RAW_FILES_H
#define DOMI_RUNTIME_OS_RAW_FILES_H

#include <stddef.h>

/* ---- own_file ---------------------------------------------------------------------------------*/

/* Files for traces, which may be opened in the handler of a signal. */

#define DOMI_OWN_FILE_PATH_MAX 1023 /* most bytes of a path, without the NUL at its end */

/* Open the file `path` for writing: empty, with the mode 0600. It is made, or it exists and is a
 * regular file of this user that has no other name; a symbolic link is not followed. So nobody else
 * who may write to the directory can redirect the trace or read it.
 *
 * Returns the descriptor; -EEXIST if the path is something else; another negative errno of the
 * kernel. The function allocates nothing and takes no lock. Any thread. */
int domi_own_file_open(const char *path);

/* Close the file of a trace. */
void domi_own_file_close(int fd);

/* ---- write_all --------------------------------------------------------------------------------*/

/* Writing to a descriptor, also from the handler of a signal. */

/* Write all bytes, and wait if the descriptor blocks. Returns 0; the negative errno of write(2);
 * -EIO if write(2) writes nothing. The function is async-signal-safe, but changes errno.
 * Thread-safety: any thread. */
int domi_write_all(int fd, const void *bytes, size_t length);

#endif
