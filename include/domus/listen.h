/* Listeners that actors make for themselves, at any time. (A listener that the configuration names
 * is served by domus_serve() on all threads, see domus/system.h.) */
#ifndef DOMUS_LISTEN_H
#define DOMUS_LISTEN_H

#include <domus/actor.h>
#include <domus/channel_options.h>
#include <domus/endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of a listener. All fields may be 0. */
typedef struct domus_listen_options {
    /* name of the listener in the log and for domus_channel_listener(); up to 63 bytes are
     * copied */
    const char *name;
    /* most connections that may wait to be accepted; 0 means 4,096. The kernel caps it at
     * net.core.somaxconn */
    uint32_t backlog;
    /* whether others may listen at the same port (SO_REUSEPORT); the kernel spreads the
     * connections. So an actor on each thread can have a listener of its own */
    bool shares_port;
    /* settings of the listener's channels that differ from the section `channel` of the
     * configuration; NULL: none. Copied by the call. */
    const domus_channel_options *channel;
    /* Networks from which proxies connect, such as "10.0.0.0/8, ::1, unix" (at most 32; "unix": any
     * Unix socket); NULL or "": clients connect themselves. `domus_listen()` reads it, and keeps
     * nothing of it. */
    const char *proxy_from;
    /* Byte stages in front of the pipeline of each connection (DOMUS_FRONT_MAX in
     * domus/pipeline.h), such as TLS, up to one whose stage is NULL; NULL: none. They and their
     * options have to stay valid as long as the listener and its connections are there. The actor's
     * channels have to have a pipeline. */
    const struct domus_pipeline_stage *front;
} domus_listen_options;

/* The PROXY protocol. A proxy in front of a service hides the clients: without this all of them
 * have the proxy's address, so limits for each address mean nothing. With `proxy_from` (in YAML
 * `listeners[].proxyProtocol.from`) each connection has to come from one of these networks, and has
 * to begin with a header of version 1 or 2, as HAProxy and others send it with `send-proxy`. The
 * address in the header is the peer that domus_channel_peer() tells, and the one that
 * channel.maxPerAddress counts. A header without an address (LOCAL, UNKNOWN) leaves the
 * connection's own one. on_open is called when the header is done.
 *
 * Any other connection is reset, counted (proxies_refused in domus/profile.h) and told in the log:
 * one from elsewhere at once, unread, so nobody else can claim an address; one without a valid
 * header when that is seen. A header has to come within channel.firstByteTimeout (10 s if that is
 * 0), has at most 4,096 bytes, and its TLVs are checked, CRC-32C included, and not told. */

/* Listen at `at`: an IPv4 or IPv6 endpoint (port 0: the kernel chooses one), or a Unix socket with
 * a path or an abstract name. The running actor, a channels actor, gets the connections, which are
 * its channels (domus/channel.h), on its own thread. The limits and time-outs of `channel` in the
 * configuration hold, where the options say nothing else.
 *
 * The listener is a child of the running actor. domus_stop() of `ret_listener` closes it:
 * connections that wait there are reset and counted, and channels stay. It ends with the running
 * actor, or in a drain. A path of a Unix socket is made by this call and stays in the file system
 * when the listener ends; whoever listens there again removes it before that. `options` (NULL: all
 * 0), `ret_listener` and `ret_at` (the endpoint with the port that was chosen) may be NULL.
 *
 * Returns 0; -EINVAL if the actor is no channels actor, if the `channel` of its behaviour is none
 * for channels, if `at` names nothing, if `proxy_from` is no list of networks, if `front` is
 * wrong or its channels have no pipeline, or if an option is wrong (domus_channel_options_check()
 * tells which); what `check` of a stage returned; -EMFILE when the thread has 64 listeners;
 * -ESHUTDOWN when the actor or the system stops; -ENOMEM; the error of socket(2), bind(2) or
 * listen(2). Thread-safety: from a handler, with its stack. */
DOMUS_API int domus_listen(domus_stack *stack, const domus_endpoint *at,
                           const domus_listen_options *options, domus_address *ret_listener,
                           domus_endpoint *ret_at);

#ifdef __cplusplus
}
#endif

#endif
