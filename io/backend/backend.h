/* The backend: the table of functions by which io uses a ring. So liburing is used in one file
 * only, and tests can put faults or a simulation in its place.
 *
 * A ring belongs to one thread; only `open` may be called by another thread, before start.
 * Operations are queued and leave with the next enter(); their completions are taken by reap().
 * Each operation carries a `user_data` that is not 0 and comes back with each of its completions. A
 * multishot operation goes on as long as DOMI_MORE is set, whatever the result says (M13): when the
 * completion queue overflows, the kernel ends a multishot receive with a completion that carries
 * valid data. */
#ifndef DOMI_IO_BACKEND_BACKEND_H
#define DOMI_IO_BACKEND_BACKEND_H

#include <domus/config.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define DOMI_MORE     1u /* more completions of this operation will come */
#define DOMI_BUFFERED 2u /* `buffer` is the index of the provided buffer that was filled */

typedef struct domi_completion {
    uint64_t user_data;
    int32_t result; /* the result of the system call, or a negative errno */
    uint16_t flags;
    uint16_t buffer;
} domi_completion;

typedef struct domi_backend {
    const char *name;

    /* Make a ring with room for `io.buffers.count` provided buffers, of which none is given yet.
     * Returns 0; on failure a negative errno, and one line in `error` that says what is missing and
     * what to do. */
    int (*open)(const domus_config *config, char *error, size_t error_size, void **ret_ring);

    /* Enable the ring. Called once, by the thread that will own it. Returns 0; a negative errno. */
    int (*start)(void *ring);

    void (*close)(void *ring);

    /* Submit the queued operations, and wait for `min_complete` (0 or 1) completions, at most
     * `timeout_ns`. Returns 0, also after a time-out or an interruption. With -EBUSY, -EAGAIN or
     * -ENOMEM the kernel has no room at present, and the caller tries again after reaping
     * completions. Any other negative errno means that the ring cannot be used any more: operations
     * may be lost (with -EBADR their completions are), and this and every later call returns the
     * same errno. */
    int (*enter)(void *ring, uint32_t min_complete, uint64_t timeout_ns);

    /* Take up to `max` completions. Returns how many it took. */
    uint32_t (*reap)(void *ring, domi_completion *completions, uint32_t max);

    /* True if completions wait to be reaped. */
    bool (*ready)(const void *ring);
    /* True if an enter would bring anything: operations are queued, or the kernel has deferred
     * work. */
    bool (*pending)(const void *ring);

    /* Multishot: accept connections (close-on-exec) on `fd`. */
    void (*accept)(void *ring, int fd, uint64_t user_data);
    /* Multishot: receive from `fd` into provided buffers. With `once` a single receive into one
     * buffer. */
    void (*receive)(void *ring, int fd, bool once, uint64_t user_data);
    /* Multishot: complete each time when `fd` becomes readable. */
    void (*poll)(void *ring, int fd, uint64_t user_data);
    /* Complete once when one of `events` (as for poll(2)) holds; the result says which ones do.
     * This slot may be NULL in a backend that has no such poll. */
    void (*poll_once)(void *ring, int fd, uint32_t events, uint64_t user_data);
    /* Send as much as the socket takes, at least one byte; the result may be short. The memory of
     * `data`, or `message` and everything that it points to, must stay unchanged until the
     * completion. */
    void (*send)(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data);
    void (*send_message)(void *ring, int fd, const struct msghdr *message, uint64_t user_data);
    /* Cancel the operation whose user_data is `target`; cancel_fd cancels all operations on `fd`.
     */
    void (*cancel)(void *ring, uint64_t target, uint64_t user_data);
    void (*cancel_fd)(void *ring, int fd, uint64_t user_data);

    /* Give buffer `index` to the kernel, which sees it only after publish(). */
    void (*give)(void *ring, uint16_t index, void *data, uint32_t size);
    void (*publish)(void *ring);
} domi_backend;

extern const domi_backend domi_backend_uring;

#endif
