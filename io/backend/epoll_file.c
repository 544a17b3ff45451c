/* Files on the epoll backend: system calls that succeed only from the kernel's memory (RWF_NOWAIT,
 * RESOLVE_CACHED), in place of readiness, which a file does not have. Owner thread. */
#include "io/backend/epoll_file.h"

#include "base/check.h"
#include "io/backend/epoll_ready.h"

#include <errno.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void complete_file_operation(domi_epoll *ring, ssize_t result, uint64_t user_data)
{
    DOMI_CHECK(user_data != 0);
    domi_epoll_queue_completion(ring, user_data, result >= 0 ? (int)result : -errno, 0, 0);
}

void domi_epoll_file_read(void *ring, int fd, void *data, uint32_t size, uint64_t position,
                          uint64_t user_data)
{
    const struct iovec bytes = {data, size};

    complete_file_operation(ring, preadv2(fd, &bytes, 1, (off_t)position, RWF_NOWAIT), user_data);
}

void domi_epoll_file_write(void *ring, int fd, const void *data, uint32_t size, uint64_t position,
                           uint64_t user_data)
{
    const struct iovec bytes = {(void *)(uintptr_t)data, size};

    complete_file_operation(ring, pwritev2(fd, &bytes, 1, (off_t)position, RWF_NOWAIT), user_data);
}

void domi_epoll_file_open(void *ring, int directory, const char *path, const struct open_how *how,
                          uint64_t user_data)
{
    complete_file_operation(ring, syscall(SYS_openat2, directory, path, how, sizeof *how),
                            user_data);
}
