/* write(2) may take a part, and a signal may end it before it has taken any. */
#include "runtime/os/write_all.h"

#include <errno.h>
#include <unistd.h>

int domi_write_all(int fd, const void *bytes, size_t length)
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
