/* A send on a socket of the kernel, and the call that tries it. The call goes to the kernel
 * directly: send(2) of the C library is a point of cancellation, and in a process with several
 * threads it pays two locked instructions for that. */
#ifndef DOMI_IO_BACKEND_OUTPUT_H
#define DOMI_IO_BACKEND_OUTPUT_H

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The bytes of a send. `message` is NULL if they are in one piece. A gathered send that has to wait
 * keeps no list of its pieces: then `data` is NULL, too, and the sender gathers again when there is
 * room. */
typedef struct domi_output {
    const struct msghdr *message; /* the message for sendmsg(2) */
    const void *data;             /* the bytes, if they are in one piece */
    uint32_t size;                /* number of bytes at `data` */
} domi_output;

/* Try a send. Returns the number of bytes that the socket took; -EAGAIN when it is full; another
 * negative errno. */
static inline int domi_output_try(int fd, const domi_output *output)
{
    long size = output->message != NULL
                    ? syscall(SYS_sendmsg, fd, output->message, MSG_NOSIGNAL | MSG_DONTWAIT)
                    : syscall(SYS_sendto, fd, output->data, (size_t)output->size,
                              MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);

    return size >= 0 ? (int)size : -errno;
}

#endif
