/* A bucket with three replicas works while each of its servers is killed once: a lease stays with
 * its holder, and a watch reports each change. And of two updates at one revision that are under
 * way at the same time, one is made. The tests take half a minute, so only the long form runs
 * them. */
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
static domt_js_server js; /* all but `js.server` is used: the servers are those of `servers` */

static void start_server(int i, uint16_t port)
{
    char config[600];

    snprintf(config, sizeof config,
             "server_name: n%d\njetstream { store_dir: \"%s/%d\" }\ncluster { name: c, listen: "
             "\"127.0.0.1:%u\", routes: [ \"nats://127.0.0.1:%u\", \"nats://127.0.0.1:%u\", "
             "\"nats://127.0.0.1:%u\" ] }",
             i, js.store, i, routes[i], routes[0], routes[1], routes[2]);
    domt_nats_server_start(&servers[i], config, port);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Renew the lease. An update whose answer was lost may have been made, so the entry is read. */
static void renew_lease(domus_address bucket, const char *value, uint64_t *revision)
{
    uint64_t until_ms = now_ms() + 30000;

    while (now_ms() < until_ms) {
        domus_nats_kv_entry entry;
        int error = domt_js_server_put_entry(&js, bucket, "leader", value, DOMUS_NATS_KV_PUT,
                                             DOMUS_NATS_KV_IF_REVISION, *revision, revision);
        if (error == 0)
            return;
        if (domt_js_server_get_entry(&js, bucket, "leader", 0, &entry) == 0) {
            bool is_made = domt_slice_has_text(domus_nats_kv_value(&entry), value);
            ck_assert(is_made || entry.revision == *revision); /* no other holder has the lease */
            if (is_made)
                *revision = entry.revision;
            domus_slice_free(entry.bytes);
            if (is_made)
                return;
        }
        pause_ms(50);
    }
    ck_abort_msg("the lease cannot be renewed");
}

/* Receive changes until the value of the lease is this one. */
static void await_lease_value(const char *value)
{
    for (;;) {
        const domus_nats_kv_entry *entry =
            domt_js_server_receive_notice(&js, &domus_nats_kv_entry_type, 30 * DOMT_SECOND);
        if (domt_slice_has_text(domus_nats_kv_value(entry), value))
            return;
    }
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    return remove(path);
}

static domus_address set_up(uint64_t *ret_revision)
{
    static char urls[200];
    const domus_nats_kv_config config = {.replicas = 3};
    const domus_nats_kv_options options = {.bucket = "leases", .create = &config};

    snprintf(js.store, sizeof js.store, "/tmp/domus-js-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(js.store));
    for (int i = 0; i < SERVERS; i++)
        routes[i] = domt_find_free_port();
    for (int i = 0; i < SERVERS; i++)
        start_server(i, 0);
    snprintf(urls, sizeof urls, "%s, %s, %s", servers[0].url, servers[1].url, servers[2].url);
    domt_nats_user_start_system(&js.user, &(domus_nats_options){.servers = urls,
                                                                .request_timeout_ns = DOMT_SECOND,
                                                                .backoff_max_ns = DOMT_SECOND / 5});
    domus_address bucket = domt_js_server_open_bucket(&js, &options);
    for (int i = 0; i < 300; i++) { /* repeat until the servers have found each other */
        int error = domt_js_server_put_entry(&js, bucket, "leader", "begin", DOMUS_NATS_KV_PUT,
                                             DOMUS_NATS_KV_ALWAYS, 0, ret_revision);
        if (error == 0)
            return bucket;
        pause_ms(100);
    }
    ck_abort_msg("the servers do not make a bucket");
}

static void tear_down(void)
{
    domt_nats_user_stop_system(&js.user);
    for (int i = 0; i < SERVERS; i++)
        domt_nats_server_stop(&servers[i]);
    ck_assert_int_eq(nftw(js.store, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

DOMT_TEST(lease_and_watch_live_through_the_end_of_each_server)
{
    domus_nats_kv_watch watch = {.heartbeat_ns = DOMT_SECOND / 5};
    uint64_t revision = 0;
    char value[32];

    if (!domt_tests_are_long())
        return;
    js.ask_ns = DOMT_SECOND / 2;
    domus_address bucket = set_up(&revision);
    ck_assert_int_eq(
        domt_js_server_ask_actor(&js, bucket, &domus_nats_kv_watch_type, &watch, NULL, 0), 0);
    await_lease_value("begin");
    (void)domt_js_server_receive_notice(&js, &domus_nats_kv_initial_type, 5 * DOMT_SECOND);
    for (int i = 0; i < 2 * SERVERS; i++) {
        uint16_t port = servers[i % SERVERS].port;
        domt_nats_server_stop(&servers[i % SERVERS]); /* kill the server without warning */
        snprintf(value, sizeof value, "without %d", i);
        renew_lease(bucket, value, &revision);
        await_lease_value(value);
        start_server(i % SERVERS, port);
        /* the server catches up, because two of three are needed when the next one ends */
        pause_ms(3000);
    }
    tear_down();
}

/* Two updates at one revision, and their results. */
static struct race {
    domus_address bucket;
    uint64_t revision;
    int answers, made;
    uint64_t made_revision;
} race;

static int record_result(domus_stack *stack, void *self, const domus_answer *answer)
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

static int start_updates(domus_stack *stack, void *argument)
{
    for (int i = 0; i < 2; i++) {
        domus_nats_kv_put put = {
            .condition = DOMUS_NATS_KV_IF_REVISION, .revision = race.revision, .key = "leader"};
        ck_assert_int_eq(domus_slice_copy(i == 0 ? "a" : "b", 1, &put.value), 0);
        ck_assert_int_eq(
            domus_ask_add(stack, race.bucket, &domus_nats_kv_put_type, &put, 5 * DOMT_SECOND, 0),
            0);
    }
    return domus_wait_all(stack, record_result);
}

/* nats-server 2.9 checks the revision before the other servers have the change, so without the id
 * of a change both updates of most pairs are made. */
DOMT_TEST(one_of_two_updates_at_one_revision_is_made)
{
    domus_outside_message message;

    if (!domt_tests_are_long())
        return;
    race.bucket = set_up(&race.revision);
    for (int i = 0; i < 300; i++) {
        race.answers = race.made = 0;
        ck_assert_int_ge(domus_outsider_act(js.user.outsider, start_updates, NULL), 0);
        for (int k = 0; k < 6000 && race.answers < 2; k++)
            (void)domus_outside_receive(js.user.outsider, NULL, DOMT_SECOND / 1000, &message);
        ck_assert_int_eq(race.answers, 2);
        ck_assert_int_eq(race.made, 1);
        race.revision = race.made_revision;
    }
    tear_down();
}

DOMT_SUITE(300)
