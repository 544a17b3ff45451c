/* Connections that an actor opens to others, and sockets of others that it takes over.
 *
 *     static int on_open(domus_stack *stack, void *self, const void *event)
 *     {
 *         return domus_connect(stack, "[::1]:8080", NULL, connected);
 *     }
 *
 * Such a connection is a channel as those of a listener are (domus/channel.h): an actor of its own,
 * on the thread of the actor that asked for it, and that actor's child. It ends at the latest with
 * that actor, and the end of either is told to whoever watches it. Bytes that come before on_open
 * wait.
 *
 * A state actor may connect, too. It may run on another thread than its channel, so the channel has
 * a state of its own, and the actor reaches it by its address alone: the functions of
 * domus/channel.h that act answer it -EPERM.
 *
 * Limits (config/domus.yaml, section `connect`): time, addresses that are tried for one connect,
 * connects under way and connections of a thread. While memory is short, connects are refused as
 * connections of strangers are.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. */
#ifndef DOMUS_CONNECT_H
#define DOMUS_CONNECT_H

#include <domus/channel_options.h>
#include <domus/conversation.h>
#include <domus/endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of a connect. All fields may be 0. */
typedef struct domus_connect_options {
    /* The behaviour of the channel, a channels actor. NULL: the behaviour of an accepted
     * connection, which is the `channel` of the running actor's behaviour, or that behaviour
     * itself, whose state is then shared. A state actor has to name one, and its shares_state must
     * be false. */
    const struct domus_behaviour *behaviour;
    /* Time for the whole connect: the look-up of the name, and every attempt (rounded up to ticks
     * of 1 ms); 0: as connect.timeout says. A deadline of the conversation holds, too, if it is
     * sooner. */
    uint64_t timeout_ns;
    /* The local address of the connection, with port 0 for any; zeroed: the kernel chooses.
     * Attempts at addresses of another family fail with -EAFNOSUPPORT. */
    domus_endpoint local;
    /* Settings of the channel that differ from the section `channel` of the configuration; NULL:
     * nothing. firstByteTimeout holds only if it stands here, because a server may wait for the
     * client's first byte. Copied by the call. */
    const domus_channel_options *channel;
    /* Byte stages in front of the channel's pipeline (DOMUS_FRONT_MAX in domus/pipeline.h), such as
     * TLS, up to one whose stage is NULL; NULL: none. They and their options have to stay valid as
     * long as the channel is there, which has to have a pipeline. */
    const struct domus_pipeline_stage *front;
} domus_connect_options;

/* The payload of the answer to a connect: the connection is there. */
typedef struct domus_connected {
    domus_address channel; /* the address of the actor of the new channel */
    domus_endpoint peer;   /* the endpoint of the peer to which the connection was made */
    domus_endpoint local;  /* the endpoint of this side of the connection */
} domus_connected;

DOMUS_API extern const domus_type domus_connected_type;

/* Connect to `to`, and suspend the conversation: write `return domus_connect(...)`. `to` is
 * "a.b.c.d:port", "[v6]:port", "unix:PATH" or "unix:@NAME" (an abstract name), or "host:port". A
 * name is looked up as getaddrinfo(3) does, on a thread of the library (a dot at its end keeps the
 * search list of resolv.conf(5) from completing it), and what was found is remembered for
 * connect.resolve.cacheTime. "localhost" and the names below it are [::1] and 127.0.0.1, without a
 * look at a file or a server (RFC 6761, 6.3). If it has several addresses, they are tried in that
 * order, but with IPv6 and IPv4 in turns; each next one when the one before has failed, or after
 * connect.attemptDelay beside those that have not answered (RFC 8305). The first connection is
 * taken, and the others are closed. When the connection is there, or cannot be had, `then` is
 * resumed with a domus_connected of type domus_connected_type or with an error. `options` may be
 * NULL, and is copied.
 *
 * Errors of the answer: those of connect(2), such as -ECONNREFUSED, -ENETUNREACH and -ENOENT (no
 * such Unix socket), that of the first address if all of several have failed; -ENODATA when there
 * is no such name or it has no address; -EAGAIN when name servers do not answer, or no thread can
 * be made for the look-up; -EIO when the look-up has failed otherwise; -ECONNREFUSED also if the
 * kernel has connected a socket to itself, which may happen with a port of this machine on which
 * nobody listens; -ETIMEDOUT when the time is over; -ENOBUFS when the thread has as many connects
 * under way, or connections, as it may, or when connect.resolve.queueMax names wait to be looked
 * up; -EBUSY while memory is short; -EMFILE and -ENFILE without descriptors; the error of bind(2)
 * for `options->local`; -ESTALE when the channel's actor was stopped; -ECANCELED when the
 * conversation was cancelled; -ESHUTDOWN when the system stops and no accepted connection is left;
 * -ENOMEM; the error with which the ring of the thread has failed.
 *
 * If the conversation is cancelled or the actor stops, the sockets under way are closed. If nobody
 * waits for the answer any more when the connection is there, it is closed, too.
 *
 * Returns DOMUS_PARKED; -EINVAL for a wrong text, behaviour or option; what `check` of a stage of
 * its pipeline returned; -ENAMETOOLONG for too long a name of a Unix socket; -ESHUTDOWN when the
 * actor or the system stops; -EOPNOTSUPP on a detached actor and in a pool; -ENOMEM, -ENOBUFS,
 * -EBUSY and -ECANCELED as domus_ask(). */
DOMUS_API int domus_connect(domus_stack *stack, const char *to,
                            const domus_connect_options *options, domus_resumed *then);

/* Begin a connect as one of several things to wait for, as domus_ask_add() does. Its answer carries
 * `tag`. Returns 0; errors as domus_connect(). */
DOMUS_API int domus_connect_add(domus_stack *stack, const char *to,
                                const domus_connect_options *options, uint64_t tag);

/* Make a channel of `fd`, a connected stream socket of the kernel (TCP or Unix) that was made
 * elsewhere. It is a channel of the running actor as one that domus_connect() brings: `options`
 * (NULL: all 0) name its behaviour and its settings, and on_mount and on_open are called soon.
 * `ret_channel` may be NULL.
 *
 * Ownership: the library's if this returns 0, and the caller's otherwise. Nobody else may use the
 * socket then, by this descriptor or by a duplicate, and it is no longer O_NONBLOCK, which may also
 * be so after a failure. If the actor is a state actor and the channel cannot be made, the socket
 * is closed and the address is stale.
 *
 * Returns 0; -EBADF; -ENOTSOCK; -EINVAL for a socket that is no stream or that listens, and for a
 * wrong behaviour or option; -EAFNOSUPPORT for another family; -ENOTCONN; -EALREADY when it is that
 * of a channel of this thread; -ENOBUFS at connect.maxConnections; -ESHUTDOWN when the actor or the
 * system stops; -EOPNOTSUPP on a detached actor and in a pool, and where descriptors are not those
 * of the kernel (a test kit); -ENOMEM. */
DOMUS_API int domus_channel_adopt_fd(domus_stack *stack, int fd,
                                     const domus_connect_options *options,
                                     domus_address *ret_channel);

#ifdef __cplusplus
}
#endif

#endif
