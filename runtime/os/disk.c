/* Operations on files, by system calls. If a system call has no flag that keeps a name beneath a
 * directory, two steps are needed: openat2(2) finds the directory that holds the name, and the
 * system call gets the last part of the path. Any thread. */
#include "runtime/os/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* most tries to look up a path beneath a directory while something is renamed */
#define TRIES_MAX  16
#define LIST_BYTES 8192u

#define NS_OF_SECOND INT64_C(1000000000)

static int open_without_resolve(int directory, const char *path, const struct open_how *how)
{
    if (how->resolve != 0)
        return -EOPNOTSUPP;
    int fd = openat(directory, path, (int)how->flags, (mode_t)how->mode);
    return fd >= 0 ? fd : -errno;
}

int domi_disk_open(int directory, const char *path, const struct open_how *how)
{
    long fd = -1;

    /* tried again on -EAGAIN: something was renamed while the kernel checked that the path stays
     * beneath the directory */
    for (int tries = 0; tries < TRIES_MAX && fd < 0; tries++) {
        fd = syscall(SYS_openat2, directory, path, how, sizeof *how);
        if (fd < 0 && errno == ENOSYS)
            return open_without_resolve(directory, path, how);
        if (fd < 0 && errno != EINTR && (errno != EAGAIN || (how->resolve & RESOLVE_CACHED) != 0))
            return -errno;
    }
    return fd >= 0 ? (int)fd : -errno;
}

int domi_disk_check_kind_of_file(int fd, bool *ret_is_directory)
{
    struct statx status;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0)
        return -errno;
    if (!S_ISREG(status.stx_mode) && !S_ISDIR(status.stx_mode))
        return -EINVAL;
    *ret_is_directory = S_ISDIR(status.stx_mode);
    return 0;
}

int domi_disk_stat_without_waiting(int fd, domus_file_status *ret_status)
{
    struct statx status;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) != 0)
        return -errno;
    if (!S_ISREG(status.stx_mode) && !S_ISDIR(status.stx_mode))
        return -EINVAL;
    *ret_status = (domus_file_status){
        .size = status.stx_size,
        .inode = status.stx_ino,
        .device = makedev(status.stx_dev_major, status.stx_dev_minor),
        .modified_ns = status.stx_mtime.tv_sec * NS_OF_SECOND + status.stx_mtime.tv_nsec,
        .mode = status.stx_mode,
        .links = status.stx_nlink,
        .changed_ns = status.stx_ctime.tv_sec * NS_OF_SECOND + status.stx_ctime.tv_nsec,
    };
    return 0;
}

void domi_disk_close(int fd)
{
    /* an error is ignored, because close(2) closes the descriptor even if it fails */
    (void)close(fd);
}

/* --- reading and writing ---------------------------------------------------------------------- */

int domi_disk_read(int fd, void *data, uint32_t size, uint64_t position)
{
    uint32_t done = 0;

    while (done < size) {
        ssize_t count = pread(fd, (char *)data + done, size - done, (off_t)(position + done));
        if (count == 0)
            break;
        if (count < 0 && errno != EINTR)
            return -errno;
        done += count > 0 ? (uint32_t)count : 0;
    }
    return (int)done;
}

int domi_disk_read_without_waiting(int fd, void *data, uint32_t size, uint64_t position)
{
    const struct iovec bytes = {data, size};
    ssize_t count = preadv2(fd, &bytes, 1, (off_t)position, RWF_NOWAIT);

    if (count >= 0)
        return (int)count;
    return errno == EOPNOTSUPP || errno == EINTR || errno == ENOSYS ? -EAGAIN : -errno;
}

uint32_t domi_disk_write(int fd, const void *data, uint32_t size, uint64_t position, int *ret_error)
{
    uint32_t done = 0;

    while (done < size) {
        ssize_t count =
            pwrite(fd, (const char *)data + done, size - done, (off_t)(position + done));
        if (count == 0 || (count < 0 && errno != EINTR)) {
            *ret_error = count == 0 ? -EIO : -errno;
            break;
        }
        done += count > 0 ? (uint32_t)count : 0;
    }
    return done;
}

int domi_disk_sync(int fd, bool data_only)
{
    return (data_only ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : -errno;
}

int domi_disk_truncate(int fd, uint64_t size)
{
    int result;

    do
        result = ftruncate(fd, (off_t)size);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : -errno;
}

int domi_disk_stat(int fd, domus_file_status *ret_status)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return -errno;
    *ret_status = (domus_file_status){
        .size = (uint64_t)status.st_size,
        .inode = status.st_ino,
        .device = status.st_dev,
        .modified_ns = status.st_mtim.tv_sec * NS_OF_SECOND + status.st_mtim.tv_nsec,
        .mode = status.st_mode,
        .links = (uint32_t)status.st_nlink,
        .changed_ns = status.st_ctim.tv_sec * NS_OF_SECOND + status.st_ctim.tv_nsec,
    };
    return 0;
}

/* --- names of files --------------------------------------------------------------------------- */

/* A name of a file. If it must stay beneath its directory, it is split into the open directory of
 * its last part and that part; otherwise `last` is the whole path. */
typedef struct place {
    int directory;
    const char *last;
    bool opened; /* true: split_name_of_file() has opened the directory, so it has to be closed */
} place;

static void close_directory_of_split_name(const place *left)
{
    if (left->opened)
        domi_disk_close(left->directory);
}

/* Split a name that must stay beneath its directory into the directory of its last part, which is
 * opened, and that part; leave any other name whole. Returns 0; -EINVAL if the last part cannot be
 * the name of a file; another negative errno. */
static int split_name_of_file(domi_disk_name name, place *ret_place)
{
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    char folder[PATH_MAX];
    const char *slash = strrchr(name.path, '/');
    const char *last = slash != NULL ? slash + 1 : name.path;

    if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return -EINVAL;
    if (!name.beneath) {
        *ret_place = (place){name.directory, name.path, false};
        return 0;
    }
    if (slash == name.path)
        return -EXDEV;
    if (slash == NULL) {
        *ret_place = (place){name.directory, last, false};
        return 0;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - name.path), name.path);
    int fd = domi_disk_open(name.directory, folder, &how);
    if (fd < 0)
        return fd;
    *ret_place = (place){fd, last, true};
    return 0;
}

int domi_disk_rename(domi_disk_name from, domi_disk_name to, bool exclusive)
{
    place old, new;
    int result = split_name_of_file(from, &old);

    if (result != 0)
        return result;
    result = split_name_of_file(to, &new);
    if (result != 0) {
        close_directory_of_split_name(&old);
        return result;
    }
    if (renameat2(old.directory, old.last, new.directory, new.last,
                  exclusive ? RENAME_NOREPLACE : 0) != 0)
        result = -errno;
    close_directory_of_split_name(&new);
    close_directory_of_split_name(&old);
    return result;
}

/* Link an open file under a name by the descriptor's name in /proc, which needs no capability.
 * Where there is no /proc, linkat(2) with AT_EMPTY_PATH is used, which needs one before Linux
 * 6.10. */
int domi_disk_link(int fd, domi_disk_name to)
{
    char link[sizeof "/proc/self/fd/" + 10];
    place new;
    int result = split_name_of_file(to, &new);

    if (result != 0)
        return result;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, link, new.directory, new.last, AT_SYMLINK_FOLLOW) != 0)
        result = -errno;
    if (result == -ENOENT && access("/proc/self/fd", F_OK) != 0)
        result = linkat(fd, "", new.directory, new.last, AT_EMPTY_PATH) == 0 ? 0 : -errno;
    close_directory_of_split_name(&new);
    return result;
}

int domi_disk_remove(domi_disk_name name, bool is_directory)
{
    place old;
    int result = split_name_of_file(name, &old);

    if (result != 0)
        return result;
    if (unlinkat(old.directory, old.last, is_directory ? AT_REMOVEDIR : 0) != 0)
        result = -errno;
    close_directory_of_split_name(&old);
    return result;
}

int domi_disk_make_directory(domi_disk_name name, uint32_t mode)
{
    place new;
    int result = split_name_of_file(name, &new);

    if (result != 0)
        return result;
    if (mkdirat(new.directory, new.last, mode) != 0)
        result = -errno;
    close_directory_of_split_name(&new);
    return result;
}

/* --- listing directories ---------------------------------------------------------------------- */

/* A directory entry, as getdents64(2) writes it. */
typedef struct entry {
    uint64_t inode;
    int64_t next; /* position in the directory behind this entry, where a listing goes on */
    uint16_t size;
    uint8_t type;
    char name[];
} entry;

static domus_file_kind get_kind_of_directory_entry(uint8_t type)
{
    switch (type) {
    case DT_UNKNOWN:
        return DOMUS_FILE_IS_UNKNOWN;
    case DT_REG:
        return DOMUS_FILE_IS_REGULAR;
    case DT_DIR:
        return DOMUS_FILE_IS_DIRECTORY;
    case DT_LNK:
        return DOMUS_FILE_IS_LINK;
    default:
        return DOMUS_FILE_IS_OTHER;
    }
}

/* Add a directory entry to a list. Returns false if the list has no room for it. */
static bool add_directory_entry_to_list(domi_disk_list *list, const entry *one)
{
    uint32_t length = (uint32_t)strlen(one->name) + 1;
    char *to = list->bytes + list->size;

    if (strcmp(one->name, ".") == 0 || strcmp(one->name, "..") == 0)
        return true;
    if (list->count == list->count_max || list->room - list->size < DOMI_DISK_ENTRY_HEAD + length)
        return false;
    memcpy(to, &one->inode, sizeof one->inode);
    to[sizeof one->inode] = (char)get_kind_of_directory_entry(one->type);
    memcpy(to + DOMI_DISK_ENTRY_HEAD, one->name, length);
    list->size += DOMI_DISK_ENTRY_HEAD + length;
    list->count++;
    return true;
}

/* Add the next entries of a directory to a list. Returns 1 if the list has room for more; 0 if
 * it has none; a negative errno. */
static int add_next_entries_to_list(int fd, domi_disk_list *list)
{
    alignas(entry) char bytes[LIST_BYTES];
    long size = syscall(SYS_getdents64, fd, bytes, sizeof bytes);

    if (size < 0)
        return -errno;
    list->last = size == 0;
    for (long at = 0; at < size;) {
        const entry *one = (const entry *)(const void *)(bytes + at);
        if (!add_directory_entry_to_list(list, one))
            return 0;
        list->position = (uint64_t)one->next;
        at += one->size;
    }
    return size != 0;
}

int domi_disk_list_part_of_directory(int fd, domi_disk_list *list)
{
    int result = 1;
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (own < 0)
        return -errno;
    if (list->position != 0 && lseek(own, (off_t)list->position, SEEK_SET) < 0)
        result = -errno;
    while (result > 0)
        result = add_next_entries_to_list(own, list);
    domi_disk_close(own);
    return result;
}
