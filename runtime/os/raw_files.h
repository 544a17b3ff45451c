/* Files and descriptors by system calls alone, so that the handler of a signal may call these
 * functions. */
#ifndef DOMI_RUNTIME_OS_RAW_FILES_H
#define DOMI_RUNTIME_OS_RAW_FILES_H

#include <stddef.h>

/* ---- own_file ---------------------------------------------------------------------------------*/

/* Files into which traces are written; they may be opened in the handler of a signal. */

/* most bytes of the path of a trace's file, without the NUL at its end */
#define DOMI_OWN_FILE_PATH_MAX 1023

/* Open the file `path` of a trace for writing: empty, with the mode 0600. It is made, or it exists
 * and is a regular file of this user that has no other name; a symbolic link is not followed. So
 * nobody else who may write to the directory can redirect the trace or read it.
 *
 * Returns the descriptor; -EEXIST if the path is something else; another negative errno of the
 * kernel. The function allocates nothing and takes no lock. Any thread. */
int domi_own_file_open_empty_for_writing(const char *path);

/* Close the file of a trace, which domi_own_file_open_empty_for_writing() has opened. */
void domi_own_file_close(int fd);

/* ---- write_all --------------------------------------------------------------------------------*/

/* How bytes are written to a descriptor, also in the handler of a signal. */

/* Write all bytes to a descriptor, and wait if it blocks. Returns 0; the negative errno of
 * write(2); -EIO if write(2) writes nothing. The function is async-signal-safe, but changes
 * errno. Thread-safety: any thread. */
int domi_write_all_bytes(int fd, const void *bytes, size_t length);

#endif
