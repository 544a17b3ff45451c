/* The backend: what io needs of a kernel ring, as a table, so that liburing stays in one file and
 * tests can put faults or a simulation in its place.
 *
 * A ring belongs to one thread; only `open` may be called by another, before. Operations are
 * queued and leave with the next enter(); what they bring comes by reap(). Each carries a
 * `user_data` that is not 0 and comes back with each of its completions; a multishot operation goes
 * on while DOMI_MORE is set, whatever the result says (M13): when the completion queue overflows,
 * the kernel ends a multishot receive with a completion that carries valid data. */
#ifndef DOMI_IO_BACKEND_BACKEND_H
#define DOMI_IO_BACKEND_BACKEND_H

#include <domus/config.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define DOMI_MORE     1u /* more completions of this operation will come */
#define DOMI_BUFFERED 2u /* `buffer` is the provided buffer that was filled */

typedef struct domi_completion {
    uint64_t user_data;
    int32_t result; /* as the system call would return it; negative errno */
    uint16_t flags;
    uint16_t buffer;
} domi_completion;

typedef struct domi_backend {
    const char *name;

    /* Make a ring with `buffers.count` provided buffers, not one given yet. Returns 0; a negative
     * errno, and one line in `error` that says what is missing and what to do. */
    int (*open)(const domus_config *config, char *error, size_t error_size, void **ret_ring);

    /* To be called once by the thread that will own it. Returns 0; a negative errno. */
    int (*start)(void *ring);

    void (*close)(void *ring);

    /* Submit what is queued; wait for `min_complete` (0 or 1) completions, at most `timeout_ns`.
     * Returns 0, also when it timed out or was interrupted. -EBUSY, -EAGAIN or -ENOMEM: the kernel
     * has no room for it just now, and it is to be tried again when completions were reaped. Any
     * other negative errno: the ring is of no use any more, operations may be lost (-EBADR: their
     * completions are), and this and every later call returns the same. */
    int (*enter)(void *ring, uint32_t min_complete, uint64_t timeout_ns);

    /* Take up to `max` completions. */
    uint32_t (*reap)(void *ring, domi_completion *completions, uint32_t max);

    /* Completions wait to be reaped. */
    bool (*ready)(const void *ring);
    /* An enter would bring something: operations are queued, or the kernel has deferred work. */
    bool (*pending)(const void *ring);

    /* Multishot: accept connections (close-on-exec) on `fd`. */
    void (*accept)(void *ring, int fd, uint64_t user_data);
    /* Multishot: receive from `fd` into provided buffers. With `once`, one shot: one buffer. */
    void (*receive)(void *ring, int fd, bool once, uint64_t user_data);
    /* Multishot: tell when `fd` is readable. */
    void (*poll)(void *ring, int fd, uint64_t user_data);
    /* Tell once when one of `events` (as of poll(2)) is so: the result holds which. NULL: it
     * cannot. */
    void (*poll_once)(void *ring, int fd, uint32_t events, uint64_t user_data);
    /* Send what the socket takes, at least a byte: the result may be short. `data` or `message` and
     * what it points at stay until the completion. */
    void (*send)(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data);
    void (*send_message)(void *ring, int fd, const struct msghdr *message, uint64_t user_data);
    /* End the operation with `target` as its user_data; or all on `fd`. */
    void (*cancel)(void *ring, uint64_t target, uint64_t user_data);
    void (*cancel_fd)(void *ring, int fd, uint64_t user_data);

    /* Give buffer `index` to the kernel; seen by it after publish(). */
    void (*give)(void *ring, uint16_t index, void *data, uint32_t size);
    void (*publish)(void *ring);
} domi_backend;

extern const domi_backend domi_backend_uring;

#endif
