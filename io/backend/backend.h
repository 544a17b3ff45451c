/* The backend: the tables of functions by which io uses a ring and sockets. So liburing is used in
 * two files only, nothing outside of this folder calls the kernel for a socket, and tests can put
 * faults or a simulation in its place.
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

/* declared here only, because not every header can be included beside <linux/openat2.h>, which
 * defines this structure */
struct open_how;

#define DOMI_MORE 1u /* flag of a completion: more completions of its operation will come */
/* flag of a completion: its field `buffer` is the index of the provided buffer that was filled */
#define DOMI_BUFFERED 2u

#define DOMI_PIECES_MAX 16u /* most pieces of memory that one send_message() sends */

typedef struct domi_completion {
    /* the number with which the completed operation was begun (domi_op_user_data()) */
    uint64_t user_data;
    int32_t result;  /* the result of the operation's system call, or a negative errno */
    uint16_t flags;  /* flags of the completion: DOMI_MORE, DOMI_BUFFERED */
    uint16_t buffer; /* index of the provided buffer that a receive has filled */
} domi_completion;

/* The head of a datagram in a provided buffer, behind which the bytes of the datagram stand. (The
 * layout is that of struct io_uring_recvmsg_out with an address behind it.) The buffer need not be
 * aligned, so the head has to be copied out. */
typedef struct domi_datagram_head {
    /* size in bytes of the address of the datagram's sender, as recvmsg(2) tells; 0: the sender has
     * none */
    uint32_t name_size;
    uint32_t control_size; /* 0 */
    uint32_t size;         /* size of the datagram in bytes */
    /* flags of recvmsg(2); MSG_TRUNC: the datagram was longer than the rest of the buffer */
    uint32_t flags;
    unsigned char name[112]; /* the sender's address, a struct sockaddr_in, _in6 or _un */
} domi_datagram_head;

/* A datagram to be sent, as a caller of the backend gives it. */
typedef struct domi_datagram_out {
    const void *data;    /* the bytes of the datagram */
    const void *address; /* destination of the datagram, a struct sockaddr_in, _in6 or _un */
    uint32_t size;       /* number of bytes at `data`; may be 0, for an empty datagram */
    /* number of bytes at `address`; 0: the datagram goes to the peer of its connected socket */
    uint32_t address_size;
} domi_datagram_out;

/* Calls on sockets that act at once and never wait. Any thread may make them, except that the
 * thread of a ring closes what it has used in that ring (`forget`). `ring` is any ring of the
 * system; a backend reads nothing of it that its owner writes. A descriptor is a number that
 * `socket`, `accept`, `wake_open` or the multishot accept has returned, and means something only to
 * the backend that made it: it need not be a descriptor of the kernel.
 *
 * Functions that return int return 0 or a negative errno, as the system call of that name does. */
typedef struct domi_sockets {
    /* Returns a new socket of `type` (as for socket(2)), which closes on exec; -EMFILE, -ENFILE,
     * -ENOBUFS, -ENOMEM, -EAFNOSUPPORT. */
    int (*socket)(void *ring, int family, int type);
    int (*bind)(void *ring, int fd, const struct sockaddr *address, socklen_t size);
    int (*listen)(void *ring, int fd, int backlog);
    /* Connect a socket. With AF_UNSPEC the connection is reset and the queued bytes are thrown
     * away. With any other address a stream socket has to be made with SOCK_NONBLOCK, or the kernel
     * would wait; -EINPROGRESS then says that poll_once() for POLLOUT and SO_ERROR tell the result.
     * A datagram socket only remembers its peer. */
    int (*connect)(void *ring, int fd, const struct sockaddr *address, socklen_t size);
    /* Returns a connection that waits at a listener, close-on-exec; -EAGAIN when none waits;
     * -EMFILE, -ENFILE, -ENOBUFS or -ENOMEM; -EINVAL when `listener` does not listen. Any other
     * error concerns one connection only. No multishot accept may be in flight on the listener. */
    int (*accept)(void *ring, int listener);
    int (*shutdown)(void *ring, int fd, int how);
    /* Close the descriptor of a socket. The descriptor is free in every case, also if an error is
     * returned. */
    int (*close)(void *ring, int fd);
    /* Do as getsockopt(2) and setsockopt(2) do. io reads SO_ERROR, SO_DOMAIN, SO_PEERNAME and the
     * TCP_INFO of a listener, and sets SO_LINGER and the options of listen.c. */
    int (*option_get)(void *ring, int fd, int level, int name, void *value, socklen_t *size);
    int (*option_set)(void *ring, int fd, int level, int name, const void *value, socklen_t size);
    /* Read a number about a socket by ioctl(2): FIONREAD, the bytes that nobody has read; SIOCOUTQ,
     * the bytes that the peer has not acknowledged. `ret_value` stays untouched on failure. */
    int (*ioctl)(void *ring, int fd, unsigned long request, int *ret_value);
    /* Read the local address of a socket; with `is_peer` the address of its peer. */
    int (*address)(void *ring, int fd, bool is_peer, struct sockaddr *address, socklen_t *size);

    /* Wake a thread. wake_open() returns a descriptor for `poll`; -EMFILE, -ENFILE, -ENOMEM. After
     * each wake() a poll of it completes; this never fails, and is the one call here by which a
     * thread acts on the ring of another one. wake_wait() serves a thread whose ring has failed: it
     * returns after a wake that came since the last wake_wait(), or after `timeout_ns`. */
    int (*wake_open)(void *ring);
    void (*wake)(void *ring, int fd);
    void (*wake_wait)(void *ring, int fd, uint64_t timeout_ns);
    /* Pause the calling thread, which has nothing else to do, for about this time. */
    void (*pause)(void *ring, uint64_t ns);
} domi_sockets;

typedef struct domi_backend {
    const char *name;            /* name of the backend in the key io.backend and in the log */
    const domi_sockets *sockets; /* the backend's calls for sockets, which need no ring */
    /* descriptors of the backend are simulated, so the kernel does not know them */
    bool is_simulated;

    /* Make a ring with room for `io.buffers.count` provided buffers, of which none is given yet.
     * Returns 0; on failure a negative errno, and one line in `error` that says what is missing and
     * how to get it. */
    int (*open)(const domus_config *config, char *error, size_t error_size, void **ret_ring);

    /* Enable the ring of a thread. Called once, by the thread that will own the ring. Returns 0; a
     * negative errno. */
    int (*start)(void *ring);

    void (*close)(void *ring);

    /* Submit the queued operations, and wait for `min_complete` (0 or 1) completions, at most
     * `timeout_ns`. Returns 0, also after a time-out or an interruption. With -EBUSY, -EAGAIN or
     * -ENOMEM the kernel has no room at present, and the caller tries again after reaping
     * completions. Any other negative errno means that the ring cannot be used any more: operations
     * may be lost (with -EBADR their completions are), and this and every later call returns the
     * same errno. */
    int (*enter)(void *ring, uint32_t min_complete, uint64_t timeout_ns);
    /* Carry out those queued operations that need no enter of the ring, mostly sends, and show
     * their completions. After that `pending` tells whether other operations are left. Returns as
     * enter() does. NULL: the backend has no such operations. */
    int (*submit)(void *ring);

    /* Take up to `max` completions from the ring. Returns their number. */
    uint32_t (*reap)(void *ring, domi_completion *completions, uint32_t max);

    /* True if completions wait in the ring to be reaped. */
    bool (*ready)(const void *ring);
    /* True if an enter would bring anything: operations are queued, or the kernel has completions
     * or events for this ring. This may ask the kernel, so it is for a thread that has nothing else
     * to do. */
    bool (*pending)(void *ring);

    /* Begin a multishot accept of connections (close-on-exec) on `fd`. */
    void (*accept)(void *ring, int fd, uint64_t user_data);
    /* Begin a multishot receive from `fd` into provided buffers. With `once` it is a single receive
     * into one buffer. */
    void (*receive)(void *ring, int fd, bool once, uint64_t user_data);
    /* Begin a multishot poll: it completes each time when `fd` becomes readable. */
    void (*poll)(void *ring, int fd, uint64_t user_data);
    /* Begin a poll that completes once, when one of `events` (as for poll(2)) holds; the result
     * says which ones do. NULL: the backend has no such poll. */
    void (*poll_once)(void *ring, int fd, uint32_t events, uint64_t user_data);
    /* Send as much as the socket takes, at least one byte; the result may be short. The bytes, and
     * all that `message` points to, must stay unchanged until the completion. `message` itself and
     * its list of at most DOMI_PIECES_MAX pieces are copied by the call. A send_message() may
     * complete with -EAGAIN when it had to wait and there is room now: nothing was sent, and the
     * caller gathers again, with the bytes that were queued meanwhile. */
    void (*send)(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data);
    void (*send_message)(void *ring, int fd, const struct msghdr *message, uint64_t user_data);
    /* Begin a multishot receive of datagrams, each with a domi_datagram_head into one provided
     * buffer. The result is the size of the head and the number of bytes behind it. Bytes for which
     * the buffer has no room are lost, and the head has MSG_TRUNC then. An empty datagram may end
     * the operation, as any other one may. An error of the socket (such as -ECONNREFUSED on a
     * connected socket) ends it, too, and then the next receive may be begun.
     *
     * Both entries for datagrams may be NULL in a backend that has none. */
    void (*receive_datagrams)(void *ring, int fd, uint64_t user_data);
    /* Send a datagram, as a whole or not at all. This never waits: the result is -EAGAIN when the
     * socket, or a Unix receiver, has no room now (poll_once for POLLOUT tells when the socket has
     * some; while that slot is NULL, the datagram is lost), and -EMSGSIZE when it is too long. Any
     * number may be in flight on a descriptor; they are carried out in the order in which they were
     * begun, by the next enter. The structure `datagram` is copied, but all that it points to must
     * stay unchanged until the completion. */
    void (*send_datagram)(void *ring, int fd, const domi_datagram_out *datagram,
                          uint64_t user_data);
    /* Cancel the operation on `fd` whose user_data is `target`. It completes with -ECANCELED and
     * without DOMI_MORE. The cancel itself completes with 0 or, if nothing was there to be
     * cancelled, -ENOENT. */
    void (*cancel)(void *ring, int fd, uint64_t target, uint64_t user_data);
    /* Forget a descriptor, because the thread of this ring will close `fd` at once, on which it has
     * begun operations. None of these is in flight any more, unless the ring has failed. */
    void (*forget)(void *ring, int fd);

    /* Begin an operation on a file of the kernel. None of the three operations waits for a disk,
     * and each has ended when the next enter returns: it does what the kernel can do from memory,
     * and completes with -EAGAIN for anything else. With -EOPNOTSUPP the file system cannot tell.
     * The memory that is passed stays until the completion. All three NULL: the backend has no
     * files.
     *
     * The result is the number of bytes that were read or written, which may be less than `size`,
     * or the new descriptor. `file_open` knows neither O_CREAT nor O_TRUNC. */
    void (*file_read)(void *ring, int fd, void *data, uint32_t size, uint64_t position,
                      uint64_t user_data);
    void (*file_write)(void *ring, int fd, const void *data, uint32_t size, uint64_t position,
                       uint64_t user_data);
    void (*file_open)(void *ring, int directory, const char *path, const struct open_how *how,
                      uint64_t user_data);

    /* Give provided buffer `index` to the kernel, which may use it only after publish(). */
    void (*give)(void *ring, uint16_t index, void *data, uint32_t size);
    void (*publish)(void *ring);
} domi_backend;

extern const domi_backend domi_backend_uring;
extern const domi_backend domi_backend_epoll;

/* Sockets of the kernel, for backends whose descriptors are those of the kernel (sockets.c). They
 * do not look at `ring`. */
extern const domi_sockets domi_kernel_sockets;

#endif
