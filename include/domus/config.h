/* The configuration of a system, as C programs fill it and as libdomus-config reads it from YAML.
 *
 * Every limit of the library has its name here. `config/domus.yaml` lists the same keys with the
 * same defaults, and a test holds the two equal. Durations are in nanoseconds, sizes in bytes. A
 * field's comment gives its range, then what it is, and then its default.
 *
 * Within a minor version the structure stays as it is. Before 1.0 a minor version may break the
 * ABI, and then fields may move: each minor version has a soname of its own. */
#ifndef DOMUS_CONFIG_H
#define DOMUS_CONFIG_H

#include <domus/channel_options.h>
#include <domus/cluster_config.h>
#include <domus/config_key.h>
#include <domus/export.h>
#include <domus/hooks.h>
#include <domus/listener_config.h>
#include <domus/observe_config.h>
#include <domus/pool_config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much the threads of a system measure (`domus/profile.h`). */
typedef enum domus_profile_level {
    DOMUS_PROFILE_OFF,      /* threads measure only the times that the loop itself needs */
    DOMUS_PROFILE_COUNTERS, /* threads have counters, and the time of each phase (the default) */
    /* threads have counters, and histograms of the times of phases, runs and waits */
    DOMUS_PROFILE_HISTOGRAMS,
    /* threads have counters, histograms, and their newest records (domus/trace.h) */
    DOMUS_PROFILE_SPANS,
} domus_profile_level;

/* The way in which threads ask the kernel for io. */
typedef enum domus_io_backend {
    DOMUS_BACKEND_AUTO,  /* by io_uring, or by epoll where io_uring is not allowed (the default) */
    DOMUS_BACKEND_URING, /* by io_uring; where it is not allowed, the start of the system fails */
    DOMUS_BACKEND_EPOLL,
} domus_io_backend;

#define DOMUS_SPIN_AUTO UINT64_MAX

/* A value of scheduler.io_ratio: each thread measures how long io and state actors wait, and
 * divides its time between them by that. */
#define DOMUS_IO_RATIO_AUTO UINT32_MAX

typedef struct domus_config {
    struct {
        /* 1..1,024: threads of the loop; 0: one for each usable CPU (the default) */
        uint32_t threads;
        /* 1..100: number of threads as a percentage of the usable CPUs; 0: `threads` says it (the
         * default) */
        uint32_t threads_percent;
        /* The CPUs that the threads are pinned to. "auto": the usable ones (the default); "none":
         * threads are not pinned; or a list such as "0-3,8". */
        const char *cpus;
    } system;
    struct {
        /* 1..100: the percentage of a busy thread's time that io gets; default 50.
         * DOMUS_IO_RATIO_AUTO: the share follows from `wait_max_ns` instead. */
        uint32_t io_ratio;
        /* 1 us..1 s: how long phase 3 may run when phase 1 found no completion other than a
         * wake-up; default 50 us. */
        uint64_t min_budget_ns;
        /* 1 us..1 s: the least time that phase 3 gets when phase 1 found completions; default 50
         * us. */
        uint64_t min_budget_busy_ns;
        /* 1 us..1 s: the most time that phase 3 gets, however small io_ratio is; default 10 ms. */
        uint64_t max_budget_ns;
        /* 100 us..10 s: with DOMUS_IO_RATIO_AUTO state actors that are ready wait for about this
         * time, and completions for a quarter of it, before io gets less time, and state actors
         * less; default 4 ms. Nothing else has an effect on either then but min_budget_busy_ns, the
         * least that state actors get, and max_budget_ns. */
        uint64_t wait_max_ns;
        /* 1 us..1 s: the time that pipelines get in one phase 2 to decode messages and handle them;
         * what is left waits for the next iteration; default 5 ms. */
        uint64_t stage_time_ns;
        /* 1..65,536: houses that run in phase 3 before their thread looks at the clock and its
         * arrivals; default 16. */
        uint32_t deadline_check_every;
        /* 1..65,536: most messages that an actor handles in a run; default 64 */
        uint32_t messages_per_run_max;
        /* 2..65,536: while actors of high and of normal priority wait, every n-th take from the
         * queue is a normal one; default 4. */
        uint32_t normal_every;
        /* 1..1,048,576: runs of channels actors in one iteration, beyond one run of each that was
         * ready at the start of phase 2; default 1,024. */
        uint32_t channels_runs_per_iteration;
        /* 1..65,535: most asks and notices that wait in an actor; default 32,768 */
        uint32_t mailbox_max;
        /* 64..65,536, a power of two: small notices that may be on their way from one thread to
         * another by belt, besides those in mailboxes, each in a place of 64 bytes; 0: none are;
         * default 1,024. */
        uint32_t belt_slots;
        /* 1..1,048,576: most parked conversations of an actor; default 65,536. At that number the
         * actor handles no asks and notices, and the log tells of it once in a spell. */
        uint32_t conversations_max;
        uint32_t timers_max; /* 1..16,777,216: most timers of a thread; default 4,194,304 */
        struct {
            bool enabled; /* whether idle threads take work from busy ones; default true */
            /* 1..1,048,576: ready houses that a busy thread keeps for itself, and the most that it
             * exposes to thieves at a time; default 32. */
            uint32_t floor;
            /* 1..1,048,576: an idle thread begins to steal when its idle iterations times the
             * victim's ready houses reach this number, so less is sooner; default 128. */
            uint32_t aggression;
            /* 0..1 s: houses whose runs are shorter than this on average are not lent to other
             * threads; default 2 us */
            uint64_t min_run_ns;
            /* 1..16,777,216: iterations that a thief waits for its victim to expose a house, before
             * the thief sleeps; default 32,768. */
            uint32_t patience;
        } steal;
        struct {
            /* 0..1 s: the longest time that a thread spins, looking for work, before it sleeps; it
             * spins for less when spinning finds no work. DOMUS_SPIN_AUTO, the default, is 20 us,
             * and 0 if there are fewer usable CPUs than 8 or than threads. */
            uint64_t spin_ns;
            /* 0..1 s: a thread that has nothing else to do, and has not been awake for longer than
             * this, runs a state actor of a sleeping thread in its place, instead of waking it for
             * one actor; 0: never; default 100 us. This needs steal.enabled. */
            uint64_t stand_in_ns;
            /* 10 us..1 s: the longest sleep of a thread in whose place others run an actor; default
             * 2 ms. A message may have to wait for so long if its sender goes on to compute after
             * the send. */
            uint64_t doze_ns;
        } idle;
    } scheduler;
    struct {
        /* 16..32,768, a power of two: entries of the ring's submission queue; default 512 */
        uint32_t ring_entries;
        /* 32..65,536, a power of two, more than ring_entries: entries of the ring's completion
         * queue; default 4,096. */
        uint32_t completion_entries;
        /* 1..65,536: most completions that one phase 1 handles; default 256 */
        uint32_t completions_per_poll;
        /* 1..1,048,576: after so many wake-ups in a row that found nothing to do, a thread arms the
         * poll on its eventfd anew; default 512. */
        uint32_t empty_wakeups_max;
        /* the way in which all threads ask the kernel for io; default auto */
        domus_io_backend backend;
        struct {
            uint32_t size_bytes; /* 256 B..1 MiB: size of one receive buffer; default 4 KiB */
            /* 16..32,768, a power of two: receive buffers of one thread; default 1,024 */
            uint32_t count;
        } buffers;
    } io;
    struct {
        /* 1 B..1 GiB: a channel with more bytes than this queued to be sent is not read; default
         * 256 KiB. */
        uint64_t send_high_bytes;
        /* 0..send_high_bytes: when only so many bytes are queued, the channel is read again;
         * default 64 KiB */
        uint64_t send_low_bytes;
        /* send_high_bytes..4 GiB: a write that would queue more bytes than this on a channel is
         * refused; default 4 MiB */
        uint64_t send_max_bytes;
        /* 10 ms..8,760 h: a connection is closed when no byte was sent or received for so long; 0:
         * never; default 5 min. A service whose clients wait in silence sets it to 0. */
        uint64_t idle_timeout_ns;
        /* 10 ms..1 h: time that a peer has to take the bytes of one send (up to 16 buffers); after
         * that its channel is reset; 0: no bound; default 30 s. */
        uint64_t send_timeout_ns;
        /* 1 ms..1 h: time that a peer has to close its side after our FIN; default 1 s */
        uint64_t linger_ns;
        /* 1 ms..1 h: when a peer has finished sending, asks of its requests that actors keep are
         * cancelled after so long; 0: they are kept until they are answered; default 100 ms */
        uint64_t half_close_kept_ns;
        /* 1..1,048,576: most accepted connections in the whole system; default 10,000 */
        uint32_t connections_max;
        /* 1..1,048,576: requests of one channel that are under way, which are conversations that
         * its on_read began and that have not ended. At this number the channel is not read until
         * one ends; with 1 it has one request after the other. 0: no bound. The default, 128, is
         * above the 100 that RFC 9113 (6.5.2) wants for a connection, so no client waits that keeps
         * to usual numbers; and all of them together take at most 139 KiB for their stacks. */
        uint32_t requests_max;
        /* 1..1,048,576: most asks that are with the peer of one channel at a time
         * (domus/pipeline.h); default 64. Further ones wait in the channel. */
        uint32_t inflight_max;
        /* 0..1,048,576: most asks that wait in one channel until they can be sent; default 1,024.
         * One more ask fails with -ENOBUFS. */
        uint32_t ask_queue_max;
        /* 10 ms..1 h: time that the peer has for the answer to each ask, from the moment when the
         * ask was encoded. A connection with an ask that is older is reset (-ETIMEDOUT), and the
         * asks that are with its peer fail with -EPIPE; 0 (the default): no bound but the asks'
         * own deadlines. */
        uint64_t answer_timeout_ns;
        /* 10 ms..1 h: time for which nobody reads the body of an answer that a peer sends
         * (domus/stream.h); then its connection is reset (-ETIMEDOUT), because no further answer
         * could come; 0: no bound; default 60 s. */
        uint64_t body_timeout_ns;
        /* 10 ms..1 h: time that a peer has for the head of a message, from its first bytes until it
         * is whole, in protocols whose messages have heads (domus_wire_expect_head()); 0: no bound;
         * default 10 s. Bytes that drip do not bring more time. */
        uint64_t head_timeout_ns;
        /* 1 B..1 GiB: bytes in a second that a peer has to send on average while the body of its
         * message is awaited (domus_wire_expect_body(), domus/stream.h). A peer that was fast
         * enough so far has pace.rate_grace_ns without a byte; each byte that comes later brings
         * the time that it takes at this rate. 0: no bound; default 100. */
        uint64_t body_rate_bytes;
        /* 0..1 GiB: most bytes of a body (domus/stream.h) that are received and thrown away when
         * its request is answered and nobody has read them; default 256 KiB. If more is left, the
         * channel is closed behind the answer. */
        uint64_t skip_max_bytes;
    } channel;
    struct {
        /* 1 ms..1 h: time that open connections have to be drained when the system stops; 0: no
         * time at all; default 10 s. */
        uint64_t drain_timeout_ns;
        /* 1 ms..1 h: time that actors have to stop after the drain; 0: no time; default 10 s */
        uint64_t actor_timeout_ns;
        /* 0..255: the exit status of domus_main() when the drain of a stop has cut channels; 0 (the
         * default): the same status as if the drain had cut none. */
        uint32_t cut_status;
    } shutdown;
    struct {
        /* how much threads measure when the system starts; default counters */
        domus_profile_level level;
        /* 64..4,194,304, a power of two: records of a thread's trace; default 65,536 */
        uint32_t records;
        /* whether domus_main() prints the table of the profile at its end; default true */
        bool at_exit;
        bool zeros; /* whether that table has counters that are 0, too; default false */
        /* the file for the trace that a crash leaves (domus/trace.h), up to 1,023 bytes; empty (the
         * default): none. domus_main() reads this key. */
        const char *crash_file;
        /* the file for the trace that a stall leaves with profile.level: spans; otherwise as
         * `crash_file` */
        const char *stall_file;
    } profile;
    /* The listeners, which stay the caller's: domus_system_new() copies them. */
    const domus_listener_config *listeners;
    size_t listener_count; /* number of `listeners`, 0..DOMUS_LISTENERS_MAX */
    struct {
        /* 0..1,024: helper threads that do not end when they are idle; default 0 */
        uint32_t threads_min;
        uint32_t threads_max; /* 1..1,024: most helper threads, at least threads_min; default 64 */
        /* 1..1,048,576: most jobs that wait for a helper thread; default 4,096 */
        uint32_t queue_max;
        /* 1 ms..1 h: time without work after which a helper thread ends; default 10 s */
        uint64_t idle_expiry_ns;
    } blocking;
    struct {
        uint32_t threads_max; /* 0..512: most detached actors and outsiders at a time; default 64 */
    } detached;
    struct {
        /* 1..1,048,576: most names of groups ever opened in a system; default 65,536 */
        uint32_t max;
        uint32_t members_max; /* 1..16,777,216: most members of one group; default 1,048,576 */
    } groups;
    struct {
        uint32_t max;         /* 1..1,048,576: most routers at a time; default 65,536 */
        uint32_t routees_max; /* 1..65,536: most routees of one router; default 1,024 */
    } routers;
    struct {
        uint32_t max; /* 1..16,777,216: most names that actors have at a time; default 65,536 */
    } names;
    struct {
        /* 1 ms..1 h: a run of an actor that lasts longer is reported (domus/stall.h); 0: no run is
         * reported; default 25 ms. */
        uint64_t threshold_ns;
        /* 34..64: the signal that asks a stuck thread where it is (domus_stall_signal()); 0: no
         * signal; default 50. */
        uint32_t signal;
    } stall;
    struct {
        bool enabled; /* whether memory is measured (domus/memory.h); default true */
        /* 1 MiB..2^50: limit of the memory in bytes; 0: the cgroup's limit, or else the machine's
         * memory */
        uint64_t limit_bytes;
        /* 1..100: percentage of the limit that is the budget memory.high; default 80 */
        uint32_t high_percent;
        /* high_percent..100: percentage of the limit that is the last budget, memory.critical;
         * default 90 */
        uint32_t critical_percent;
        /* 1 ms..1 h: time between two measurements of memory while threads are awake; default 100
         * ms */
        uint64_t interval_ns;
        /* 1 MiB..2^50: most bytes of the messages that one thread has sent; 0 (the default): no
         * bound */
        uint64_t thread_max_bytes;
        /* 1..100: percentage of the budget that bytes queued for peers may take; default 50 */
        uint32_t queued_percent;
        /* 100 ms..1 h: a peer that has taken next to nothing for so long counts as deaf, and may be
         * reset; default 5 s */
        uint64_t reset_after_ns;
    } memory;
    /* Further keys of the section `channel`. */
    struct {
        /* 10 ms..1 h: a connection is closed when its peer has sent no byte for so long after it
         * was accepted; 0: never; default 10 s. A service whose clients wait in silence, for
         * instance for what it is going to send them, sets it to 0. */
        uint64_t first_byte_timeout_ns;
        /* 1..100: the percentage of connections_max (but at least one connection) that may come
         * from one address; 100: addresses have no bound of their own; default 10. An IPv6 address
         * counts by its first 64 bits. Further connections are reset at once. A service behind a
         * proxy, whose clients all come from few addresses, sets it to 100. */
        uint32_t address_percent;
        /* 1..100: the percentage of connections_max, as `address_percent`, that may come from one
         * address of this machine, which is one of 127.0.0.0/8, ::1, and all Unix sockets together
         * as one address; default 100. */
        uint32_t loopback_percent;
        /* TCP keep-alive: when no byte came for `idle`, the kernel asks the peer up to `count`
         * times, once every `interval`, and resets the connection if the peer does not answer. */
        struct {
            /* 1 s..9 h: silence before the first such probe, rounded up to seconds; 0: no probes;
             * default 60 s */
            uint64_t idle_ns;
            /* 1 s..9 h: time between two such probes, rounded up to seconds; default 10 s */
            uint64_t interval_ns;
            /* 1..127: unanswered probes before the connection is reset; default 6 */
            uint32_t count;
        } keepalive;
        /* TCP_USER_TIMEOUT, 10 ms..1 h, rounded up to whole ms: the kernel resets a connection when
         * its peer has not acknowledged the bytes that were sent for so long; 0 (the default): the
         * kernel's own time. */
        uint64_t user_timeout_ns;
    } connection;
    struct {
        /* 16..65,536: most log lines that may wait in domus_main() to be written; default 1,024. */
        uint32_t queue_max;
        /* 1 ms..1 h: time that domus_main() has at its end to write the log lines that wait; 0: no
         * time at all; default 1 s. */
        uint64_t flush_timeout_ns;
        bool addresses; /* whether log lines and dumps hold addresses of memory; default false */
        /* severity of the least severe log lines that are written at the start; default info */
        domus_log_level level;
    } log;
    /* Bounds of the bytes that the kernel holds for a TCP connection, and when the kernel sends
     * them (channel.socket). */
    struct {
        /* TCP_NOTSENT_LOWAT, 4 KiB..1 GiB: bytes that the kernel takes from a channel before the
         * peer's window lets it send them, give or take one segment (64 KiB); 0: as many as its
         * send buffer holds; default 128 KiB. Bytes that are on their way come on top of this, and
         * the kernel still tunes their number. The rest waits in the channel, where
         * channel.sendHigh and memory.queued bound it. */
        uint64_t unsent_max_bytes;
        /* SO_SNDBUF and SO_RCVBUF, 4 KiB..1 GiB; 0 (the default): the kernel's own sizes. A size
         * that is set is fixed: the kernel no longer tunes it to the path, which costs throughput
         * where bandwidth times round trip is more than this size. The kernel doubles the size for
         * its own bookkeeping, and caps it at net.core.wmem_max or net.core.rmem_max. */
        uint64_t send_buffer_bytes;
        uint64_t receive_buffer_bytes;
        /* TCP_NODELAY: small sends leave at once; default true. With false, bytes that fill no
         * packet may wait until the peer has acknowledged what was sent before. */
        bool no_delay;
    } sockets;
    /* Connections that actors open (domus/connect.h). */
    struct {
        /* 1 ms..1 h: time that a connect has, from the name to the last attempt, if its options
         * name none; default 10 s. */
        uint64_t timeout_ns;
        /* 1..65,536: most connects of one thread that are under way at a time; one more fails with
         * -ENOBUFS; default 1,024. */
        uint32_t under_way_max;
        /* 1..1,048,576: most connections that the actors of one thread have opened, with the
         * connects under way; one more fails with -ENOBUFS; default 10,000. They are counted apart
         * from those of channel.maxConnections, so that clients cannot take the places of a proxy's
         * servers. */
        uint32_t connections_max;
        /* 10 ms..1 h: time after which the next address of a name is tried beside those that have
         * not answered (RFC 8305); default 250 ms. */
        uint64_t attempt_delay_ns;
        /* 1..16: most addresses of a name to which a connect is tried; default 8 */
        uint32_t attempts_max;
        /* How names are looked up. */
        struct {
            /* 1..64: most names that are looked up at the same time; default 4 */
            uint32_t threads_max;
            /* 1..65,536: most names that wait for their look-up; a connect to one more fails with
             * -ENOBUFS; default 256 */
            uint32_t queue_max;
            /* 1..65,536: most names whose addresses are remembered; default 256 */
            uint32_t cache_max;
            /* 10 ms..1 h: for how long a look-up is remembered, and a fifth of it if it found no
             * address; 0: not at all; default 5 s. */
            uint64_t cache_time_ns;
        } resolve;
    } connect;
    /* Further keys of the section `channel`: how long a connection may last, and how slowly its
     * peer may send (domus/channel.h). */
    struct {
        /* 1 s..8,760 h: an older connection is closed once no request is under way; 0 (the
         * default): never */
        uint64_t age_max_ns;
        /* 0..50: how many percent of age_max_ns a connection may be closed earlier or later, so
         * that connections that came together do not go together; default 10 */
        uint32_t age_jitter_percent;
        /* 1 B..1 GiB: bytes in a second that the peer has to send, on average over each
         * rate_grace_ns, while a message is under way; 0 (the default): no such rate */
        uint64_t rate_min_bytes;
        /* 100 ms..1 h: time over which rate_min_bytes is averaged; default 10 s */
        uint64_t rate_grace_ns;
    } pace;
    /* Files (domus/file.h). */
    struct {
        /* 1..1,048,576: most files that a system has open at a time; default 1,024 */
        uint32_t open_max;
        /* 1..4,096: most entries in one piece of the listing of a directory; default 256 */
        uint32_t list_max;
        uint64_t read_max_bytes; /* 4 KiB..1 GiB: most bytes of one read of a file; default 1 MiB */
        /* 64 KiB..1 GiB: memory of each thread for the bytes of files that it loads again and again
         * (DOMUS_FILE_KEPT); 0: none; default 8 MiB */
        uint64_t kept_max_bytes;
        /* 1 ms..1 h: for how long a kept file is not looked at again, so that changes of it are not
         * seen; 0 (the default): it is looked at each time */
        uint64_t kept_time_ns;
    } files;
    /* The pools, which stay the caller's: domus_system_new() copies them. */
    const domus_pool_config *pools;
    size_t pool_count; /* number of `pools`, 0..DOMUS_POOLS_MAX */
    /* Grains (domus/grain.h). */
    struct {
        uint32_t kinds_max; /* 1..4,096: most kinds of grains ever opened in a system; default 64 */
        /* 1..16,777,216: most grains of one kind that live at a time, if the kind names no number
         * of its own; a kind may not name a higher number; default 65,536 */
        uint32_t max;
    } grains;
    domus_observe_config observe; /* settings of the observation port (domus/observe.h) */
    /* settings of the node of a cluster that the system may be (domus/cluster.h) */
    domus_cluster_config cluster;
} domus_config;

/* Fill `config` with the defaults. Thread-safety: any thread. */
DOMUS_API void domus_config_init(domus_config *config);

/* Check every value against its range, and against the other values that it has to fit.
 *
 * Returns 0; -EINVAL when a value is wrong: then `error` gets one line about the first such value
 * (NUL-terminated, cut at `error_size` bytes; `error` may be NULL if the size is 0).
 * Thread-safety: any thread. */
DOMUS_API int domus_config_check(const domus_config *config, char *error, size_t error_size);

/* Find the key that a path names, as in an assignment ("scheduler.ioRatio"); a listener goes by its
 * name in `config` ("listeners.echo.channel.linger"). `ret_listener` gets the index of the
 * listener; SIZE_MAX: the key belongs to none. Keys of pools are not found.
 *
 * Returns the row; NULL if there is no such key. Thread-safety: any thread. */
DOMUS_API const domus_config_key *domus_config_key_find(const domus_config *config,
                                                        const char *path, size_t *ret_listener);

/* A wrong value that domus_config_check_all() has found. */
typedef struct domus_config_fault {
    /* the key whose value is wrong; NULL: the list of listeners, or of pools, itself is wrong */
    const domus_config_key *key;
    /* the other key that the value of `key` does not fit; NULL: there is none */
    const domus_config_key *other;
    /* index of the listener, or the pool, that `key` belongs to; SIZE_MAX: none */
    size_t listener;
    /* path of the wrong key, such as "channel.sendHigh" or "listeners[2].name" */
    const char *path;
    const char *message; /* text that says what is wrong with the value; valid during the call */
} domus_config_fault;

/* Check as domus_config_check() does, but call `report` for every value that is wrong. `context` is
 * passed on to `report`.
 *
 * Returns the number of wrong values. Thread-safety: any thread. */
DOMUS_API size_t domus_config_check_all(const domus_config *config,
                                        void (*report)(const domus_config_fault *fault,
                                                       void *context),
                                        void *context);

#ifdef __cplusplus
}
#endif

#endif
