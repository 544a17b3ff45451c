/* The settings of channels, with every value resolved.
 *
 * The options of a listener or of a channel (domus/channel_options.h) name only what differs from
 * the section `channel` of the configuration. Settings have all values, and a channel points to
 * them; in them 0 means that there is no such limit.
 *
 * The settings of a thread, which hold where nothing else is set, lie in its io, with a copy of
 * those of each listener of the configuration, which lie in the system: they outlive all channels
 * and are not counted. When the configuration changes, the thread sets its own anew (renew.h).
 * Settings that are made at run time are used on one thread only, by a listener and its channels,
 * and are freed with their last user. Owner thread, except where a function says any thread. */
#ifndef DOMI_IO_RESOURCES_SETTINGS_H
#define DOMI_IO_RESOURCES_SETTINGS_H

#include <domus/channel_options.h>
#include <domus/config.h>

/* value of `users` in settings whose users are not counted, which any thread may read */
#define DOMI_SETTINGS_UNCOUNTED UINT32_MAX

/* The settings of a channel. Fields that each message needs come first. Constant, except
 * `users`. */
typedef struct domi_channel_settings {
    /* number of queued bytes above which the channel's peer is not read */
    uint64_t send_high_bytes;
    /* number of queued bytes at which the channel's peer is read again, when they become fewer */
    uint64_t send_low_bytes;
    /* number of queued bytes of the channel beyond which a write is refused */
    uint64_t send_max_bytes;
    /* most time for one send of the channel in nanoseconds; 0: no bound */
    uint64_t send_timeout_ns;
    /* most time without a byte in either direction in nanoseconds; 0: no bound */
    uint64_t idle_timeout_ns;
    /* most time until the first byte of the channel's peer in nanoseconds; 0: no bound */
    uint64_t first_byte_timeout_ns;
    /* time that the peer has to close after the FIN of this side, in nanoseconds */
    uint64_t linger_ns;
    /* most time for which actors keep asks after the FIN of the peer, in nanoseconds; 0: no
     * bound */
    uint64_t half_close_kept_ns;
    /* age at which a channel is closed in nanoseconds; 0: no bound */
    uint64_t age_max_ns;
    /* percent of `maxAge` by which the age of a channel at its close may be longer or shorter */
    uint64_t age_jitter_percent;
    /* least rate of the peer in bytes/s while a message is under way; 0: no bound */
    uint64_t rate_min_bytes;
    /* span of time over which the rate of the peer is measured, in nanoseconds */
    uint64_t rate_grace_ns;
    /* most conversations that on_read has begun at the same time; 0: no bound */
    uint64_t requests_max;
    uint64_t inflight_max;  /* most asks that the channel's peer has at the same time */
    uint64_t ask_queue_max; /* most asks for the channel's peer that wait to be sent */
    /* most time for the peer's answer to an ask in nanoseconds; 0: no bound */
    uint64_t answer_timeout_ns;
    /* most time for which nobody reads the body of an answer, in nanoseconds; 0: no bound */
    uint64_t body_timeout_ns;
    /* most time for the head of a message of the peer in nanoseconds; 0: no bound */
    uint64_t head_timeout_ns;
    /* least rate of the peer in bytes/s while a body comes; 0: no bound */
    uint64_t body_rate_bytes;
    uint64_t skip_max_bytes; /* most bytes of a peer's body that are skipped when nobody reads it */
    /* Options of the channel's sockets (options.c); 0: the kernel's own value. */
    uint64_t keepalive_idle_ns;
    uint64_t keepalive_interval_ns;
    uint64_t keepalive_count;
    uint64_t user_timeout_ns;
    uint64_t unsent_max_bytes;
    uint64_t send_buffer_bytes;
    uint64_t receive_buffer_bytes;
    uint64_t no_delay;
    /* address of the actor of the listener that has these settings; NULL: none */
    domus_address listener;
    char listener_name[64]; /* name of the listener that has these settings; "": none */
    /* byte stages that stand before the pipelines of the listener's channels; NULL: none */
    const struct domus_pipeline_stage *front;
    /* number of listeners and channels that use the settings, or DOMI_SETTINGS_UNCOUNTED */
    uint32_t users;
    uint32_t row; /* row in which the listener's connections are counted (listener_counts.h) */
} domi_channel_settings;

/* The rows of the section `channel` that options can change: the path in that section, the kind,
 * the field of domus_config, the field of options and settings, the range, the default, and whether
 * 0 is allowed below the range. The tables of keys are made from these lists. The first list has
 * the keys that a channel reads while it lives, so these may change; the second has the keys that
 * its socket gets once. */
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

/* The words that a key of the kind `sort` accepts; NULL: the key has other values. */
#define DOMI_CHANNEL_KEY_WORDS(sort)                                                               \
    (DOMUS_CONFIG_##sort == DOMUS_CONFIG_WORD ? domi_key_switch : NULL)

/* Compute all values of the settings `ret_settings` from the configuration and from `options`,
 * which are valid; NULL: none. The settings are not counted. Any thread. */
void domi_settings_compute_all(const domus_config *config, const domus_channel_options *options,
                               domi_channel_settings *ret_settings);

/* Compute the values of settings anew that domi_settings_compute_all() has made, because the
 * configuration has changed, and nothing else in them. Returns whether a value has changed. Owner
 * thread. */
bool domi_settings_compute_anew(const domus_config *config, const domus_channel_options *options,
                                domi_channel_settings *settings);

/* Returns the options that hold for a peer to which this side connects: firstByteTimeout and
 * minRate hold only if `options` (NULL: none) set them, because such a peer may wait for this side.
 * Any thread. */
domus_channel_options domi_options_for_connected_peer(const domus_channel_options *options);

/* Returns the options that hold for datagrams: firstByteTimeout and minRate do not hold, because
 * they concern connections; idleTimeout and maxAge hold only if `options` (NULL: none) set them.
 * Any thread. */
domus_channel_options domi_options_for_datagrams(const domus_channel_options *options);

/* Check the options of a channel, as domus_channel_options_check() does. Any thread. */
int domi_settings_check_options(const domus_config *config, const domus_channel_options *options,
                                char *error, size_t error_size);

/* Check only the values of a channel's options against each other, and against the configuration
 * for those that are not set. Returns 0; -EINVAL, and then `error` says what is wrong without the
 * path, and `ret_path` is the path in the section `channel`. Any thread. */
int domi_settings_check_relations(const domus_config *config, const domus_channel_options *options,
                                  char *error, size_t error_size, const char **ret_path);

/* Make settings of a channel with one user, the caller. Without options, or with options that set
 * nothing, and without a `front` this returns `fallback`, with one more user. Returns 0; -EINVAL
 * when the options are wrong; -ENOMEM. */
int domi_settings_make_or_share(const domus_config *config, domi_channel_settings *fallback,
                                const domus_channel_options *options,
                                const struct domus_pipeline_stage *front,
                                domi_channel_settings **ret_settings);

/* Make settings for a listener, which belong to the listener and its channels alone. `name` may be
 * NULL. Returns as domi_settings_make_or_share(). */
int domi_settings_make_for_listener(const domus_config *config,
                                    const domus_channel_options *options, const char *name,
                                    domi_channel_settings **ret_settings);

/* Set the name of the listener that has these settings; a longer name is cut. */
void domi_settings_set_listener_name(domi_channel_settings *settings, const char *name);

/* Add a user to the settings of a channel. Returns `settings`, which may be NULL. */
static inline domi_channel_settings *domi_settings_add_user(domi_channel_settings *settings)
{
    if (settings != NULL && settings->users != DOMI_SETTINGS_UNCOUNTED)
        settings->users++;
    return settings;
}

/* Remove a user of the settings of a channel; the last user frees them. NULL is allowed. */
void domi_settings_remove_user(domi_channel_settings *settings);

#endif
