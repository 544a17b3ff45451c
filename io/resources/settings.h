/* The settings of channels, with every value resolved.
 *
 * The options of a listener or of a channel (domus/channel_options.h) say only what differs from
 * the section `channel` of the configuration. Settings have all values, and a channel points to
 * them; in them 0 means that there is no such limit.
 *
 * The settings of a thread, which hold where nothing else is said, lie in its io, with a copy of
 * those of each listener of the configuration, which lie in the system: they outlive all channels
 * and are not counted. When the configuration changes, the thread sets its own anew (renew.h).
 * Settings that are made at run time are used on one thread only, by a listener and its channels,
 * and are freed with their last user. Owner thread, except where a function says any thread. */
#ifndef DOMI_IO_RESOURCES_SETTINGS_H
#define DOMI_IO_RESOURCES_SETTINGS_H

#include <domus/channel_options.h>
#include <domus/config.h>

/* the `users` of settings that are not counted, which any thread may read */
#define DOMI_SETTINGS_UNCOUNTED UINT32_MAX

/* The fields that are read for each message come first. Constant, except `users`. */
typedef struct domi_channel_settings {
    uint64_t send_high_bytes;       /* with more bytes queued the channel is not read */
    uint64_t send_low_bytes;        /* with at most so many bytes queued it is read again */
    uint64_t send_max_bytes;        /* a write that goes beyond is refused */
    uint64_t send_timeout_ns;       /* time for one send; 0: no bound */
    uint64_t idle_timeout_ns;       /* time without a byte either way; 0: no bound */
    uint64_t first_byte_timeout_ns; /* time for the peer's first byte; 0: no bound */
    uint64_t linger_ns;             /* time for the peer to close after our FIN */
    uint64_t half_close_kept_ns;    /* time for kept asks after the FIN of the peer; 0: no bound */
    uint64_t age_max_ns;            /* age at which a channel is closed; 0: no bound */
    uint64_t age_jitter_percent; /* the part of `maxAge` by which a channel's age may be longer or
                                    shorter */
    uint64_t rate_min_bytes;     /* bytes/s while a message is under way; 0: no such rate */
    uint64_t rate_grace_ns;      /* time over which that rate is measured */
    uint64_t requests_max;       /* conversations of on_read at a time; 0: no bound */
    uint64_t inflight_max;       /* asks that are with the peer at a time */
    uint64_t ask_queue_max;      /* the most asks that may wait to be sent */
    uint64_t answer_timeout_ns;  /* time for the answer to an ask; 0: no bound */
    uint64_t body_timeout_ns; /* time for which the body of an answer may be unread; 0: no bound */
    uint64_t head_timeout_ns; /* time for the head of a message; 0: no bound */
    uint64_t body_rate_bytes; /* bytes/s while a body comes; 0: no bound */
    uint64_t skip_max_bytes;  /* bytes of a body that are skipped at most when nobody reads it */
    /* options of sockets (options.c); 0: the kernel's own */
    uint64_t keepalive_idle_ns;
    uint64_t keepalive_interval_ns;
    uint64_t keepalive_count;
    uint64_t user_timeout_ns;
    uint64_t unsent_max_bytes;
    uint64_t send_buffer_bytes;
    uint64_t receive_buffer_bytes;
    uint64_t no_delay;
    domus_address listener; /* the actor of the listener that has these settings; NULL: none */
    char listener_name[64]; /* the name of that listener; "": none */
    /* the byte stages that stand in front of the pipelines of its channels; NULL: none */
    const struct domus_pipeline_stage *front;
    uint32_t users; /* listeners and channels, or DOMI_SETTINGS_UNCOUNTED */
    uint32_t row;   /* the row in which the listener is counted (listener_counts.h) */
} domi_channel_settings;

/* The rows of the section `channel` that options can change: the path in that section, the kind,
 * the field of domus_config, the field of options and settings, the range, the default, and whether
 * 0 is allowed below the range. The tables of keys are made from these lists. The first has what a
 * channel reads as it goes on, so that it may change; the second what its socket gets once. */
#define DOMI_CHANNEL_KEYS(ROW) DOMI_CHANNEL_LIVE_KEYS(ROW) DOMI_CHANNEL_SOCKET_KEYS(ROW)
#define DOMI_CHANNEL_LIVE_KEYS(ROW)                                                                \
    ROW("sendHigh", SIZE, channel.send_high_bytes, send_high_bytes, 1, DOMI_GIB, 256 * DOMI_KIB,   \
        false)                                                                                     \
    ROW("sendLow", SIZE, channel.send_low_bytes, send_low_bytes, 0, DOMI_GIB, 64 * DOMI_KIB,       \
        false)                                                                                     \
    ROW("sendMax", SIZE, channel.send_max_bytes, send_max_bytes, 1, 4 * DOMI_GIB, 4 * DOMI_MIB,    \
        false)                                                                                     \
    ROW("idleTimeout", DURATION, channel.idle_timeout_ns, idle_timeout_ns, 10 * DOMI_MS,           \
        8760 * DOMI_HOUR, 300 * DOMI_SECOND, true)                                                 \
    ROW("sendTimeout", DURATION, channel.send_timeout_ns, send_timeout_ns, 10 * DOMI_MS,           \
        DOMI_HOUR, 30 * DOMI_SECOND, true)                                                         \
    ROW("linger", DURATION, channel.linger_ns, linger_ns, DOMI_MS, DOMI_HOUR, DOMI_SECOND, false)  \
    ROW("halfCloseKept", DURATION, channel.half_close_kept_ns, half_close_kept_ns, DOMI_MS,        \
        DOMI_HOUR, 100 * DOMI_MS, true)                                                            \
    ROW("firstByteTimeout", DURATION, connection.first_byte_timeout_ns, first_byte_timeout_ns,     \
        10 * DOMI_MS, DOMI_HOUR, 10 * DOMI_SECOND, true)                                           \
    ROW("maxAge", DURATION, pace.age_max_ns, age_max_ns, DOMI_SECOND, 8760 * DOMI_HOUR, 0, true)   \
    ROW("maxAgeJitter", SHARE, pace.age_jitter_percent, age_jitter_percent, 0, 50, 10, false)      \
    ROW("minRate", SIZE, pace.rate_min_bytes, rate_min_bytes, 1, DOMI_GIB, 0, true)                \
    ROW("minRateGrace", DURATION, pace.rate_grace_ns, rate_grace_ns, 100 * DOMI_MS, DOMI_HOUR,     \
        10 * DOMI_SECOND, false)                                                                   \
    ROW("requestsMax", COUNT, channel.requests_max, requests_max, 1, 1048576, 128, true)           \
    ROW("inflightMax", COUNT, channel.inflight_max, inflight_max, 1, 1048576, 64, false)           \
    ROW("askQueueMax", COUNT, channel.ask_queue_max, ask_queue_max, 0, 1048576, 1024, false)       \
    ROW("answerTimeout", DURATION, channel.answer_timeout_ns, answer_timeout_ns, 10 * DOMI_MS,     \
        DOMI_HOUR, 0, true)                                                                        \
    ROW("bodyTimeout", DURATION, channel.body_timeout_ns, body_timeout_ns, 10 * DOMI_MS,           \
        DOMI_HOUR, 60 * DOMI_SECOND, true)                                                         \
    ROW("headTimeout", DURATION, channel.head_timeout_ns, head_timeout_ns, 10 * DOMI_MS,           \
        DOMI_HOUR, 10 * DOMI_SECOND, true)                                                         \
    ROW("bodyRate", SIZE, channel.body_rate_bytes, body_rate_bytes, 1, DOMI_GIB, 100, true)        \
    ROW("skipMax", SIZE, channel.skip_max_bytes, skip_max_bytes, 0, DOMI_GIB, 256 * DOMI_KIB, false)
#define DOMI_CHANNEL_SOCKET_KEYS(ROW)                                                              \
    ROW("keepalive.idle", DURATION, connection.keepalive.idle_ns, keepalive_idle_ns, DOMI_SECOND,  \
        9 * DOMI_HOUR, 60 * DOMI_SECOND, true)                                                     \
    ROW("keepalive.interval", DURATION, connection.keepalive.interval_ns, keepalive_interval_ns,   \
        DOMI_SECOND, 9 * DOMI_HOUR, 10 * DOMI_SECOND, false)                                       \
    ROW("keepalive.count", COUNT, connection.keepalive.count, keepalive_count, 1, 127, 6, false)   \
    ROW("userTimeout", DURATION, connection.user_timeout_ns, user_timeout_ns, 10 * DOMI_MS,        \
        DOMI_HOUR, 0, true)                                                                        \
    ROW("socket.unsentMax", SIZE, sockets.unsent_max_bytes, unsent_max_bytes, 4 * DOMI_KIB,        \
        DOMI_GIB, 128 * DOMI_KIB, true)                                                            \
    ROW("socket.sendBuffer", SIZE, sockets.send_buffer_bytes, send_buffer_bytes, 4 * DOMI_KIB,     \
        DOMI_GIB, 0, true)                                                                         \
    ROW("socket.receiveBuffer", SIZE, sockets.receive_buffer_bytes, receive_buffer_bytes,          \
        4 * DOMI_KIB, DOMI_GIB, 0, true)                                                           \
    ROW("socket.noDelay", WORD, sockets.no_delay, no_delay, 0, 1, 1, false)

/* the words of a row of this kind */
#define DOMI_CHANNEL_KEY_WORDS(sort)                                                               \
    (DOMUS_CONFIG_##sort == DOMUS_CONFIG_WORD ? domi_key_switch : NULL)

/* Set `ret_settings` to what follows from the configuration and from `options`, which are right;
 * NULL: none. They are not counted. Any thread. */
void domi_settings_resolve(const domus_config *config, const domus_channel_options *options,
                           domi_channel_settings *ret_settings);

/* Set only the values of settings, which have begun with domi_settings_resolve(), anew. Returns
 * whether one has changed. Owner thread. */
bool domi_settings_renew(const domus_config *config, const domus_channel_options *options,
                         domi_channel_settings *settings);

/* Returns options for a peer that this side connects to: firstByteTimeout and minRate hold only if
 * `options` (NULL: none) say so, because such a peer may wait for this side. Any thread. */
domus_channel_options domi_options_for_outbound(const domus_channel_options *options);

/* Returns options for datagrams: firstByteTimeout and minRate are about connections, and
 * idleTimeout and maxAge hold only if `options` (NULL: none) say so. Any thread. */
domus_channel_options domi_options_for_datagrams(const domus_channel_options *options);

/* Check options, as domus_channel_options_check() says. Any thread. */
int domi_settings_check(const domus_config *config, const domus_channel_options *options,
                        char *error, size_t error_size);

/* Check only the values of options against each other, and against the configuration where they say
 * nothing. Returns 0; -EINVAL, and then `error` says what is wrong without the path, and `ret_path`
 * is the path in the section `channel`. Any thread. */
int domi_settings_relate(const domus_config *config, const domus_channel_options *options,
                         char *error, size_t error_size, const char **ret_path);

/* Make settings with one user, the caller. Options that are NULL or say nothing, without a `front`,
 * give `fallback`, with one user more. Returns 0; -EINVAL when the options are wrong; -ENOMEM. */
int domi_settings_make(const domus_config *config, domi_channel_settings *fallback,
                       const domus_channel_options *options,
                       const struct domus_pipeline_stage *front,
                       domi_channel_settings **ret_settings);

/* Make settings for a listener, which belong to it and its channels alone. `name` may be NULL.
 * Returns as domi_settings_make(). */
int domi_settings_make_for_listener(const domus_config *config,
                                    const domus_channel_options *options, const char *name,
                                    domi_channel_settings **ret_settings);

/* Set the name of the listener that has these settings; cut to fit. */
void domi_settings_set_name(domi_channel_settings *settings, const char *name);

/* Add a user to the settings. Returns `settings`, which may be NULL. */
static inline domi_channel_settings *domi_settings_use(domi_channel_settings *settings)
{
    if (settings != NULL && settings->users != DOMI_SETTINGS_UNCOUNTED)
        settings->users++;
    return settings;
}

/* Remove a user of the settings; the last user frees them. NULL is allowed. */
void domi_settings_drop(domi_channel_settings *settings);

#endif
