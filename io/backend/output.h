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

/* The bytes that a send has to write. `message` is NULL if the bytes are in one piece. A gathered
 * send that has to wait keeps no list of its pieces: then `data` is NULL, too, and the sender
 * gathers again when there is room. */
typedef struct domi_output {
    /* the message of a gathered send, for sendmsg(2); NULL: the bytes are at `data` */
    const struct msghdr *message;
    const void *data; /* the bytes of a send, if they are in one piece */
    uint32_t size;    /* number of bytes of the send at `data` */
} domi_output;

/* Try a send on a socket without waiting. Returns the number of bytes that the socket took; -EAGAIN
 * when it is full; another negative errno. */
static inline int domi_output_try_send(int fd, const domi_output *output)
{
    long size = output->message != NULL
                    ? syscall(SYS_sendmsg, fd, output->message, MSG_NOSIGNAL | MSG_DONTWAIT)
                    : syscall(SYS_sendto, fd, output->data, (size_t)output->size,
                              MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);

    return size >= 0 ? (int)size : -errno;
}

#endif
