/* Files: open, read, write and others, as asks with positions.
 *
 * A file is a counted handle. The answer to an open brings one, and whoever has it closes it with
 * domus_file_close(). A handle has no position of its own, so any actor on any thread may use it,
 * several at the same time. Each operation under way keeps the handle, so the descriptor is closed
 * when the last owner has closed it and the last operation has ended.
 *
 *     DOMUS_AWAIT(domus_file_open(stack, NULL, "motd", DOMUS_FILE_READ, 0, then));
 *     if (answer->error == 0 && domus_take_answer(stack, answer) == 0)
 *         frame->file = *(domus_file *const *)answer->payload;
 *     ...
 *     DOMUS_AWAIT(domus_file_read(stack, frame->file, 0, 4096, then));
 *
 * No operation lets a thread of the system wait for a disk. A read, a write or an open is tried in
 * the ring of the thread first, where it ends at once if the kernel has what it needs in memory. If
 * not, and for everything else, a helper thread does it (domus/blocking.h: blocking.threadsMax and
 * blocking.queueMax bound these threads and what waits for them). In a test kit operations are
 * carried out at once, on the real files, and the answers come as messages.
 *
 * A cancel, a deadline and a stop resume the conversation at once, and what the operation still
 * brings is thrown away: bytes are freed, and a file that was opened is closed. An operation that
 * changes something (a write, a truncate, a rename and the like) may have happened, also in part,
 * when its conversation is resumed with -ECANCELED or -ETIMEDOUT. If it has not begun by then, it
 * is not begun.
 *
 * Each function that takes `then` suspends the conversation: write `return domus_file_...`. It
 * returns DOMUS_PARKED; -EINVAL and what it names itself for wrong arguments; -ENOMEM, -ENOBUFS,
 * -EBUSY and -ECANCELED as domus_ask(). Then nothing was begun. The answer's error is the errno of
 * the system call, or, at all of them: -EAGAIN when blocking.queueMax operations wait for a helper
 * thread; -ESHUTDOWN when the system stops; -ENOMEM. An ask that the conversation answers hands its
 * deadline on (domus_ask_within()), so the error may be -ETIMEDOUT.
 *
 * Thread-safety of all functions with a stack: only from within a handler, with the stack that the
 * handler was given. A detached actor may use them, too; helper threads do its operations. An actor
 * of a pool (domus/pools.h) may not: -EOPNOTSUPP. */
#ifndef DOMUS_FILE_H
#define DOMUS_FILE_H

#include <domus/conversation.h>
#include <domus/slice.h>
#include <domus/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of an open file or directory. */
typedef struct domus_file domus_file;

/* Bits for the `flags` of functions of files. Each function names the bits that it takes. */
#define DOMUS_FILE_READ   UINT32_C(0x01) /* flag: to read a file, or to list a directory */
#define DOMUS_FILE_WRITE  UINT32_C(0x02) /* flag: to write, truncate or sync a file */
#define DOMUS_FILE_CREATE UINT32_C(0x04) /* flag: to make a file that is not there */
/* flag: the open fails with -EEXIST when the file is there already */
#define DOMUS_FILE_EXCLUSIVE UINT32_C(0x08)
/* flag: the bytes of a file that is there already are thrown away */
#define DOMUS_FILE_TRUNCATE UINT32_C(0x10)
/* flag: each write goes to the end of the file, at whatever position */
#define DOMUS_FILE_APPEND UINT32_C(0x20)
/* flag: the path has to be a directory; otherwise the open fails with -ENOTDIR */
#define DOMUS_FILE_DIRECTORY UINT32_C(0x40)
/* Flag: the path must stay beneath the directory that it begins at: neither `..` nor an absolute
 * path nor a symbolic link leads out of it (-EXDEV), and links of /proc are not followed (-ELOOP).
 * Links that stay inside are followed. */
#define DOMUS_FILE_BENEATH UINT32_C(0x80)
/* Flag: a new file without a name is made. The path is the directory on whose disk it lies. It is
 * gone with its last handle, also when the program crashes, unless domus_file_link() has given it a
 * name. Only for domus_file_open(), with WRITE, and with neither CREATE, TRUNCATE nor DIRECTORY. */
#define DOMUS_FILE_UNNAMED UINT32_C(0x200)
/* Flag, only for domus_file_load_now(): the load may use bytes of the file that the thread has kept
 * from earlier loads. */
#define DOMUS_FILE_KEPT UINT32_C(0x100)

/* --- handles -------------------------------------------------------------------------------- */

/* The type of the answer to an open. Its payload is a `domus_file *`, and its `release` closes it;
 * domus_take_answer() or domus_take() keeps it. */
DOMUS_API extern const domus_type domus_file_type;

/* Open a regular file or a directory, for DOMUS_FILE_READ, DOMUS_FILE_WRITE or both.
 *
 * `path` (1..4,095 bytes, copied) is relative to `directory` (NULL: the working directory of the
 * process), unless it begins with a slash. `flags` are any of the above; EXCLUSIVE needs CREATE,
 * and CREATE, TRUNCATE and APPEND need WRITE. `mode` (0..07777) are the permissions of a file that
 * is made, less the umask of the process; UNNAMED makes one, too.
 *
 * The handle keeps `directory`, so it may be closed at once.
 * Returns as the head of this file says; -ENAMETOOLONG. `then` is resumed with -EINVAL when it is
 * neither of the two: a FIFO, a device or a socket is not waited for and not used. With -EMFILE
 * when files.openMax (1,024) files of the system are open, or the process has no descriptors. With
 * -EOPNOTSUPP for UNNAMED on a file system that has no such files (NFS, FAT). */
DOMUS_API int domus_file_open(domus_stack *stack, domus_file *directory, const char *path,
                              uint32_t flags, uint32_t mode, domus_resumed *then);

/* Make another owner of a handle. Returns `file`. Thread-safety: any thread. */
DOMUS_API domus_file *domus_file_keep(domus_file *file);

/* Give a handle back. The last owner closes the file. An error of that close is not told: call
 * domus_file_sync() before, if the bytes have to be there. A file that may be written is closed by
 * a helper thread, because the kernel may wait for a disk there; any other one at once. NULL is
 * allowed, and does nothing. Thread-safety: any thread. */
DOMUS_API void domus_file_close(domus_file *file);

/* Returns whether the handle is that of a directory. Thread-safety: any thread. */
DOMUS_API bool domus_file_is_directory(const domus_file *file);

/* --- bytes ---------------------------------------------------------------------------------- */

/* Read `size` bytes (0 B..files.readMax, which is 1 MiB) at `position`. The answer is of
 * domus_slice_type. It has fewer bytes only where the file ends, and none at its end and behind it.
 *
 * Returns as the head of this file says; -EINVAL for NULL, and for a position beyond 2^63 - 1 with
 * the size; -EMSGSIZE above files.readMax. `then` is resumed with -EISDIR for a directory; -EBADF
 * when it was opened without DOMUS_FILE_READ; -EBUSY while memory is critical (domus/memory.h). */
DOMUS_API int domus_file_read(domus_stack *stack, domus_file *file, uint64_t position,
                              uint32_t size, domus_resumed *then);

/* Begin a read as one of several things to wait for, as domus_ask_add() does. */
DOMUS_API int domus_file_read_add(domus_stack *stack, domus_file *file, uint64_t position,
                                  uint32_t size, uint64_t tag);

/* The answer to a write. If an error comes after some bytes were written, the answer is no
 * exception: it has the number of these bytes, and the error. */
typedef struct domus_file_written {
    uint32_t bytes; /* number of bytes that were written */
    int error;      /* 0 if all bytes were written; otherwise the negative errno, such as -ENOSPC */
} domus_file_written;

DOMUS_API extern const domus_type domus_file_written_type;

/* Write a slice at `position`, or, with DOMUS_FILE_APPEND, at the end. When the answer comes, the
 * bytes are in the kernel; they are on the disk after domus_file_sync().
 *
 * Ownership: the write owns the slice, unless this returns a negative errno.
 * Returns as domus_file_read(). `then` is resumed with an error when nothing was written. */
DOMUS_API int domus_file_write(domus_stack *stack, domus_file *file, uint64_t position,
                               domus_slice bytes, domus_resumed *then);
DOMUS_API int domus_file_write_add(domus_stack *stack, domus_file *file, uint64_t position,
                                   domus_slice bytes, uint64_t tag);

/* Flush the written bytes of a file to the disk; with `data_only` without the times and other notes
 * of the file that are not needed to read them (fdatasync(2)). The answer is of
 * domus_file_done_type.
 * Returns as the head of this file says; -EINVAL for NULL. */
DOMUS_API int domus_file_sync(domus_stack *stack, domus_file *file, bool data_only,
                              domus_resumed *then);

/* Make the file `size` bytes long. The answer is of domus_file_done_type.
 * Returns as the head of this file says; -EINVAL for NULL, and for a size beyond 2^63 - 1. `then`
 * is resumed with -EINVAL when it was opened without DOMUS_FILE_WRITE. */
DOMUS_API int domus_file_truncate(domus_stack *stack, domus_file *file, uint64_t size,
                                  domus_resumed *then);

/* The type of an answer without a payload, as after a sync or a rename. */
DOMUS_API extern const domus_type domus_file_done_type;

/* Facts about a file. */
typedef struct domus_file_status {
    uint64_t size;       /* length of the file in bytes */
    uint64_t inode;      /* inode number, unique on its device */
    uint64_t device;     /* number of the device that the file is on */
    int64_t modified_ns; /* time of the last change of the bytes, in ns since 1970 */
    uint32_t mode;       /* kind and permissions, as st_mode of stat(2) */
    uint32_t links;      /* number of names (hard links) that the file has in its file system */
    /* time of the last change of bytes, owner, names or permissions, in ns since 1970 */
    int64_t changed_ns;
} domus_file_status;

DOMUS_API extern const domus_type domus_file_status_type;

/* Ask for the domus_file_status of a file. Returns as domus_file_sync(). */
DOMUS_API int domus_file_stat(domus_stack *stack, domus_file *file, domus_resumed *then);

/* --- names ---------------------------------------------------------------------------------- */

/* Give a file another name, in place of the one that has it (-EEXIST with DOMUS_FILE_EXCLUSIVE);
 * remove a name (an empty directory with DOMUS_FILE_DIRECTORY); make a directory. Paths are as of
 * domus_file_open(), and DOMUS_FILE_BENEATH holds for both of them. A symbolic link at the end of a
 * path is not followed: it is the link that is renamed or removed. The answer is of
 * domus_file_done_type.
 *
 * Returns as domus_file_open(). `then` is resumed with -EINVAL for a path that ends in a slash, in
 * `.` or in `..`. */
DOMUS_API int domus_file_rename(domus_stack *stack, domus_file *from_directory, const char *from,
                                domus_file *to_directory, const char *to, uint32_t flags,
                                domus_resumed *then);
DOMUS_API int domus_file_remove(domus_stack *stack, domus_file *directory, const char *path,
                                uint32_t flags, domus_resumed *then);
DOMUS_API int domus_file_make_directory(domus_stack *stack, domus_file *directory, const char *path,
                                        uint32_t flags, uint32_t mode, domus_resumed *then);

/* Give a file that was opened with DOMUS_FILE_UNNAMED a name. `flags` is DOMUS_FILE_BENEATH or 0. A
 * name that is there is never replaced: for that, link to another name, and rename. The answer is
 * of domus_file_done_type.
 *
 * Returns as domus_file_remove(); -EINVAL for NULL. `then` is resumed with -EEXIST; -EXDEV when the
 * directory is on another file system; -ENOENT when the file had a name, and was removed. */
DOMUS_API int domus_file_link(domus_stack *stack, domus_file *file, domus_file *directory,
                              const char *path, uint32_t flags, domus_resumed *then);

/* A piece of the listing of a directory. Its `release` frees what it owns. */
typedef struct domus_file_entries {
    domus_slice bytes; /* the entries; domus_file_next_entry() reads them */
    uint64_t next;     /* position at which the next piece of the listing begins */
    uint32_t count;    /* number of entries of the directory in this piece */
    bool last;         /* whether this piece is the last one of the listing */
} domus_file_entries;

DOMUS_API extern const domus_type domus_file_entries_type;

/* List a directory from `position` on: 0 for its start, and then `next` of the piece before. A
 * piece has at most files.listMax (256) entries and 16 KiB of names; it may have none, and not be
 * the last. The order is that of the file system: nothing is sorted. `.` and `..` are left out. An
 * entry that comes or goes between two pieces is shown or not; the others are shown once.
 *
 * Returns as domus_file_sync(). `then` is resumed with -ENOTDIR; -EBUSY while memory is
 * critical. */
DOMUS_API int domus_file_list(domus_stack *stack, domus_file *directory, uint64_t position,
                              domus_resumed *then);

/* The kinds of entries of a directory. */
typedef enum domus_file_kind {
    DOMUS_FILE_IS_UNKNOWN, /* the file system does not tell the kind of the entry; open it to see */
    DOMUS_FILE_IS_REGULAR,
    DOMUS_FILE_IS_DIRECTORY,
    DOMUS_FILE_IS_LINK, /* the entry is a symbolic link */
    DOMUS_FILE_IS_OTHER,
} domus_file_kind;

/* An entry of a directory. */
typedef struct domus_file_entry {
    const char *name; /* name of the entry, NUL-terminated; valid as long as the entries are */
    uint64_t inode;
    domus_file_kind kind;
} domus_file_entry;

/* Read the entry at `*at`, which is 0 at first, and go on to the next one. Returns false when there
 * is none. Thread-safety: any thread. */
DOMUS_API bool domus_file_next_entry(const domus_file_entries *entries, uint32_t *at,
                                     domus_file_entry *ret_entry);

/* --- whole files ------------------------------------------------------------------------------ */

/* A file that was opened, looked at, and read as a whole if it is small. Its `release` closes the
 * file and frees the bytes. */
typedef struct domus_file_loaded {
    domus_file_status status;
    /* all bytes of a regular file of up to `size_max` bytes; otherwise the empty slice */
    domus_slice bytes;
    /* handle of a directory, or of a file of more than `size_max` bytes; otherwise NULL */
    domus_file *file;
    /* the path that was loaded; valid until the call or the resumed function returns */
    const char *path;
    uint32_t index; /* index of the loaded path in the list of paths */
} domus_file_loaded;

DOMUS_API extern const domus_type domus_file_loaded_type;

#define DOMUS_FILE_PATHS_MAX 4u /* most paths in the list of one load */

/* Load the first of 1..DOMUS_FILE_PATHS_MAX paths, whose list ends with NULL, that is there: open
 * it as domus_file_open() does for reading, look at it as domus_file_stat() does, and read it. A
 * path that cannot be opened, or is a directory, is passed over, unless it is the last. `flags` are
 * DOMUS_FILE_BENEATH, DOMUS_FILE_KEPT, both or 0. `size_max` is 0..files.readMax.
 *
 * domus_file_load_now() does that in this call, if the kernel has in memory what it needs, so
 * it never waits for a disk. It costs four calls to the kernel, and neither a message nor a
 * turn of the ring. If it cannot, it has done nothing and returns -EAGAIN; then
 * domus_file_load() lets a helper thread do it. The answer to that is of
 * domus_file_loaded_type, and carries `tag`, also with an error.
 *
 * **Kept files.** With DOMUS_FILE_KEPT and a directory, a thread keeps the bytes of small files
 * that it loads again and again, up to files.keptMax (8 MiB a thread; 0: none). Each load still
 * finds the path beneath the directory and looks at the file, and uses the kept bytes only if
 * inode, size, mode and the times of the last change are the same. So a file that is written,
 * replaced, renamed or led elsewhere by a link is seen at once. Bytes are not kept before a file
 * was the same for 100 ms (3 s on a file system that counts whole seconds), so two writes within
 * one tick of its clock cannot be mistaken for one. A write through a shared mapping (mmap(2)) is
 * seen when the kernel notes its time, which may be seconds later.
 *
 * With files.keptTime above 0 (the default) a file that was looked at within that time is not
 * looked at again: the answer may be that old, also when the file was changed or removed. Threads
 * look for themselves, so within that time two of them may answer differently. When memory is
 * short, or the thread at memory.threadMax, kept files are forgotten. The bytes of a kept file are
 * there also when it has more than `size_max`.
 *
 * Ownership: the caller owns what domus_file_load_now() sets, and calls the type's `release`.
 * Both return as the head of this file and domus_file_open() say; -EINVAL for a wrong list;
 * -EMSGSIZE above files.readMax; -EBUSY while memory is critical, and when the file changed its
 * size at each of some tries. domus_file_load_now() returns 0 if the file was loaded, and otherwise
 * also what `then` would be resumed with. */
DOMUS_API int domus_file_load_now(domus_stack *stack, domus_file *directory,
                                  const char *const *paths, uint32_t flags, uint32_t size_max,
                                  domus_file_loaded *ret_loaded);
DOMUS_API int domus_file_load(domus_stack *stack, domus_file *directory, const char *const *paths,
                              uint32_t flags, uint32_t size_max, uint64_t tag, domus_resumed *then);

/* --- sending -------------------------------------------------------------------------------- */

/* Send `size` bytes of a file, from `position` on, as pieces of the answer that domus_reply_begin()
 * has begun; or of any stream, also of a request of this side (domus_request_begin()); or to the
 * channel of this actor, without a pipeline. The handler still ends the answer or the request. Each
 * piece (128 KiB, or files.readMax if that is less) is read when the one before it was taken, so a
 * file of any size takes the memory of one piece, and a slow peer slows the reads down. The answer
 * has neither type nor payload.
 *
 * The bytes are never filled up: if the file ends before `size` bytes, `then` is resumed with
 * -ENODATA behind those that were sent. A handler that fails then cuts the stream (domus/stream.h).
 * Other errors are those of domus_file_read(), except -EBUSY, and of domus_reply_write(),
 * domus_channel_write_slice() and domus_channel_flush(). After an error some of the bytes may have
 * been sent.
 *
 * Returns as domus_file_read(), for any size up to 2^63 - 1; as domus_reply_write(). From
 * domus_file_send() -EPERM when this actor is not that of a channel. */
DOMUS_API int domus_file_reply(domus_stack *stack, domus_file *file, uint64_t position,
                               uint64_t size, domus_resumed *then);
DOMUS_API int domus_file_stream(domus_stack *stack, domus_file *file, uint64_t position,
                                uint64_t size, domus_stream stream, domus_resumed *then);
DOMUS_API int domus_file_send(domus_stack *stack, domus_file *file, uint64_t position,
                              uint64_t size, domus_resumed *then);

/* Answer the request that is handled with a head, and `size` bytes of a file behind it: this is
 * domus_reply_begin(), domus_file_reply() and domus_reply_end(), and the conversation ends with
 * them. Write `return domus_file_answer(...)`.
 *
 * Ownership: the head owns what the payload owns, unless this returns a negative errno.
 * Returns as domus_file_reply(). If the answer fails before its head was sent, the request fails
 * with the error; after that the stream is cut. */
DOMUS_API int domus_file_answer(domus_stack *stack, const domus_type *type, const void *head,
                                domus_file *file, uint64_t position, uint64_t size);

/* A part of an answer: some text, and `size` bytes of the file behind it. Either may be empty. */
typedef struct domus_file_part {
    domus_slice before;
    uint64_t position;
    uint64_t size;
} domus_file_part;

#define DOMUS_FILE_PARTS_MAX 256u /* most parts of one answer of domus_file_answer_parts() */

/* Answer as domus_file_answer() does, with `count` parts one behind the other. They are copied.
 *
 * Ownership: this takes the slices of the parts, and the head owns what the payload owns, unless
 * this returns a negative errno.
 * Returns as domus_file_answer(); -EINVAL for too many parts. */
DOMUS_API int domus_file_answer_parts(domus_stack *stack, const domus_type *type, const void *head,
                                      domus_file *file, const domus_file_part *parts,
                                      uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
