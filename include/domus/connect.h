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

/* All fields may be 0. */
typedef struct domus_connect_options {
    /* The behaviour of the channel, a channels actor. NULL: that of an accepted connection, which
     * is the `channel` of the running actor's behaviour, or that behaviour itself, whose state is
     * then shared. A state actor has to name one, and its shares_state must be false. */
    const struct domus_behaviour *behaviour;
    /* Time for all of it: the name, and every attempt (rounded up to ticks of 1 ms); 0: as
     * connect.timeout says. A deadline of the conversation holds, too, if it is sooner. */
    uint64_t timeout_ns;
    /* The own address of the connection, with port 0 for any; zeroed: the kernel chooses. Attempts
     * at addresses of another family fail with -EAFNOSUPPORT. */
    domus_endpoint local;
    /* Settings of the channel that differ from the section `channel` of the configuration; NULL:
     * nothing. firstByteTimeout holds only if it stands here, because a server may wait for the
     * client's first byte. Copied by the call. */
    const domus_channel_options *channel;
} domus_connect_options;

/* The payload of the answer: the connection is there. */
typedef struct domus_connected {
    domus_address channel; /* the address of the channel's actor */
    domus_endpoint peer;   /* the endpoint that was reached */
    domus_endpoint local;  /* the own endpoint */
} domus_connected;

DOMUS_API extern const domus_type domus_connected_type;

/* Connect to `to`, and suspend the conversation: write `return domus_connect(...)`. `to` is
 * "a.b.c.d:port", "[v6]:port", "unix:PATH" or "unix:@NAME" (an abstract name). When the connection
 * is there, or cannot be had, `then` is resumed with a domus_connected of type domus_connected_type
 * or with an error. `options` may be NULL, and is copied.
 *
 * Errors of the answer: those of connect(2), such as -ECONNREFUSED, -ENETUNREACH and -ENOENT (no
 * such Unix socket); -ECONNREFUSED also if the kernel has connected a socket to itself, which may
 * happen with a port of this machine on which nobody listens; -ETIMEDOUT when the time is over;
 * -ENOBUFS when the thread has as many connects under way, or connections, as it may; -EBUSY while
 * memory is short; -EMFILE and -ENFILE without descriptors; the error of bind(2) for
 * `options->local`; -ESTALE when the channel's actor was stopped; -ECANCELED when the conversation
 * was cancelled; -ENOMEM; the error with which the ring of the thread has failed.
 *
 * If the conversation is cancelled or the actor stops, the sockets under way are closed. If nobody
 * waits for the answer any more when the connection is there, it is closed, too.
 *
 * Returns DOMUS_PARKED; -EINVAL for a wrong text, behaviour or option; -ENAMETOOLONG for too long a
 * name of a Unix socket; -ESHUTDOWN when the actor or the system stops; -EOPNOTSUPP on a detached
 * actor, and in a test kit without a network; -ENOMEM, -ENOBUFS, -EBUSY and -ECANCELED as
 * domus_ask(). */
DOMUS_API int domus_connect(domus_stack *stack, const char *to,
                            const domus_connect_options *options, domus_resumed *then);

/* Begin a connect as one of several things to wait for, as domus_ask_add() does. Its answer carries
 * `tag`. Returns 0; errors as domus_connect(). */
DOMUS_API int domus_connect_add(domus_stack *stack, const char *to,
                                const domus_connect_options *options, uint64_t tag);

#ifdef __cplusplus
}
#endif

#endif
