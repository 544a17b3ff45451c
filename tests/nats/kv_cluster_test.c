/* A bucket with three replicas works while each of its servers is killed once: a lease stays with
 * its holder, and a watch reports each change. If two updates at one revision are under way at
 * the same time, one is made. The tests take half a minute, so they run only in the long form of
 * the suite. */
#include "tests/nats/js_server.h"
#include "tests/support/process.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SERVERS 3

static domt_nats_server servers[SERVERS];
static uint16_t routes[SERVERS];
/* client of the cluster; its `server` is not used, because `servers` are started instead */
static domt_js_server js;

static void start_server_of_cluster(int i, uint16_t port)
{
    char config[600];

    snprintf(config, sizeof config,
             "server_name: n%d\njetstream { store_dir: \"%s/%d\" }\ncluster { name: c, listen: "
             "\"127.0.0.1:%u\", routes: [ \"nats://127.0.0.1:%u\", \"nats://127.0.0.1:%u\", "
             "\"nats://127.0.0.1:%u\" ] }",
             i, js.store, i, routes[i], routes[0], routes[1], routes[2]);
    domt_nats_server_start(&servers[i], config, port);
}

static uint64_t read_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_for_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Renew the lease by an update. An update without an answer may have been made, so the entry is
 * then read. */
static void renew_lease_in_bucket(domus_address bucket, const char *value, uint64_t *revision)
{
    uint64_t until_ms = read_clock_ms() + 30000;

    while (read_clock_ms() < until_ms) {
        domus_nats_kv_entry entry;
        int error = domt_js_server_put_entry(&js, bucket, "leader", value, DOMUS_NATS_KV_PUT,
                                             DOMUS_NATS_KV_IF_REVISION, *revision, revision);
        if (error == 0)
            return;
        if (domt_js_server_get_entry(&js, bucket, "leader", 0, &entry) == 0) {
            bool is_made = domt_slice_has_text(domus_nats_kv_value(&entry), value);
            /* the lease has this holder's value or the old revision, so nobody else took it */
            ck_assert(is_made || entry.revision == *revision);
            if (is_made)
                *revision = entry.revision;
            domus_slice_free(entry.bytes);
            if (is_made)
                return;
        }
        sleep_for_ms(50);
    }
    ck_abort_msg("the lease cannot be renewed");
}

/* Receive changes from the watch until the lease has this value. */
static void await_lease_value_in_watch(const char *value)
{
    for (;;) {
        const domus_nats_kv_entry *entry =
            domt_js_server_receive_notice(&js, &domus_nats_kv_entry_type, 30 * DOMT_SECOND);
        if (domt_slice_has_text(domus_nats_kv_value(entry), value))
            return;
    }
}

static int remove_file_of_store(const char *path, const struct stat *status, int flag,
                                struct FTW *walk)
{
    return remove(path);
}

static domus_address start_cluster_with_bucket(uint64_t *ret_revision)
{
    static char urls[200];
    const domus_nats_kv_config config = {.replicas = 3};
    const domus_nats_kv_options options = {.bucket = "leases", .create = &config};

    snprintf(js.store, sizeof js.store, "/tmp/domus-js-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(js.store));
    for (int i = 0; i < SERVERS; i++)
        routes[i] = domt_find_free_port();
    for (int i = 0; i < SERVERS; i++)
        start_server_of_cluster(i, 0);
    snprintf(urls, sizeof urls, "%s, %s, %s", servers[0].url, servers[1].url, servers[2].url);
    domt_nats_user_start_system(&js.user, &(domus_nats_options){.servers = urls,
                                                                .request_timeout_ns = DOMT_SECOND,
                                                                .backoff_max_ns = DOMT_SECOND / 5});
    domus_address bucket = domt_js_server_open_bucket(&js, &options);
    /* The put is repeated until the servers have formed a cluster. */
    for (int i = 0; i < 300; i++) {
        int error = domt_js_server_put_entry(&js, bucket, "leader", "begin", DOMUS_NATS_KV_PUT,
                                             DOMUS_NATS_KV_ALWAYS, 0, ret_revision);
        if (error == 0)
            return bucket;
        sleep_for_ms(100);
    }
    ck_abort_msg("the servers do not make a bucket");
}

static void stop_cluster_and_client(void)
{
    domt_nats_user_stop_system(&js.user);
    for (int i = 0; i < SERVERS; i++)
        domt_nats_server_stop(&servers[i]);
    ck_assert_int_eq(nftw(js.store, remove_file_of_store, 16, FTW_DEPTH | FTW_PHYS), 0);
}

DOMT_TEST(lease_and_watch_survive_death_of_each_server)
{
    domus_nats_kv_watch watch = {.heartbeat_ns = DOMT_SECOND / 5};
    uint64_t revision = 0;
    char value[32];

    if (!domt_tests_are_long())
        return;
    js.ask_ns = DOMT_SECOND / 2;
    domus_address bucket = start_cluster_with_bucket(&revision);
    ck_assert_int_eq(
        domt_js_server_ask_actor(&js, bucket, &domus_nats_kv_watch_type, &watch, NULL, 0), 0);
    await_lease_value_in_watch("begin");
    (void)domt_js_server_receive_notice(&js, &domus_nats_kv_initial_type, 5 * DOMT_SECOND);
    for (int i = 0; i < 2 * SERVERS; i++) {
        uint16_t port = servers[i % SERVERS].port;
        /* kill the server of this round without warning */
        domt_nats_server_stop(&servers[i % SERVERS]);
        snprintf(value, sizeof value, "without %d", i);
        renew_lease_in_bucket(bucket, value, &revision);
        await_lease_value_in_watch(value);
        start_server_of_cluster(i % SERVERS, port);
        /* The new server has to catch up, because two of three servers are needed when the next one
         * is killed. */
        sleep_for_ms(3000);
    }
    stop_cluster_and_client();
}

/* Two updates of one key at one revision, which are under way at once, and their results. */
static struct race {
    domus_address bucket;
    uint64_t revision;
    int answers, made;
    uint64_t made_revision;
} race;

static int record_result_of_update(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next, race.answers++) {
        if (answer->error == 0) {
            race.made++;
            race.made_revision = ((const domus_nats_kv_revision *)answer->payload)->revision;
        } else {
            ck_assert_int_eq(answer->error, -EEXIST);
        }
    }
    return 0;
}

static int send_two_racing_updates(domus_stack *stack, void *argument)
{
    for (int i = 0; i < 2; i++) {
        domus_nats_kv_put put = {
            .condition = DOMUS_NATS_KV_IF_REVISION, .revision = race.revision, .key = "leader"};
        ck_assert_int_eq(domus_slice_copy(i == 0 ? "a" : "b", 1, &put.value), 0);
        ck_assert_int_eq(
            domus_ask_add(stack, race.bucket, &domus_nats_kv_put_type, &put, 5 * DOMT_SECOND, 0),
            0);
    }
    return domus_wait_all(stack, record_result_of_update);
}

/* nats-server 2.9 checks the revision before the other servers have the change, so without the id
 * of a change both updates of most pairs are made. */
DOMT_TEST(one_of_two_racing_updates_succeeds)
{
    domus_outside_message message;

    if (!domt_tests_are_long())
        return;
    race.bucket = start_cluster_with_bucket(&race.revision);
    for (int i = 0; i < 300; i++) {
        race.answers = race.made = 0;
        ck_assert_int_ge(domus_outsider_act(js.user.outsider, send_two_racing_updates, NULL), 0);
        for (int k = 0; k < 6000 && race.answers < 2; k++)
            (void)domus_outside_receive(js.user.outsider, NULL, DOMT_SECOND / 1000, &message);
        ck_assert_int_eq(race.answers, 2);
        ck_assert_int_eq(race.made, 1);
        race.revision = race.made_revision;
    }
    stop_cluster_and_client();
}

DOMT_SUITE(300)
