/* The observer of a program (domus/front.h): checks the section `observe` of the configuration, and
 * runs the system of the port.
 *
 * That system is small: one thread that is not pinned and never spins, few buffers, three helper
 * threads on demand, and no watch of memory or of stalls, which the observed system has. */
#include "protocols/observe/announce.h"
#include "protocols/observe/live.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/pages.h"

#include <domus/observe.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTENER  "observe"
#define SECOND_NS UINT64_C(1000000000)
#define BACKLOG   128u /* connections to the port that may wait to be accepted */
/* receive buffers of the port's thread, of 4 KiB each, for heads of requests */
#define BUFFERS      64u
#define RING_ENTRIES 256u
/* helper threads of the port: one for a trace, one for a CPU profile, one for pages of actors */
#define HELPERS      3u
#define DUMPS_QUEUED 16u /* viewers of the port that may wait for a page of actors */
/* bytes of the longest answer of the port, the metrics of 1,024 threads and 2,048 runners */
#define SEND_MAX  (UINT64_C(64) << 20)
#define PATH_SIZE (sizeof(((domus_endpoint *)NULL)->bytes) + 1)

/* The observation port of the process. Only `open` and `close` change it, which one thread at a
 * time calls. */
static struct {
    domus_system *system; /* the system that serves the port; NULL: no port is open */
    /* status of the file of the port's Unix socket, by which `close` recognizes the file */
    struct stat file;
    char path[PATH_SIZE]; /* path of the file of the port's Unix socket; "": there is none */
} port;

/* The socket, passed to the process, that the next `open` serves, and where it listens; 0: `open`
 * makes a socket. */
static int adopted;
static domus_endpoint adopted_at;

/* --- checking the configuration --------------------------------------------------------------- */

static bool is_loopback_address(const domus_endpoint *endpoint)
{
    static const unsigned char v6[16] = {[15] = 1};

    if (endpoint->family == AF_INET)
        return endpoint->bytes[0] == 127;
    return endpoint->family == AF_INET6 && memcmp(endpoint->bytes, v6, sizeof v6) == 0;
}

/* Returns whether the configuration says that the observation port is to be opened. */
static bool is_port_wanted(const domus_config *config)
{
    return config->observe.listen != NULL && config->observe.listen[0] != '\0';
}

/* Find the endpoint at which the observation port is to listen. Returns 0; -EINVAL. */
static int find_endpoint_to_listen_at(const domus_config *config, domus_endpoint *ret_at)
{
    if (adopted == 0)
        return domus_endpoint_parse(config->observe.listen, ret_at);
    *ret_at = adopted_at;
    return 0;
}

/* Check by the mode of its file who may connect to a Unix socket that was passed to the process:
 * the socket that the port itself makes belongs to the user alone, but systemd makes sockets for
 * all users by default (SocketMode=0666). Returns 0; -EINVAL. */
static int check_mode_of_passed_socket(const domus_endpoint *at, char *error, size_t error_size)
{
    char path[PATH_SIZE] = "";
    struct stat file;

    memcpy(path, at->bytes, at->size);
    if (path[0] != '\0' && lstat(path, &file) == 0 && S_ISSOCK(file.st_mode) &&
        (file.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return 0;
    snprintf(error, error_size,
             "observe.listen: the Unix socket that was passed is not only its owner's "
             "(SocketMode=0600), so others could see all that the port shows; observe.public: true "
             "allows that");
    return -EINVAL;
}

static int check_endpoint_to_listen_at(const domus_config *config, char *error, size_t error_size)
{
    const char *listen = config->observe.listen;
    domus_endpoint at;

    if (!is_port_wanted(config))
        return 0;
    if (find_endpoint_to_listen_at(config, &at) != 0) {
        snprintf(error, error_size,
                 "observe.listen: must be unix:PATH, or such as 127.0.0.1:9100, is '%s'", listen);
        return -EINVAL;
    }
    if (at.family == AF_UNIX && adopted != 0 && !config->observe.is_public)
        return check_mode_of_passed_socket(&at, error, error_size);
    if (at.family == AF_UNIX || is_loopback_address(&at) || config->observe.is_public)
        return 0;
    snprintf(error, error_size,
             "observe.listen: %s is not of loopback, so strangers could see all that the port "
             "shows; observe.public: true allows that",
             adopted != 0 ? "the socket that was passed" : listen);
    return -EINVAL;
}

/* --- opening the port ------------------------------------------------------------------------- */

static void configure_port_system(const domus_config *observed,
                                  const domus_listener_config *listener, domus_config *ret_config)
{
    domus_config_init(ret_config);
    ret_config->system.threads = 1;
    ret_config->system.cpus = "none";
    ret_config->scheduler.steal.enabled = false;
    ret_config->scheduler.idle.spin_ns = 0;
    ret_config->io.backend = observed->io.backend;
    ret_config->io.ring_entries = RING_ENTRIES;
    ret_config->io.buffers.count = BUFFERS;
    ret_config->channel.connections_max = observed->observe.viewers_max;
    ret_config->connection.address_percent = 100;
    ret_config->channel.requests_max = 1;
    ret_config->channel.send_max_bytes = SEND_MAX;
    ret_config->channel.send_timeout_ns = 10 * SECOND_NS;
    ret_config->channel.idle_timeout_ns = 60 * SECOND_NS;
    ret_config->shutdown.drain_timeout_ns = SECOND_NS;
    ret_config->blocking.threads_max = HELPERS;
    ret_config->blocking.queue_max = DUMPS_QUEUED;
    ret_config->detached.threads_max = 0;
    ret_config->stall.threshold_ns = 0;
    ret_config->memory.enabled = false;
    ret_config->profile.level = DOMUS_PROFILE_OFF;
    ret_config->listeners = listener;
    ret_config->listener_count = 1;
}

/* Serve the port. A socket file that this makes has mode 0600 from the start, because of the umask,
 * which all threads of the process share for this moment. */
static int serve_observation_port(domus_system *system, uint16_t *ret_port)
{
    const domus_serve_options options = {.listening = adopted};
    mode_t before = umask(0177);
    int result = domus_serve_with(system, LISTENER, &domi_observe_site, NULL, &options, ret_port);

    (void)umask(before);
    return result;
}

/* Remember the file of the port's Unix socket, which `close` removes if it is still the same file.
 * The file of a socket that was passed to the process stays. */
static void remember_file_of_socket_to_remove(const domus_endpoint *at)
{
    port.path[0] = '\0';
    if (adopted != 0 || at->family != AF_UNIX || at->bytes[0] == '\0')
        return;
    memcpy(port.path, at->bytes, at->size);
    port.path[at->size] = '\0';
    if (lstat(port.path, &port.file) != 0)
        port.path[0] = '\0';
}

/* Start the system of the port, and serve the port with it. Returns 0; or a negative errno, and
 * `error` tells why. */
static int start_port_system(domus_system *own, const domus_config *config, char *error,
                             size_t error_size, uint16_t *ret_port)
{
    int result = domus_system_start(own);

    if (result == 0)
        result = domi_live_start_sampler(own);
    if (result == 0)
        result = serve_observation_port(own, ret_port);
    if (result == 0)
        return 0;
    const char *why = domus_system_error(own);
    snprintf(error, error_size, "observe.listen: %s: %s", config->observe.listen,
             why[0] != '\0' ? why : strerror(-result));
    return result;
}

static int open_observation_port(domus_system *system, char *error, size_t error_size,
                                 void **ret_state, uint16_t *ret_port)
{
    const domus_config *config = domus_system_config(system);
    const domus_listener_config listener = {
        .name = LISTENER, .address = config->observe.listen, .backlog = BACKLOG};
    domus_config own_config;
    domus_system *own = NULL;
    domus_endpoint at;
    uint16_t number = 0;

    if (!is_port_wanted(config)) {
        *ret_state = NULL;
        *ret_port = 0;
        return 0;
    }
    int result = check_endpoint_to_listen_at(config, error, error_size);
    if (result == 0 && port.system != NULL) {
        snprintf(error, error_size, "observe.listen: this process has such a port already");
        result = -EALREADY;
    }
    if (result != 0)
        return result;
    /* this cannot fail, because the endpoint was checked before */
    (void)find_endpoint_to_listen_at(config, &at);
    domi_observed.observed = system;
    domi_observed.opened_ns = domi_observe_clock_ns();
    domi_observed.checks_host = at.family != AF_UNIX && !config->observe.is_public;
    domi_observed.is_traced = domi_observed.is_profiled = domi_observed.is_raised = false;
    atomic_store_explicit(&domi_observed.is_ready, false, memory_order_relaxed);
    atomic_store_explicit(&domi_observed.is_closing, false, memory_order_relaxed);
    atomic_store_explicit(&domi_observed.has_log, false, memory_order_relaxed);
    atomic_store_explicit(&domi_observed.is_ending, false, memory_order_relaxed);
    configure_port_system(config, &listener, &own_config);
    result = domus_system_new(&own_config, error, error_size, &own);
    domi_observed.own = own;
    if (result == 0)
        result = start_port_system(own, config, error, error_size, &number);
    if (result != 0) {
        domus_system_free(own);
        return result;
    }
    remember_file_of_socket_to_remove(&at);
    /* the passed socket now belongs to the system of the port, so the next `open` does not serve
     * it */
    adopted = 0;
    domi_announce_port_in_registry(&at, number);
    port.system = own;
    *ret_state = &port;
    *ret_port = number;
    return 0;
}

static void use_passed_socket_for_port(int listening, const domus_endpoint *at)
{
    adopted = listening;
    adopted_at = *at;
}

/* --- while the port is open ------------------------------------------------------------------- */

static void store_ready_and_end_streams_if_not(void *state, bool is_ready)
{
    if (state == NULL)
        return;
    atomic_store_explicit(&domi_observed.is_ready, is_ready, memory_order_relaxed);
    if (!is_ready)
        domi_live_end_all_streams(port.system);
}

static void set_log_source(void *state, const domus_log_source *source)
{
    if (state == NULL)
        return;
    domi_observed.log = *source;
    /* release: pairs with the acquire of viewers that read lines, so that they see `log`
     * complete */
    atomic_store_explicit(&domi_observed.has_log, true, memory_order_release);
}

static int hand_over_config_if_port_is_open(void *state, domus_config_walk *walk, const void *from)
{
    return state != NULL ? domi_observe_hand_over_shown_config(walk, from) : 0;
}

static void remove_file_of_socket(void)
{
    struct stat now;

    if (port.path[0] != '\0' && lstat(port.path, &now) == 0 && now.st_dev == port.file.st_dev &&
        now.st_ino == port.file.st_ino)
        (void)unlink(port.path);
    port.path[0] = '\0';
}

static void close_observation_port(void *state)
{
    if (state == NULL)
        return;
    atomic_store_explicit(&domi_observed.is_closing, true, memory_order_relaxed);
    atomic_store_explicit(&domi_observed.is_ending, true, memory_order_relaxed);
    domi_remove_port_from_registry();
    (void)domus_system_stop(port.system);
    remove_file_of_socket();
    domus_system_free(port.system);
    domi_observe_free_shown_config();
    port.system = NULL;
}

const domus_observer domus_observe_front = {.check = check_endpoint_to_listen_at,
                                            .open = open_observation_port,
                                            .set_ready = store_ready_and_end_streams_if_not,
                                            .close = close_observation_port,
                                            .set_log = set_log_source,
                                            .set_config = hand_over_config_if_port_is_open,
                                            .adopt = use_passed_socket_for_port};
