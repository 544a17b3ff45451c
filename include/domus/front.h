/* Tables by which libdomus-config uses libraries that it is not linked with: a program names them.
 *
 * Fronts: what the connections of a listener speak before their pipelines, as its configuration
 * says it (`listeners[].tls`). The library of a protocol has one (domus_tls_front of domus/tls.h),
 * a program names it (`front` in domus/main.h), and its operator turns it on for a listener.
 * Neither the reader of the configuration nor the runtime knows what is in it.
 *
 * Observers: the port by which a program is observed, as the section `observe` of the configuration
 * says it. domus_observe_front of domus/observe.h is one (`observe` in domus/main.h).
 *
 * Joiners: the cluster that a program is in, as the section `cluster` of the configuration says it.
 * domus_cluster_front of domus/cluster.h is one (`cluster` in domus/main.h). */
#ifndef DOMUS_FRONT_H
#define DOMUS_FRONT_H

#include <domus/config.h>
#include <domus/config_shown.h>
#include <domus/log.h>
#include <domus/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of a front. Their `error` gets one line without the name of the listener, which begins
 * with the key: "tls.certFile: /etc/web/a.pem: No such file or directory" (NUL-terminated, cut at
 * `error_size` bytes). */
typedef struct domus_front {
    /* Make the state and the stages that a listener needs, if its settings want a front: then
     * `ret_state` gets the state, and `ret_stages` the stages, which last until `close`
     * (DOMUS_FRONT_MAX in domus/pipeline.h). Otherwise both are NULL. The settings are gone after
     * the call. Returns 0; a negative errno. Thread-safety: one thread at a time. It may block. */
    int (*open)(const domus_listener_config *listener, char *error, size_t error_size,
                void **ret_state, const domus_pipeline_stage **ret_stages);
    /* Read the files of a front again, while its stages are in use. If anything is wrong, all stays
     * as it was. Returns 0; a negative errno. Thread-safety: any thread, one at a time. It may
     * block. */
    int (*reload)(void *state, char *error, size_t error_size);
    /* Free the state of a front, which no connection uses any more. NULL is allowed. */
    void (*close)(void *state);
    /* Make the state and the stages that connections to servers need, as `open` does for a
     * listener; `reload` and `close` take this state, too. Both results are NULL if TLS is not
     * enabled. NULL: this front is for listeners alone. */
    int (*open_servers)(const domus_servers_tls_config *settings, char *error, size_t error_size,
                        void **ret_state, const domus_pipeline_stage **ret_stages);
} domus_front;

struct domus_system;

/* Functions of an observer. Their `error` gets one line that begins with the key, as that of a
 * front does. */
typedef struct domus_observer {
    /* Check the section `observe` of the configuration; nothing is opened. Returns 0; -EINVAL.
     * Thread-safety: any thread. */
    int (*check)(const domus_config *config, char *error, size_t error_size);
    /* Open the port of a system that runs. `ret_state` gets the port, or NULL if the configuration
     * wants none; `ret_port` gets the port of TCP, which for port 0 the kernel has chosen, and 0
     * for a Unix socket. Returns 0; a negative errno. Thread-safety: one thread at a time. It may
     * block. */
    int (*open)(struct domus_system *system, char *error, size_t error_size, void **ret_state,
                uint16_t *ret_port);
    /* Set whether the port says that the system takes new work: no until the first call, yes once
     * the program has started, and no when it begins to stop. `state` may be NULL. Thread-safety:
     * any thread. */
    void (*set_ready)(void *state, bool is_ready);
    /* Close the observation port: its system has stopped, and is freed after this. NULL is allowed.
     * It may block for some seconds. */
    void (*close)(void *state);
    /* Let viewers read the log of the program; without this call there is no log. The source is
     * copied, and read until `close`. Once for each `open`. NULL: the port shows no log.
     * Thread-safety: one thread at a time. */
    void (*set_log)(void *state, const domus_log_source *source);
    /* Let viewers see what `walk` shows of `from` as the configuration of the program, which a
     * reload may change; without this call they see that of the system, without the places where
     * values stand. It is all copied. NULL: the port shows no configuration. Returns 0; -ENOMEM,
     * and then viewers see what they saw before. Thread-safety: one thread at a time. */
    int (*set_config)(void *state, domus_config_walk *walk, const void *from);
    /* Let the next `check` and `open` use this socket, which listens at `at`, in place of a new one
     * (`listening` in domus/system.h); 0: use a new one. If `open` returns 0, the
     * port owns the descriptor. NULL: the port makes its socket itself. Thread-safety: as
     * `open`. */
    void (*adopt)(int listening, const domus_endpoint *at);
} domus_observer;

struct domus_cluster;
struct domus_cluster_options;

/* The settings of which a joiner makes a node of a cluster. Nothing of them is used after a call,
 * but what `options` and `front` point to, which has to stay valid until the system is freed. */
typedef struct domus_cluster_setup {
    const domus_config *config; /* configuration whose section `cluster` describes the node */
    const char *program; /* name of the program; names the cluster if no other setting does */
    /* Settings of the program: a name for its cluster, picklers, exports and their like. Fields for
     * which the configuration has keys are taken from the configuration. NULL: no settings. */
    const struct domus_cluster_options *options;
    /* TLS for the node's connections to the servers; NULL: none */
    const domus_pipeline_stage *front;
} domus_cluster_setup;

/* Functions of a joiner. Their `error` gets one line that begins with the key, as that of a front
 * does. */
typedef struct domus_joiner {
    /* Check the settings of a node; files are read, and nothing is opened. Returns 0; a negative
     * errno. Thread-safety: any thread. It may block. */
    int (*check)(const domus_cluster_setup *setup, char *error, size_t error_size);
    /* Make a running system a node of the cluster. Returns 0; a negative errno. Thread-safety: one
     * thread at a time. It may block. */
    int (*open)(struct domus_system *system, const domus_cluster_setup *setup, char *error,
                size_t error_size, struct domus_cluster **ret_cluster);
    /* Leave the cluster, before the program stops its system: grains go to other nodes, which hear
     * of the end. It may block for the time of domus_cluster_leave(). Thread-safety: one thread at
     * a time. */
    void (*leave)(struct domus_cluster *cluster);
    /* Free the handle of a cluster whose system has stopped. NULL is allowed. */
    void (*close)(struct domus_cluster *cluster);
} domus_joiner;

/* The cluster that a program is in (`cluster` in domus/main.h). */
typedef struct domus_cluster_member {
    /* functions that make the system a node: &domus_cluster_front */
    const domus_joiner *joiner;
    /* options of the node, as `options` of domus_cluster_setup */
    const struct domus_cluster_options *options;
    /* place to which domus_main() writes the handle of the cluster; NULL: nowhere */
    struct domus_cluster **cluster;
} domus_cluster_member;

#ifdef __cplusplus
}
#endif

#endif
