/* Files and descriptors by system calls alone, so that the handler of a signal may call these
 * functions, too. */
#include "runtime/os/raw_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- own_file ---------------------------------------------------------------------------------*/

/* The file of a trace is emptied only after it was checked, so that a file of somebody else
 * stays as it is. */

int domi_own_file_open_empty_for_writing(const char *path)
{
    struct stat about;
    /* O_NONBLOCK keeps the open of a FIFO without a reader from blocking */
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

    if (fd < 0)
        return -errno;
    int error = fstat(fd, &about) == 0 ? 0 : errno;
    if (error == 0 && (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || about.st_nlink != 1))
        error = EEXIST;
    if (error == 0 && (fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0))
        error = errno;
    if (error == 0)
        return fd;
    (void)close(fd);
    return -error;
}

void domi_own_file_close(int fd)
{
    (void)close(fd);
}

/* ---- write_all --------------------------------------------------------------------------------*/

/* write(2) may write only a part of the bytes, and a signal may interrupt it before it has
 * written any. */

int domi_write_all_bytes(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        at += written;
        length -= (size_t)written;
    }
    return 0;
}
