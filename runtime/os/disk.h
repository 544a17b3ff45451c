/* Operations on files by system calls that may wait for a disk. Helper threads and the test kit
 * call them. They know neither actors nor handles. Any thread.
 *
 * Functions return 0, or what their comments say; or a negative errno. An interrupted system call
 * is repeated. */
#ifndef DOMI_RUNTIME_OS_DISK_H
#define DOMI_RUNTIME_OS_DISK_H

#include <domus/file.h>

#include <linux/openat2.h>
#include <stddef.h>

/* Open a file. Returns its descriptor; with RESOLVE_CACHED -EAGAIN if the open would wait for a
 * disk; another negative errno. `how` is as for openat2(2). On a kernel without this call openat(2)
 * is used, or, if `how->resolve` is not 0, -EOPNOTSUPP is returned. */
int domi_disk_open(int directory, const char *path, const struct open_how *how);

/* Set `ret_is_directory` to whether the descriptor is of a directory, without waiting for a disk.
 * Returns 0; -EINVAL if it is of neither a regular file nor a directory. */
int domi_disk_check_kind_of_file(int fd, bool *ret_is_directory);

/* Set `ret_status` to the status of a regular file or a directory that the kernel has in memory.
 * Returns 0; -EINVAL as domi_disk_check_kind_of_file() does. */
int domi_disk_stat_without_waiting(int fd, domus_file_status *ret_status);

void domi_disk_close(int fd);

/* Read or write up to `size` bytes of a file at a position. domi_disk_read() returns fewer only
 * at the end of the file. domi_disk_write() returns how many bytes were written, and sets
 * `ret_error` if these are not all. */
int domi_disk_read(int fd, void *data, uint32_t size, uint64_t position);
/* Read the bytes of a file that the kernel has in memory. Returns how many were read; -EAGAIN if
 * the kernel has none of them in memory. */
int domi_disk_read_without_waiting(int fd, void *data, uint32_t size, uint64_t position);
uint32_t domi_disk_write(int fd, const void *data, uint32_t size, uint64_t position,
                         int *ret_error);

int domi_disk_sync(int fd, bool data_only);
int domi_disk_truncate(int fd, uint64_t size);
int domi_disk_stat(int fd, domus_file_status *ret_status);

/* A name of a file: a path and the directory from which it is looked up. */
typedef struct domi_disk_name {
    int directory; /* descriptor of the directory from which the path is looked up, or AT_FDCWD */
    const char *path;
    bool beneath; /* true: the path must not lead out of the directory */
} domi_disk_name;

int domi_disk_rename(domi_disk_name from, domi_disk_name to, bool exclusive);
/* Give an open file, also one without a name, the name `to`, which must not exist yet. Returns
 * 0; a negative errno. */
int domi_disk_link(int fd, domi_disk_name to);
int domi_disk_remove(domi_disk_name name, bool is_directory);
int domi_disk_make_directory(domi_disk_name name, uint32_t mode);

/* Bytes of a listed directory entry before its name: its inode (8 bytes) and its domus_file_kind (1
 * byte). The name with a NUL follows. */
#define DOMI_DISK_ENTRY_HEAD 9u

/* A buffer into which a part of a directory is listed, with what the listing has found. */
typedef struct domi_disk_list {
    char *bytes;        /* memory for the listed entries */
    uint32_t room;      /* size of `bytes` in bytes, at least DOMI_DISK_ENTRY_HEAD + NAME_MAX + 1 */
    uint32_t count_max; /* most entries that the listing may write */
    uint32_t size;      /* number of bytes that the listing has written */
    uint32_t count;     /* number of entries that the listing has written */
    /* position in the directory at which the listing begins; afterwards that of the next part */
    uint64_t position;
    bool last; /* true: the listing has reached the end of the directory */
} domi_disk_list;

/* List a part of a directory into `list`. The directory is opened anew, so the position of `fd`
 * itself does not change, and several listings of it may run at a time. */
int domi_disk_list_part_of_directory(int fd, domi_disk_list *list);

#endif
