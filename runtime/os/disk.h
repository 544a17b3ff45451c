/* Files of the kernel, by calls that may wait for a disk: helper threads make them, and the test
 * kit. They know neither actors nor handles. Any thread.
 *
 * Functions return 0 or what they say, or a negative errno. An interrupted call is made again. */
#ifndef DOMI_RUNTIME_OS_DISK_H
#define DOMI_RUNTIME_OS_DISK_H

#include <domus/file.h>

#include <linux/openat2.h>
#include <stddef.h>

/* Returns a new descriptor; with RESOLVE_CACHED -EAGAIN if that would wait. `how` is as for
 * openat2(2); a kernel without that call opens by openat(2), unless `how->resolve` asks for what
 * this cannot (-EOPNOTSUPP). */
int domi_disk_open(int directory, const char *path, const struct open_how *how);

/* Set `ret_is_directory` to what the descriptor is, by what the kernel has in memory. Returns 0;
 * -EINVAL if it is neither a regular file nor a directory. */
int domi_disk_look(int fd, bool *ret_is_directory);

/* Set `ret_status` to what the kernel has in memory of a regular file or a directory. Returns
 * as domi_disk_look(). */
int domi_disk_stat_now(int fd, domus_file_status *ret_status);

void domi_disk_close(int fd);

/* Read or write up to `size` bytes. Reading returns fewer only at the end of the file. Writing
 * returns how many were written, and sets `ret_error` if these are not all. */
int domi_disk_read(int fd, void *data, uint32_t size, uint64_t position);
/* Read what the kernel has in memory. Returns how many bytes these are; -EAGAIN if
 * there are none. */
int domi_disk_read_now(int fd, void *data, uint32_t size, uint64_t position);
uint32_t domi_disk_write(int fd, const void *data, uint32_t size, uint64_t position,
                         int *ret_error);

int domi_disk_sync(int fd, bool data_only);
int domi_disk_truncate(int fd, uint64_t size);
int domi_disk_stat(int fd, domus_file_status *ret_status);

/* A name, as far as these functions need it. */
typedef struct domi_disk_name {
    int directory; /* descriptor, or AT_FDCWD */
    const char *path;
    bool beneath; /* the path has to stay beneath the directory */
} domi_disk_name;

int domi_disk_rename(domi_disk_name from, domi_disk_name to, bool exclusive);
/* Give a file that has no name one, which is not there yet. */
int domi_disk_link(int fd, domi_disk_name to);
int domi_disk_remove(domi_disk_name name, bool is_directory);
int domi_disk_make_directory(domi_disk_name name, uint32_t mode);

/* One entry of a directory is written as its inode (8 bytes), its domus_file_kind (1 byte), and its
 * name with a NUL. */
#define DOMI_DISK_ENTRY_HEAD 9u

/* The room into which a directory is listed, and what came of it. */
typedef struct domi_disk_list {
    char *bytes;        /* room for the entries */
    uint32_t room;      /* bytes of it, at least DOMI_DISK_ENTRY_HEAD + NAME_MAX + 1 */
    uint32_t count_max; /* entries that may be listed */
    uint32_t size;      /* bytes that were written */
    uint32_t count;     /* entries that were written */
    uint64_t position;  /* where to begin; then where the next piece begins */
    bool last;          /* nothing follows */
} domi_disk_list;

/* List some entries. The description that `fd` stands for stays as it is: the directory is opened
 * anew, so that several pieces may be listed at a time. */
int domi_disk_list_some(int fd, domi_disk_list *list);

#endif
