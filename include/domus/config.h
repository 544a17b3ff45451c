/* The configuration of a system, as C programs fill it and as libdomus-config reads it from YAML.
 *
 * Every limit of the library has its name here; `config/domus.yaml` lists the same keys with the
 * same defaults, and a test holds the two equal. Durations are in nanoseconds, sizes in bytes.
 *
 * Within a minor version the structure grows only at its end. Before 1.0 a minor version may break
 * the ABI, and then fields may move: each has a soname of its own. */
#ifndef DOMUS_CONFIG_H
#define DOMUS_CONFIG_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much the threads measure. */
typedef enum domus_profile_level {
    DOMUS_PROFILE_OFF,      /* only what the loop itself needs */
    DOMUS_PROFILE_COUNTERS, /* time per phase, and counts (the default) */
} domus_profile_level;

/* A place to accept connections. Programs name it in `domus_serve`. */
typedef struct domus_listener_config {
    const char *name;    /* what the program calls it; unique; 1..63 letters, digits, '-', '_' */
    const char *address; /* "127.0.0.1:7000", "[::1]:7000"; port 0: the kernel chooses */
    uint32_t backlog;    /* 1..65,535; default 4,096 (the kernel caps it at net.core.somaxconn) */
} domus_listener_config;

#define DOMUS_LISTENERS_MAX 64

#define DOMUS_SPIN_AUTO UINT64_MAX

typedef struct domus_config {
    struct {
        uint32_t threads;         /* 1..1,024; 0: one per usable CPU (the default) */
        uint32_t threads_percent; /* 1..100 of the usable CPUs; 0: `threads` counts */
        const char *cpus; /* "auto": the usable ones; "none": not pinned; or a list, "0-3,8" */
    } system;
    struct {
        uint32_t io_ratio;               /* 1..100, percent of a busy thread for io; default 50 */
        uint64_t min_budget_ns;          /* phase 3 when phase 1 found nothing; 1 us..1 s; 500 us */
        uint64_t min_budget_busy_ns;     /* the least that phase 3 gets else; 1 us..1 s; 50 us */
        uint64_t max_budget_ns;          /* the most, however small io_ratio; 1 us..1 s; 10 ms */
        uint32_t deadline_check_every;   /* 1..65,536 houses; 16 */
        uint32_t messages_per_run_max;   /* 1..65,536; 64 */
        uint32_t normal_every;           /* 2..65,536: one of so many takes is a normal actor; 4 */
        uint32_t channels_runs_per_tick; /* beyond one of each; 1..1,048,576; 1,024 */
        uint32_t mailbox_max;       /* 1..65,535 asks and notices waiting in an actor; 32,768 */
        uint32_t conversations_max; /* 1..1,048,576 parked stacks of an actor; 65,536 */
        uint32_t timers_max;        /* 1..16,777,216 of a thread; 4,194,304 */
        struct {
            bool enabled;        /* true */
            uint32_t floor;      /* 1..1,048,576 ready houses; 32 */
            uint32_t aggression; /* 1..1,048,576; 128 */
            uint64_t min_run_ns; /* 0..1 s: shorter runs, on average, are not lent; 2 us */
            uint32_t patience;   /* 1..16,777,216 iterations that a thief waits; 32,768 */
        } steal;
        struct {
            /* 0..1 s: for how long a thread looks for work before it parks, at most; it looks for
             * less when it finds nothing. DOMUS_SPIN_AUTO, the default: 20 us, and 0 where usable
             * CPUs are fewer than 8, or than threads. */
            uint64_t spin_ns;
        } idle;
    } scheduler;
    struct {
        uint32_t ring_entries;         /* 16..32,768, a power of two; 512 */
        uint32_t completion_entries;   /* 32..65,536, a power of two, > ring_entries; 4,096 */
        uint32_t completions_per_poll; /* 1..65,536; 256 */
        uint32_t empty_wakeups_max;    /* 1..1,048,576 in a row: the wake poll is armed anew; 512 */
        struct {
            uint32_t size_bytes; /* 256 B..1 MiB; 4 KiB */
            uint32_t count;      /* 16..32,768 of a thread, a power of two; 1,024 */
        } buffers;
    } io;
    struct {
        uint64_t send_high_bytes; /* 1 B..1 GiB: above it a channel stops reading; 256 KiB */
        uint64_t send_low_bytes;  /* 0..send_high_bytes: below it, it reads again; 64 KiB */
        uint64_t send_max_bytes;  /* send_high_bytes..4 GiB: a write beyond is refused; 4 MiB */
        /* Without a byte either way; 10 ms..8,760 h; 0: never; 5 min. A service whose clients wait
         * in silence sets it to 0. */
        uint64_t idle_timeout_ns;
        /* For the peer to take what one send holds (up to 16 buffers), else the channel is reset;
         * 10 ms..1 h; 0: never; 30 s. */
        uint64_t send_timeout_ns;
        uint64_t linger_ns;       /* 1 ms..1 h for the peer to close after our FIN; 1 s */
        uint32_t connections_max; /* 1..1,048,576 accepted, in the whole system; 10,000 */
    } channel;
    struct {
        uint64_t drain_timeout_ns; /* for open connections; 1 ms..1 h; 0: no time at all; 10 s */
        uint64_t actor_timeout_ns; /* then, for actors to stop; 1 ms..1 h; 0: no time; 10 s */
        /* 0..255: domus_main() exits with it when the drain has cut channels; 0: as it would
         * without (default). */
        uint32_t cut_status;
    } shutdown;
    struct {
        domus_profile_level level; /* counters */
    } profile;
    const domus_listener_config *listeners; /* not owned */
    size_t listener_count;                  /* 0..DOMUS_LISTENERS_MAX */
    struct {
        uint32_t threads_min;    /* 0..1,024 helper threads that stay; 0 */
        uint32_t threads_max;    /* 1..1,024, at least threads_min; 64 */
        uint32_t queue_max;      /* 1..1,048,576 jobs that wait for a thread; 4,096 */
        uint64_t idle_expiry_ns; /* 1 ms..1 h: then a thread without work ends; 10 s */
    } blocking;
    struct {
        uint32_t threads_max; /* 0..512 detached actors at a time; 64 */
    } detached;
    struct {
        uint32_t max;         /* 1..1,048,576 names of groups ever opened in a system; 65,536 */
        uint32_t members_max; /* 1..16,777,216 of one group; 1,048,576 */
    } groups;
    struct {
        uint32_t max;         /* 1..1,048,576 at a time; 65,536 */
        uint32_t routees_max; /* 1..65,536 of one router; 1,024 */
    } routers;
    struct {
        uint32_t max; /* 1..16,777,216 names of actors at a time; 65,536 */
    } names;
    struct {
        uint64_t
            threshold_ns; /* 1 ms..1 h: a longer run is reported (domus/stall.h); 0: none; 25 ms */
        uint32_t
            signal; /* 34..64, to ask a thread where it is (domus_stall_signal()); 0: none; 50 */
    } stall;
    struct {                       /* domus/memory.h says what each level means */
        bool enabled;              /* true: memory is measured */
        uint64_t limit_bytes;      /* 1 MiB..2^50 of the process; 0: the cgroup's or machine's */
        uint32_t high_percent;     /* 1..100 of the limit; 80 */
        uint32_t critical_percent; /* high_percent..100; 90 */
        uint64_t interval_ns;      /* 1 ms..1 h between looks; 100 ms */
        uint64_t thread_max_bytes; /* 1 MiB..2^50 for messages that a thread sent; 0: no bound */
        uint32_t queued_percent;   /* 1..100 of the budget, for bytes queued for peers; 50 */
        uint64_t reset_after_ns;   /* 100 ms..1 h of taking little, then a peer is deaf; 5 s */
    } memory;
    /* More of the section `channel`. */
    struct {
        /* For the peer to send its first byte after it was accepted, else the connection is closed;
         * 10 ms..1 h; 0: never; 10 s. A service whose clients wait in silence, for instance for
         * what it is going to send them, sets it to 0. */
        uint64_t first_byte_timeout_ns;
        /* 1..100 of connections_max (but at least one connection) that one address may have;
         * 100: no bound of its own; 10. An IPv6 address counts by its first 64 bits. Further
         * connections are reset at once. A service behind a proxy, whose clients all come from few
         * addresses, sets it to 100. */
        uint32_t address_percent;
        uint32_t loopback_percent; /* the same for 127.0.0.0/8, ::1 and Unix sockets; 100 */
        /* TCP keep-alive: without a byte for `idle`, the kernel asks the peer up to `count` times,
         * every `interval`, and resets a connection whose peer does not answer. */
        struct {
            uint64_t idle_ns;     /* 1 s..9 h, rounded up to whole seconds; 0: it is off; 60 s */
            uint64_t interval_ns; /* 1 s..9 h, rounded up to whole seconds; 10 s */
            uint32_t count;       /* 1..127; 6 */
        } keepalive;
        /* TCP_USER_TIMEOUT: for the peer to acknowledge what was sent, else the kernel resets the
         * connection; 10 ms..1 h, rounded up to whole ms; 0: as the kernel does it (default). */
        uint64_t user_timeout_ns;
    } connection;
    struct {
        uint32_t queue_max; /* 16..65,536 lines that wait in domus_main() to be written; 1,024 */
        /* For domus_main() to write what waits when it ends; 1 ms..1 h; 0: no time at all; 1 s. */
        uint64_t flush_timeout_ns;
        bool addresses; /* false: neither log lines nor dumps hold addresses of memory */
    } log;
    /* What the kernel may hold for an accepted TCP connection (channel.socket). */
    struct {
        /* Bytes that it takes from a channel before the peer's window lets it send them, give or
         * take one segment (64 KiB); 4 KiB..1 GiB; 0: as much as its send buffer holds; 128 KiB.
         * TCP_NOTSENT_LOWAT: what is on its way comes on top, and its size is still tuned by the
         * kernel. The rest waits in the channel, where channel.sendHigh and memory.queued bound
         * it. */
        uint64_t unsent_max_bytes;
        /* SO_SNDBUF and SO_RCVBUF; 4 KiB..1 GiB; 0: the kernel's own sizes (default). A size that
         * is set is fixed: the kernel no longer tunes it to the path, which costs throughput where
         * bandwidth times round trip is more. The kernel doubles it for its own bookkeeping, and
         * caps it at net.core.wmem_max or net.core.rmem_max. */
        uint64_t send_buffer_bytes;
        uint64_t receive_buffer_bytes;
    } sockets;
} domus_config;

/* Fill `config` with the defaults. Thread-safety: any thread. */
DOMUS_API void domus_config_init(domus_config *config);

/* Hold every value against its range.
 *
 * Returns 0; -EINVAL, and then one line about the first value that is wrong in `error`
 * (NUL-terminated, cut at `error_size` bytes; may be NULL with size 0).
 * Thread-safety: any thread. */
DOMUS_API int domus_config_check(const domus_config *config, char *error, size_t error_size);

/* What a key holds, and how its value is written. */
typedef enum domus_config_kind {
    DOMUS_CONFIG_COUNT,    /* "4096" */
    DOMUS_CONFIG_PERCENT,  /* "50" or "50%" */
    DOMUS_CONFIG_SHARE,    /* "50%" */
    DOMUS_CONFIG_DURATION, /* nanoseconds; "500us": ns, us, ms, s, m, h */
    DOMUS_CONFIG_SIZE,     /* bytes; "64KiB": B, KiB, MiB, GiB */
    DOMUS_CONFIG_WORD,     /* one of `words`; the number is its place among them */
    DOMUS_CONFIG_CPUS,     /* text: "auto", "none", "0-3,8" */
    DOMUS_CONFIG_NAME,     /* text: letters, digits, '-' and '_' */
    DOMUS_CONFIG_ADDRESS,  /* text: "127.0.0.1:7000", "[::1]:7000"; numbers only, never looked up */
} domus_config_kind;

/* One key: the only place where its default and its range stand. What is written in two ways
 * (`system.threads`: a count, or a share) has two rows of one path, one after the other. */
typedef struct domus_config_key {
    const char *path; /* as in YAML: "scheduler.ioRatio"; of a listener: "address" */
    domus_config_kind kind;
    uint32_t offset;          /* of the field in domus_config or domus_listener_config */
    uint32_t size;            /* of the field */
    uint64_t minimum;         /* of texts: the length in bytes */
    uint64_t maximum;         /* at most UINT64_MAX - 1 */
    uint64_t preset;          /* the default of a number */
    const char *preset_text;  /* the default of a text; NULL: it must be given */
    const char *special;      /* a word for a number outside the range ("auto"); NULL: none */
    uint64_t special_number;  /* ... which is this; it is never written as a number */
    const char *const *words; /* of DOMUS_CONFIG_WORD, NULL at the end */
    bool power_of_two;
    bool or_zero; /* 0 is allowed too, below the range */
} domus_config_key;

/* Row `index` of the table of keys; NULL behind the last. The second table is that of a listener.
 * Thread-safety: any thread. */
DOMUS_API const domus_config_key *domus_config_key_get(size_t index);
DOMUS_API const domus_config_key *domus_config_listener_key_get(size_t index);

/* Hold a value against the range of `key`, then store it in `holder` (a domus_config or a
 * domus_listener_config, whichever the table is of). `number` counts for numbers, `text` for texts;
 * a text is not copied.
 *
 * Returns 0; -EINVAL, and then what is wrong in `error`, without the path; nothing is stored.
 * Thread-safety: any thread. */
DOMUS_API int domus_config_key_put(const domus_config_key *key, void *holder, uint64_t number,
                                   const char *text, char *error, size_t error_size);

/* One thing that domus_config_check_all() found. */
typedef struct domus_config_fault {
    const domus_config_key *key;   /* what is wrong; NULL: the list of listeners itself */
    const domus_config_key *other; /* what it does not fit, when that is another key; or NULL */
    size_t listener;               /* which listener `key` belongs to; SIZE_MAX: none */
    const char *path;              /* "channel.sendHigh", "listeners[2].name" */
    const char *message;           /* valid during the call */
} domus_config_fault;

/* As domus_config_check(), but `report` is called for every value that is wrong.
 *
 * Returns how many there were. Thread-safety: any thread. */
DOMUS_API size_t domus_config_check_all(const domus_config *config,
                                        void (*report)(const domus_config_fault *fault,
                                                       void *context),
                                        void *context);

#ifdef __cplusplus
}
#endif

#endif
