/* Settings of the channels of one listener, of one connection, or of one channel.
 *
 * The section `channel` of the configuration says what holds for all channels of a system
 * (domus/config.h, config/domus.yaml). Options say what differs for some of them. A listener gives
 * them to each of its channels: `listeners[].channel` in YAML has keys of the same names, and
 * domus_listen() takes them in its options. */
#ifndef DOMUS_CHANNEL_OPTIONS_H
#define DOMUS_CHANNEL_OPTIONS_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value of a field: what 0 means in the section `channel`, which is in most cases that there is
 * no such limit. A field that may not be 0 there may not be DOMUS_NONE here. */
#define DOMUS_NONE UINT64_MAX

/* A field that is 0 has the value of the section `channel`. Each field names its key first, whose
 * range and meaning domus/config.h and config/domus.yaml tell. Times are in nanoseconds, sizes in
 * bytes. The structure is copied by each call that takes it. */
typedef struct domus_channel_options {
    uint64_t send_high_bytes; /* sendHigh: queued bytes above which the channel is not read */
    /* sendLow: queued bytes at which reading goes on; DOMUS_NONE: 0 */
    uint64_t send_low_bytes;
    uint64_t send_max_bytes;        /* sendMax: most bytes that may be queued to be sent */
    uint64_t send_timeout_ns;       /* sendTimeout: time that the peer has to take one send */
    uint64_t idle_timeout_ns;       /* idleTimeout: silence after which the channel is closed */
    uint64_t first_byte_timeout_ns; /* firstByteTimeout: time for the first byte of the peer */
    uint64_t linger_ns;             /* linger: time that the peer has to close after our FIN */
    /* halfCloseKept: time that kept asks have after the peer's FIN */
    uint64_t half_close_kept_ns;
    uint64_t age_max_ns;         /* maxAge: age at which the connection is closed */
    uint64_t age_jitter_percent; /* maxAgeJitter: percent of maxAge by chance; DOMUS_NONE: 0 */
    uint64_t rate_min_bytes;     /* minRate: least bytes a second that the peer has to send */
    uint64_t rate_grace_ns;      /* minRateGrace: time over which minRate is measured */
    uint64_t requests_max;       /* requestsMax: most requests of the peer under way at a time */
    uint64_t inflight_max;       /* inflightMax: most asks that are with the peer at a time */
    /* askQueueMax: most asks that wait to be sent; DOMUS_NONE: no ask may wait */
    uint64_t ask_queue_max;
    uint64_t answer_timeout_ns; /* answerTimeout: time that the peer has to answer an ask */
    uint64_t body_timeout_ns;   /* bodyTimeout: longest time that a received body is not read */
    uint64_t head_timeout_ns;   /* headTimeout: time that the peer has to send a whole head */
    uint64_t body_rate_bytes;   /* bodyRate: least bytes a second of a body from the peer */
    /* skipMax: most bytes of an unread body that are skipped; DOMUS_NONE: 0 */
    uint64_t skip_max_bytes;
    /* Options of the sockets. They hold for a listener and for a connect. */
    uint64_t keepalive_idle_ns;     /* keepalive.idle: silence before the kernel probes the peer */
    uint64_t keepalive_interval_ns; /* keepalive.interval: time between two probes of the kernel */
    uint64_t keepalive_count;       /* keepalive.count: unanswered probes before the reset */
    /* userTimeout: longest time without acknowledgement by the peer */
    uint64_t user_timeout_ns;
    uint64_t unsent_max_bytes;     /* socket.unsentMax: most unsent bytes that the kernel holds */
    uint64_t send_buffer_bytes;    /* socket.sendBuffer: size of the kernel's send buffer */
    uint64_t receive_buffer_bytes; /* socket.receiveBuffer: size of the kernel's receive buffer */
    /* socket.noDelay: TCP_NODELAY; 1: it is set; DOMUS_NONE: it is not */
    uint64_t no_delay;
} domus_channel_options;

/* Check options as every call that takes them does: each value against its range, and the values
 * that follow from them against each other.
 *
 * Returns 0; -EINVAL when a value is wrong: then `error` gets one line that names its key, such as
 * "channel.idleTimeout: must be 0 or 10ms..8760h, is 1ns" (NUL-terminated, cut at `error_size`
 * bytes; `error` may be NULL if the size is 0).
 * Thread-safety: from a handler, with its stack. */
DOMUS_API int domus_channel_options_check(const domus_stack *stack,
                                          const domus_channel_options *options, char *error,
                                          size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
