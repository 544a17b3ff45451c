/* Peers that send all they can and never read, in a cgroup whose memory their bytes could fill many
 * times. A normal client must not notice, nor must a client that connects later; no process is
 * killed.
 *
 * Where no cgroup can be made, and under a sanitizer, whose own memory is several times the
 * program's, the service is given memory.limit instead. */
#include "tests/support/cgroup.h"
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define MIB      (UINT64_C(1) << 20)
#define LIMIT    (192 * MIB)
#define DEAF     DOMT_SCALE(800, 200)
#define FLOOD_MS (domt_tests_are_long() ? 5000u : 1500u)

/* Number of turns after which each deaf peer has disconnected once. */
#define TURNS_MIN 10u
#define TURNS_MAX (FLOOD_MS / 100u)

/* The longest time that a client may have to wait. It is a hundred milliseconds on an idle machine;
 * the rest is for clients that share their CPUs with other programs. */
#define WAIT_MS DOMT_SCALE(1000, 5000)

static domt_service service;
static domt_crowd crowd;
static domt_cgroup cgroup;
static bool in_cgroup;

static void enter_cgroup_of_service(void)
{
    if (in_cgroup)
        (void)domt_cgroup_enter_process(&cgroup);
}

static void set_up_cgroup_and_service(void)
{
    in_cgroup = !DOMT_SANITIZED && domt_cgroup_make_with_memory_limit(&cgroup, LIMIT);
    if (!in_cgroup)
        printf("without a cgroup: %s\n", cgroup.why);
    ck_assert(domt_raise_descriptor_limit(DEAF + 100));
    service.prepare = enter_cgroup_of_service;
    domt_service_start(
        &service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", "--set",
                                      in_cgroup ? "memory.limit=auto" : "memory.limit=192MiB", ));
}

static void stop_service_and_check_kills(void)
{
    uint64_t kills = in_cgroup ? domt_cgroup_count_oom_kills(&cgroup) : 0;

    domt_crowd_fini(&crowd);
    domt_service_signal(&service, SIGTERM);
    int status = domt_service_wait(&service, 30000);
    if (in_cgroup)
        domt_cgroup_remove(&cgroup);
    ck_assert_uint_eq(kills, 0);
    ck_assert_int_eq(status, 0);
    printf("reset for memory %llu\n%s",
           (unsigned long long)domt_service_count_in_profile(&service, "reset for memory"),
           service.error);
}

/* --- a normal client -------------------------------------------------------------------------- */

typedef struct good {
    pthread_t thread;
    atomic_bool over;
    /* longest round trip of the normal client, on a connection older than the flood */
    double worst_ms;
    double new_ms; /* longest time of a connect and one round trip, on new connections */
    uint32_t trips;
    uint32_t failed;
} good;

static double ms_since_time(uint64_t start_ns)
{
    return (double)(domt_monotonic_ns() - start_ns) / 1e6;
}

static void raise_maximum_to_value(double *most, double ms)
{
    if (ms > *most)
        *most = ms;
}

static void *measure_echoes_of_good_client(void *self_)
{
    good *self = self_;
    int fd = domt_connect_to_port(service.port);

    self->failed += !domt_send_and_get_echo(fd, "hello");
    while (!atomic_load(&self->over)) {
        uint64_t start_ns = domt_monotonic_ns();
        self->failed += !domt_send_and_get_echo(fd, "are you there?");
        raise_maximum_to_value(&self->worst_ms, ms_since_time(start_ns));
        start_ns = domt_monotonic_ns();
        int late = domt_connect_to_port(service.port);
        self->failed += !domt_send_and_get_echo(late, "a new one is served too");
        raise_maximum_to_value(&self->new_ms, ms_since_time(start_ns));
        close(late);
        self->trips++;
        domt_sleep_ms(5);
    }
    close(fd);
    return NULL;
}

static void begin_good_client(good *self)
{
    *self = (good){0};
    ck_assert_int_eq(pthread_create(&self->thread, NULL, measure_echoes_of_good_client, self), 0);
}

static void end_and_check_good_client(good *self)
{
    atomic_store(&self->over, true);
    pthread_join(self->thread, NULL);
    printf("%u round trips, the worst took %.1f ms, of a new client %.1f ms, %u failed\n",
           self->trips, self->worst_ms, self->new_ms, self->failed);
    ck_assert_uint_gt(self->trips, 10);
    ck_assert_uint_eq(self->failed, 0);
    ck_assert_msg(self->worst_ms <= WAIT_MS, "a round trip took %.0f ms", self->worst_ms);
    ck_assert_msg(self->new_ms <= WAIT_MS, "a new client waited for %.0f ms", self->new_ms);
}

/* --- deaf peers ------------------------------------------------------------------------------- */

static uint64_t until_ns;

static bool is_flood_time_over(const domt_crowd *unused)
{
    return domt_monotonic_ns() >= until_ns;
}

static void flood_by_deaf_peers(uint32_t ms)
{
    until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);
    (void)domt_crowd_run_until(&crowd, is_flood_time_over, ms + 10000);
}

static void make_client_endless_and_deaf(domt_client *client)
{
    client->bytes = UINT64_MAX;
    client->deaf = true;
}

static void connect_deaf_peers(void)
{
    domt_crowd_init(&crowd, service.port, DEAF);
    for (uint32_t i = 0; i < DEAF; i++)
        make_client_endless_and_deaf(&crowd.clients[i]);
    domt_crowd_connect_clients(&crowd, 0, DEAF);
}

DOMT_TEST(many_deaf_peers_do_not_stop_a_client_that_behaves)
{
    good client;

    set_up_cgroup_and_service();
    begin_good_client(&client);
    connect_deaf_peers();
    flood_by_deaf_peers(FLOOD_MS);
    if (in_cgroup)
        printf("%llu MiB used\n", (unsigned long long)domt_cgroup_used_bytes(&cgroup) / MIB);
    end_and_check_good_client(&client);
    stop_service_and_check_kills();
}

/* Ten times a second a tenth of the peers disconnects and connects again, and so do the peers that
 * were reset. On a slow machine, or under a sanitizer, a turn takes longer, and there are fewer
 * turns. */
DOMT_TEST(deaf_peers_that_reconnect_do_not_stop_a_good_client)
{
    good client;
    uint32_t next = 0;

    set_up_cgroup_and_service();
    begin_good_client(&client);
    connect_deaf_peers();
    uint64_t end_ns = domt_monotonic_ns() + FLOOD_MS * UINT64_C(1000000);
    for (uint32_t turn = 0; turn < TURNS_MAX; turn++) {
        if (turn >= TURNS_MIN && domt_monotonic_ns() >= end_ns)
            break;
        flood_by_deaf_peers(100);
        for (uint32_t i = 0; i < DEAF / 10; i++, next = (next + 1) % DEAF)
            domt_client_close(&crowd.clients[next], i % 2 == 0);
        for (uint32_t i = 0; i < DEAF; i++) {
            domt_client *gone = &crowd.clients[i];
            if (gone->fd >= 0)
                continue;
            *gone = (domt_client){.fd = -1, .number = gone->number, .chance = gone->chance};
            make_client_endless_and_deaf(gone);
            domt_crowd_connect_clients(&crowd, i, i + 1);
        }
    }
    end_and_check_good_client(&client);
    stop_service_and_check_kills();
}

DOMT_SUITE(120)
