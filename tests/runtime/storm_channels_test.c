/* The storm with connections (tests/runtime/storm_channels.h), on real threads: actors, and peers
 * on loopback, do at random what they may do. The seed determines the random numbers, but not the
 * schedule; DOMUS_SEED=n runs one seed, and DOMT_LONG many. The numbers of actions of actors and of
 * peers are bounded. */
#include "tests/runtime/storm_channels.h"

#include "tests/runtime/running.h"

#include <domus/testkit.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS         DOMT_STORM_MS
#define THREADS    3u
#define STRANGERS  2u
#define SOCKETS    24u
#define SEEDS      6u
#define SEEDS_LONG 200u
#define DEEDS      (DOMT_SANITIZED ? 6000 : 30000)

typedef struct stranger {
    pthread_t pthread;
    uint64_t seed;
    domus_system *system;
    const uint16_t *ports;
    uint64_t connects;
    int sockets[SOCKETS];
} stranger;

/* --- strangers -------------------------------------------------------------------------------- */

static int connect_to_storm_port(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1; /* the connect fails when the system stops */
    }
    return fd;
}

static void close_or_reset_socket(int fd, bool abort)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (abort)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

static void use_random_socket(stranger *self, domi_random *dice)
{
    int *fd = &self->sockets[domi_random_below(dice, SOCKETS)];
    char bytes[6000] = "";

    if (*fd < 0) {
        *fd = connect_to_storm_port(self->ports[domi_random_below(dice, DOMT_STORM_OWNERS)]);
        self->connects += *fd >= 0;
        return;
    }
    switch (domi_random_below(dice, 12)) {
    case 0:
        close_or_reset_socket(*fd, domi_random_below(dice, 2) == 0);
        *fd = -1;
        break;
    case 1:
        (void)shutdown(*fd, SHUT_WR);
        break;
    case 2:
    case 3:
    case 4:
        (void)recv(*fd, bytes, sizeof bytes, MSG_DONTWAIT);
        break;
    default:
        (void)send(*fd, bytes, 1 + domi_random_below(dice, sizeof bytes - 1),
                   MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    }
}

static void *run_peer_with_random_sockets(void *stranger_)
{
    stranger *self = stranger_;
    domi_random dice;

    domi_random_init(&dice, self->seed);
    for (uint32_t i = 0; i < SOCKETS; i++)
        self->sockets[i] = -1;
    while (atomic_fetch_sub(&domt_storm_budget, 1) > 0) {
        use_random_socket(self, &dice);
        if (domi_random_below(&dice, 64) == 0)
            (void)domus_outside_stop(self->system, domt_storm_crowd_at((uint32_t)domi_random_below(
                                                       &dice, DOMT_STORM_CROWD)));
        if (domi_random_below(&dice, 8) == 0)
            domt_pause_ns(50000);
    }
    for (uint32_t i = 0; i < SOCKETS; i++) {
        if (self->sockets[i] >= 0)
            close(self->sockets[i]);
    }
    return NULL;
}

/* --- a run ------------------------------------------------------------------------------------ */

static const domus_listener_config listeners[DOMT_STORM_OWNERS] = {
    {.name = "own", .address = "127.0.0.1:0", .backlog = 64},
    {.name = "shared", .address = "127.0.0.1:0", .backlog = 64},
    {.name = "lasting", .address = "127.0.0.1:0", .backlog = 64}};

static domus_config config_of_channels_storm(domi_random *dice)
{
    domus_config config = domt_config_of_threads(THREADS);

    config.listeners = listeners;
    config.listener_count = DOMT_STORM_OWNERS;
    config.io.buffers.count = 64;
    config.scheduler.mailbox_max = (uint32_t)(1 + domi_random_below(dice, 75));
    config.scheduler.conversations_max = (uint32_t)(1 + domi_random_below(dice, 8));
    config.scheduler.messages_per_run_max = (uint32_t)(1 + domi_random_below(dice, 63));
    config.scheduler.timers_max = 200;
    config.detached.threads_max = 4;
    config.blocking.threads_max = 2;
    config.channel.linger_ns = 20 * MS;
    config.shutdown.drain_timeout_ns = 100 * MS;
    return config;
}

static void serve_all_owners(domus_system *system, uint16_t *ports)
{
    for (uint32_t i = 0; i < DOMT_STORM_OWNERS; i++) {
        const domt_doer state = {.seed = i};
        ck_assert_int_eq(
            domus_serve(system, listeners[i].name, &domt_storm_owners[i], &state, &ports[i]), 0);
    }
}

static void spawn_actors_of_storm(domus_system *system, domi_random *dice)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        const domt_doer state = {.seed = domi_random_next_bits(dice)};
        domt_storm_crowd_set(
            i, domt_spawn(system, i, i == 0 ? &domt_storm_boss : &domt_storm_wild, &state));
    }
}

static const char *end_run_and_check_counts(domus_system *system)
{
    domus_profile sum = domt_profile_of_all_threads(system);
    const char *left = domus_system_left(system);

    ck_assert_str_eq(left, "");
    ck_assert_uint_eq(sum.channels_opened, sum.channels_closed);
    ck_assert_uint_eq(atomic_load(&domt_channels_open), 0);
    ck_assert_uint_eq(atomic_load(&domt_channels_mounted), 0);
    domus_system_free(system);
    return domt_storm_end(false);
}

static int run_storm_with_channels(uint64_t seed, void *ret_text)
{
    stranger strangers[STRANGERS];
    uint16_t ports[DOMT_STORM_OWNERS];
    uint64_t connects = 0;
    domi_random dice;

    domi_random_init(&dice, seed);
    domus_config config = config_of_channels_storm(&dice);
    domt_storm_begin(DEEDS);
    domus_system *system = domt_start_system(&config);
    serve_all_owners(system, ports);
    spawn_actors_of_storm(system, &dice);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        strangers[i] =
            (stranger){.system = system, .seed = domi_random_next_bits(&dice), .ports = ports};
        ck_assert_int_eq(pthread_create(&strangers[i].pthread, NULL, run_peer_with_random_sockets,
                                        &strangers[i]),
                         0);
    }
    /* with each second seed the system is stopped while the peers still connect and send */
    if (seed % 2 == 0) {
        domt_pause_ns(40 * MS);
        ck_assert_int_ge(domus_system_stop(system), 0);
        atomic_store(&domt_storm_budget, 0);
    }
    for (uint32_t i = 0; i < STRANGERS; i++) {
        pthread_join(strangers[i].pthread, NULL);
        connects += strangers[i].connects;
    }
    ck_assert_int_ge(domus_system_stop(system), 0);
    ck_assert_uint_gt(connects, 0);
    *(const char **)ret_text = end_run_and_check_counts(system);
    return **(const char **)ret_text == '\0' ? 0 : -EIO;
}

DOMT_TEST(storm_closes_what_it_opened_and_stops_what_it_mounted)
{
    const char *text = "";
    uint64_t seed = 0;

    int result = domus_testkit_sweep(1, domt_tests_are_long() ? SEEDS_LONG : SEEDS,
                                     run_storm_with_channels, (void *)&text, &seed);
    ck_assert_msg(result == 0, "seed %llu: %s", (unsigned long long)seed, text);
    for (uint32_t i = 0; getenv("DOMUS_SEED") == NULL && i < DOMT_LINE_DEEDS; i++)
        ck_assert_msg(atomic_load(&domt_channels_deeds[i]) != 0, "deed %u was never done", i);
}

DOMT_SUITE(domt_tests_are_long() ? 900 : 120)
