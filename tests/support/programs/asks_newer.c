/* A program that uses features which came after Linux 6.1. With older_kernel.so in LD_PRELOAD each
 * of them is refused, and the features of 6.1 are not; the exit status is 0 then, else the number
 * of the first wrong answer. Newer features are used by number, because old headers have no names
 * for them. */
#include <errno.h>
#include <liburing.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL_6_7 454 /* number of the system call futex_wake, which is newer than Linux 6.1 */
/* number of the socket option SO_PASSPIDFD, which is newer than Linux 6.1 */
#define OPTION_6_5 76
#define FLAG_6_6   (1u << 16) /* the flag IORING_SETUP_NO_SQARRAY, which is newer than Linux 6.1 */
/* the operation IORING_OP_FTRUNCATE; a kernel that has it answers -EBADF, an older one -EINVAL */
#define OPERATION_6_9 55
#define NO_RING       1 /* exit status of the program if this machine allows no io_uring */

/* Submit the io_uring operation `operation` with the descriptor -1, and return its result. */
static int result_of_operation(struct io_uring *ring, uint8_t operation)
{
    unsigned tail = *ring->sq.ktail;
    unsigned at = tail & ring->sq.ring_mask;

    ring->sq.sqes[at] = (struct io_uring_sqe){.opcode = operation, .fd = -1};
    ring->sq.array[at] = at;
    __atomic_store_n(ring->sq.ktail, tail + 1, __ATOMIC_RELEASE);
    if (io_uring_enter2((unsigned)ring->enter_ring_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL,
                        _NSIG / 8) < 0)
        return 1;
    unsigned head = *ring->cq.khead;
    int result = ring->cq.cqes[head & ring->cq.ring_mask].res;
    __atomic_store_n(ring->cq.khead, head + 1, __ATOMIC_RELEASE);
    return result;
}

int main(void)
{
    struct io_uring_params newer = {.flags = FLAG_6_6}, params = {0};
    struct io_uring ring;
    int one = 1;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (syscall(CALL_6_7, NULL, 0, 0, 0) != -1 || errno != ENOSYS)
        return 11;
    if (setsockopt(fd, SOL_SOCKET, OPTION_6_5, &one, sizeof one) == 0 || errno != ENOPROTOOPT)
        return 12;
    if (io_uring_queue_init_params(4, &ring, &newer) != -EINVAL)
        return 13;
    if (io_uring_queue_init_params(4, &ring, &params) != 0)
        return NO_RING;
    if (result_of_operation(&ring, IORING_OP_NOP) != 0)
        return 14;
    return result_of_operation(&ring, OPERATION_6_9) == -EINVAL ? 0 : 15;
}
