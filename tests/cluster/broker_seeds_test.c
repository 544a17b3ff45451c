/* For many seeds, with the faults that each one draws: the same seed makes the same run; within one
 * connection of the receiver no message comes twice, and messages of one connection of the sender
 * keep their order; and each loss is reported.
 *
 * When the receiver has connected to another server, a message may come later, or again: it may
 * have waited on the route to that server. The same holds for nats-server. */
#include "tests/cluster/broker.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MEMBERS  4u
#define SERVERS  3u
#define ROUNDS   60u
#define MESSAGES 400u /* largest number of messages that a run publishes */

#define CONNECTIONS 256u /* largest number of connections that a node makes in a run */

/* The state of a run. A message is known by the number that the simulated cluster gives it. */
struct run {
    domus_testkit_cluster *cluster;
    domt_member members[MEMBERS];
    domi_random random;
    bool breaks; /* true: the run draws faults that break connections */
    uint32_t published[MEMBERS];
    uint32_t kits[MEMBERS]; /* number of kits that each node has had, one more after each crash */
    /* The last number that a receiver has heard from a sender, for each connection of the
     * sender. */
    int last[MEMBERS][MEMBERS][CONNECTIONS];
    uint64_t connects[MEMBERS]; /* for each member, its number of connects when it last received */
    uint32_t held;              /* number of received messages whose order was checked */
    bool heard[MEMBERS][MEMBERS][MESSAGES];
    bool is_down[MEMBERS];
    bool is_suspended[MEMBERS];
    /* for each message and receiver, the bits of its deliveries and losses */
    uint8_t fates[MESSAGES][MEMBERS];
    /* for each message, the node that published it, plus 1; 0: not published yet */
    uint32_t publisher[MESSAGES];
    char *trace;
    uint64_t digest;
    domus_testkit_cluster_counts counts;
};

static void record_fate_of_message(void *context, const domus_testkit_happening *happening)
{
    struct run *run = context;
    uint64_t number = happening->number;

    if (number >= MESSAGES || strcmp(happening->subject, "all") != 0)
        return;
    switch (happening->fate) {
    case DOMUS_FATE_PUBLISHED:
        run->publisher[number] = happening->node + 1;
        return;
    case DOMUS_FATE_DELIVERED:
    case DOMUS_FATE_LOST_DOWN:
    case DOMUS_FATE_LOST_MAILBOX:
        run->fates[number][happening->node]++;
        return;
    case DOMUS_FATE_LOST_WAITING:
    case DOMUS_FATE_LOST_UP:
        for (uint32_t i = 0; i < MEMBERS; i++)
            run->fates[number][i]++;
        return;
    default:
        return;
    }
}

/* Record a number that a member has received. If `holds` is true, the number has to be greater than
 * the last one. */
static void check_and_record_number(struct run *run, uint32_t index, const char *text, bool holds)
{
    uint32_t from, connection;
    int number;

    ck_assert_int_eq(sscanf(text, "%u %u %d", &from, &connection, &number), 3);
    int *last = &run->last[index][from][connection];
    ck_assert_msg(!holds || number > *last, "%u has heard %d of %u behind %d", index, number, from,
                  *last);
    *last = number;
    ck_assert_msg(!run->heard[index][from][number], "%u has heard %d of %u twice", index, number,
                  from);
    run->heard[index][from][number] = true;
}

static void receive_numbers_of_member(struct run *run, uint32_t index)
{
    static char texts[MESSAGES][32];
    domt_member *member = &run->members[index];
    domus_nats_message message;
    uint32_t count = 0;

    while (domus_probe_expect(member->probe, &domus_nats_message_type, 0, &message) == 0) {
        ck_assert_uint_lt(count, MESSAGES);
        snprintf(texts[count++], sizeof texts[0], "%.31s",
                 domt_copy_and_free_message(&message).payload);
    }
    uint64_t connects = domt_status_of_member(member).connects;
    bool is_same = connects == run->connects[index];
    run->connects[index] = connects;
    if (!is_same) {
        memset(run->last[index], 0xff, sizeof run->last[index]);
        memset(run->heard[index], 0, sizeof run->heard[index]);
    }
    for (uint32_t i = 0; i < count; i++)
        check_and_record_number(run, index, texts[i], is_same);
    run->held += is_same ? count : 0;
}

static uint64_t random_below(struct run *run, uint64_t n)
{
    return domi_random_below(&run->random, n);
}

static void publish_from_random_member(struct run *run)
{
    uint32_t from = (uint32_t)random_below(run, MEMBERS);
    char text[32];

    if (run->is_down[from] || run->is_suspended[from])
        return;
    /* A message that is published while there is no connection goes over the next connection. */
    receive_numbers_of_member(run, from);
    domus_nats_status status = domt_status_of_member(&run->members[from]);
    uint32_t connection = 32 * run->kits[from] + (uint32_t)status.connects + !status.connected;
    ck_assert_uint_lt(connection, CONNECTIONS);
    snprintf(text, sizeof text, "%u %u %u", from, connection, run->published[from]++);
    domt_member_publish(&run->members[from], "all", NULL, text);
}

/* Draw a fault that breaks no connection: slow or lossy legs, or short cuts. */
static void draw_mild_fault(struct run *run)
{
    uint32_t node = run->members[random_below(run, MEMBERS)].node;
    domus_testkit_ways ways = (domus_testkit_ways)(1 + random_below(run, 3));
    const domus_testkit_leg leg = {.latency_ns = 1000 + random_below(run, 5 * DOMT_MS),
                                   .jitter_ns = random_below(run, 5 * DOMT_MS),
                                   .loss_ppm = (uint32_t)random_below(run, 200000)};

    switch (random_below(run, 4)) {
    case 0:
        domus_testkit_cluster_set_leg(run->cluster, node, DOMUS_EVERY, ways, &leg);
        return;
    case 1:
        domus_testkit_cluster_cut(run->cluster, node, DOMUS_EVERY, ways,
                                  (domus_testkit_cut)(1 + random_below(run, 2)));
        return;
    default:
        domus_testkit_cluster_heal(run->cluster, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS);
        return;
    }
}

static void crash_or_start_member(struct run *run, uint32_t index)
{
    domt_member *member = &run->members[index];

    if (run->is_suspended[index])
        return;
    if (!run->is_down[index]) {
        receive_numbers_of_member(run, index);
        ck_assert_int_eq(
            domus_testkit_cluster_crash(run->cluster, member->node, random_below(run, 2)), 0);
        run->is_down[index] = true;
        return;
    }
    ck_assert_int_eq(domus_testkit_cluster_start(run->cluster, member->node), 0);
    domt_member_start_client(member);
    domt_member_subscribe(member, "all", NULL);
    run->kits[index]++;
    run->connects[index] = 0;
    run->is_down[index] = false;
}

static void suspend_or_resume_member(struct run *run, uint32_t index)
{
    uint32_t node = run->members[index].node;

    if (run->is_down[index])
        return;
    if (run->is_suspended[index])
        ck_assert_int_eq(domus_testkit_cluster_resume(run->cluster, node,
                                                      (domus_testkit_clock)random_below(run, 2)),
                         0);
    else
        ck_assert_int_eq(domus_testkit_cluster_suspend(run->cluster, node), 0);
    run->is_suspended[index] = !run->is_suspended[index];
}

/* Draw a fault that may break connections, or heal what is broken. */
static void draw_hard_fault(struct run *run)
{
    uint32_t index = (uint32_t)random_below(run, MEMBERS);
    uint32_t server = (uint32_t)random_below(run, SERVERS);

    switch (random_below(run, 8)) {
    case 0:
        if (domus_testkit_cluster_stop_server(run->cluster, server) != 0)
            domus_testkit_cluster_start_server(run->cluster, server);
        return;
    case 1:
        domus_testkit_cluster_cut_route(run->cluster, server, DOMUS_EVERY);
        return;
    case 2:
        domus_testkit_cluster_heal_route(run->cluster, server, DOMUS_EVERY);
        return;
    case 3:
        domus_testkit_cluster_disconnect(run->cluster, run->members[index].node,
                                         random_below(run, DOMT_SECOND));
        return;
    case 4:
        domus_testkit_cluster_drop_slow(run->cluster, run->members[index].node);
        return;
    case 5:
        crash_or_start_member(run, index);
        return;
    case 6:
        suspend_or_resume_member(run, index);
        return;
    default:
        domt_pass_time(run->cluster, random_below(run, 3 * DOMT_SECOND));
        return;
    }
}

/* Heal all faults, and let all messages arrive or be lost. */
static void heal_faults_and_settle(struct run *run)
{
    const domus_testkit_leg leg = {0};

    domus_testkit_cluster_heal(run->cluster, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS);
    domus_testkit_cluster_set_leg(run->cluster, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS, &leg);
    for (uint32_t server = 0; server < SERVERS; server++) {
        (void)domus_testkit_cluster_start_server(run->cluster, server);
        domus_testkit_cluster_heal_route(run->cluster, server, DOMUS_EVERY);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (run->is_suspended[i])
            suspend_or_resume_member(run, i);
        if (run->is_down[i])
            crash_or_start_member(run, i);
    }
    domt_pass_time(run->cluster, 20 * DOMT_SECOND);
    for (uint32_t i = 0; i < MEMBERS; i++)
        receive_numbers_of_member(run, i);
}

/* Check that the counts of messages fit together when none is under way. */
static void check_sum_of_message_counts(const struct run *run)
{
    const domus_testkit_cluster_counts *counts = &run->counts;

    ck_assert_uint_eq(counts->published, counts->lost_waiting + counts->lost_up + counts->arrived);
    ck_assert_uint_eq(counts->copies,
                      counts->delivered + counts->lost_down + counts->lost_mailbox + counts->ended);
}

static void run_simulation_of_seed(struct run *run, uint64_t seed, bool breaks)
{
    domus_testkit_cluster_options options = {.servers = SERVERS};

    memset(run, 0, sizeof *run);
    memset(run->last, 0xff, sizeof run->last);
    run->breaks = breaks;
    domi_random_init(&run->random, seed);
    run->cluster = domt_cluster_new_with_members(seed, &options, MEMBERS, run->members);
    domus_testkit_cluster_observe(run->cluster, record_fate_of_message, run);
    for (uint32_t i = 0; i < MEMBERS; i++)
        domt_member_subscribe(&run->members[i], "all", NULL);
    domt_pass_time(run->cluster, 20 * DOMT_MS);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint64_t count = random_below(run, 6); count != 0; count--)
            publish_from_random_member(run);
        if (random_below(run, 2) == 0)
            draw_mild_fault(run);
        else if (breaks)
            draw_hard_fault(run);
        domt_pass_time(run->cluster, random_below(run, 20 * DOMT_MS));
        for (uint32_t i = 0; i < MEMBERS; i++) {
            if (!run->is_down[i])
                receive_numbers_of_member(run, i);
        }
    }
    heal_faults_and_settle(run);
    run->counts = domus_testkit_cluster_count(run->cluster);
    run->digest = domus_testkit_cluster_digest(run->cluster);
    run->trace = strdup(domus_testkit_cluster_trace(run->cluster));
    for (uint32_t i = 0; i < MEMBERS; i++) { /* each kit has a trace of its own */
        const char *text = domus_testkit_trace(run->members[i].kit);
        for (; *text != '\0'; text++)
            run->digest = run->digest * 31 + (unsigned char)*text;
    }
    domus_testkit_cluster_free(run->cluster);
    check_sum_of_message_counts(run);
}

static int run_seed_twice_and_compare(uint64_t seed, void *context)
{
    static struct run first, second;
    uint64_t *digests = context;

    run_simulation_of_seed(&first, seed, true);
    run_simulation_of_seed(&second, seed, true);
    ck_assert_msg(strcmp(first.trace, second.trace) == 0, "two traces of seed %llu",
                  (unsigned long long)seed);
    ck_assert_uint_eq(first.digest, second.digest);
    ck_assert_mem_eq(&first.counts, &second.counts, sizeof first.counts);
    ck_assert_uint_ne(first.digest, digests[0]);
    digests[0] = first.digest;
    free(first.trace);
    free(second.trace);
    return 0;
}

DOMT_TEST(same_seed_is_the_same_run)
{
    uint64_t last = 0;

    ck_assert_int_eq(
        domus_testkit_sweep(1, DOMT_SCALE(100, 10), run_seed_twice_and_compare, &last, NULL), 0);
}

static int run_seed_with_hard_faults(uint64_t seed, void *context)
{
    static struct run run;
    domus_testkit_cluster_counts *sum = context;

    run_simulation_of_seed(&run, seed, true);
    free(run.trace);
    sum->delivered += run.counts.delivered;
    sum->lost_up += run.counts.lost_up;
    sum->lost_down += run.counts.lost_down;
    sum->lost_route += run.counts.lost_route;
    sum->disconnects += run.counts.disconnects;
    sum->lost_waiting += run.counts.lost_waiting;
    sum->arrived += run.held;
    return 0;
}

DOMT_TEST(no_message_comes_twice_or_overtakes_whatever_breaks)
{
    domus_testkit_cluster_counts sum = {0};

    ck_assert_int_eq(domus_testkit_sweep(1000, DOMT_SCALE(domt_tenfold_if_tests_are_long(200), 20),
                                         run_seed_with_hard_faults, &sum, NULL),
                     0);
    if (getenv("DOMUS_SEED") != NULL || DOMT_SANITIZED)
        return;
    /* all runs together publish many messages, and have losses of every kind */
    ck_assert_uint_ge(sum.delivered, 10000);
    ck_assert_uint_ge(sum.arrived, 5000); /* the order of 5000 messages was checked */
    ck_assert_uint_ge(sum.lost_up, 100);
    ck_assert_uint_ge(sum.lost_down, 100);
    ck_assert_uint_ge(sum.lost_route, 10);
    ck_assert_uint_ge(sum.lost_waiting, 1);
    ck_assert_uint_ge(sum.disconnects, 100);
}

static int run_seed_with_mild_faults(uint64_t seed, void *context)
{
    static struct run run;

    run_simulation_of_seed(&run, seed, false);
    free(run.trace);
    ck_assert_uint_eq(run.counts.disconnects, 0);
    for (uint32_t number = 0; number < MESSAGES; number++) {
        for (uint32_t i = 0; run.publisher[number] != 0 && i < MEMBERS; i++)
            ck_assert_msg(run.fates[number][i] == 1, "seed %llu: %u has %u fates at %u",
                          (unsigned long long)seed, number, run.fates[number][i], i);
    }
    return 0;
}

DOMT_TEST(each_copy_is_delivered_or_told_as_lost)
{
    ck_assert_int_eq(domus_testkit_sweep(1, DOMT_SCALE(domt_tenfold_if_tests_are_long(200), 20),
                                         run_seed_with_mild_faults, NULL, NULL),
                     0);
}

static double cpu_seconds_of_process(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

DOMT_TEST(simulation_of_a_broker_takes_little_cpu_time)
{
    domus_testkit_cluster_options options = {.servers = 3};
    domt_member members[8];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(1, &options, 8, members);
    char subject[8];

    for (uint32_t i = 0; i < 8; i++) {
        snprintf(subject, sizeof subject, "to.%u", i);
        domt_member_subscribe(&members[i], subject, NULL);
    }
    domt_pass_time(cluster, 20 * DOMT_MS);
    double before = cpu_seconds_of_process();
    for (uint32_t i = 0; i < 20000; i++) {
        domus_nats_message message;
        snprintf(subject, sizeof subject, "to.%u", i * 3 % 8);
        domt_member_publish(&members[i % 8], subject, NULL,
                            "0123456789012345678901234567890123456789");
        domt_pass_time(cluster, 20000);
        while (domus_probe_expect(members[i * 3 % 8].probe, &domus_nats_message_type, 0,
                                  &message) == 0)
            domus_slice_free(message.bytes);
    }
    domt_pass_time(cluster, 20 * DOMT_MS);
    double rate = 20000 / (cpu_seconds_of_process() - before);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).delivered, 20000);
    domus_testkit_cluster_free(cluster);
    printf("%.0f messages a second of CPU time\n", rate);
    if (!DOMT_SANITIZED)
        ck_assert_msg(rate >= 10000, "%.0f messages a second", rate);
}

DOMT_SUITE(120)
