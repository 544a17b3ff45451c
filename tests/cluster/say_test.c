/* The lines of the log about a cluster: one when a node is up, down, up again, has left or has
 * begun anew, when this node has lost its servers and has one again, and when another node has its
 * name. The log gets few lines, however many nodes a stranger invents. */
#include "protocols/cluster/link.h"
#include "runtime/system/system.h"
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 512u
#define TYPES_MAX 16u /* number of types without a pickler that the log names (DOMI_TOLD_MAX) */

enum { A, B, NODES };

static struct {
    domus_testkit_cluster *sim;
    uint32_t numbers[NODES];
    domus_cluster *clusters[NODES];
    domt_member gossip; /* the client of a node that the test plays */
    char lines[LINES_MAX][DOMUS_LOG_TEXT_MAX + 1];
    domus_log_level levels[LINES_MAX];
    uint32_t count;
} world;

/* --- the log of node a -------------------------------------------------------------------------
 */

static void record_log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    ck_assert_uint_lt(world.count, LINES_MAX);
    world.levels[world.count] = level;
    snprintf(world.lines[world.count++], sizeof world.lines[0], "%s", text);
}

static void fail_and_print_log_lines(const char *part)
{
    for (uint32_t i = 0; i < world.count; i++)
        printf("  %s\n", world.lines[i]);
    ck_abort_msg("'%s' is not there once", part);
}

/* Check that exactly one logged line contains this part, and that it has this level. */
static void expect_one_log_line(domus_log_level level, const char *part)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < world.count; i++) {
        if (strstr(world.lines[i], part) == NULL)
            continue;
        found++;
        ck_assert_uint_eq(world.levels[i], level);
    }
    if (found != 1)
        fail_and_print_log_lines(part);
}

static uint32_t count_log_lines(const char *part)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < world.count; i++)
        found += strstr(world.lines[i], part) != NULL;
    return found;
}

/* Returns the seconds that follow this part in the last logged line that contains it. */
static double seconds_behind_text_in_log(const char *part)
{
    double seconds = -1;

    for (uint32_t i = 0; i < world.count; i++) {
        const char *at = strstr(world.lines[i], part);
        if (at != NULL)
            seconds = strtod(at + strlen(part), NULL);
    }
    return seconds;
}

/* --- a user ------------------------------------------------------------------------------------
 */

static const domus_type order_type = {.name = "say order"};
static const domus_type secret_type = {.name = "secret"};
static domus_type others[TYPES_MAX + 1]; /* types without a pickler, one more than the log names */

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_behaviour plain = {
    .name = "plain", .on = (const domus_on[]){{&secret_type, ignore_message, 0}, {NULL, NULL, 0}}};
static const domus_cluster_export exports[] = {{.name = "plain", .behaviour = &plain},
                                               {.name = NULL}};

static int send_notices_to_spawned(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domus_address far = ((const domus_cluster_spawned *)answer->payload)->address;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_notice(stack, far, &secret_type, NULL), 0);
    for (uint32_t i = 0; i < TYPES_MAX + 1; i++) {
        others[i].name = "other";
        ck_assert_int_eq(domus_notice(stack, far, &others[i], NULL), 0);
    }
    return 0;
}

static int on_order_spawn_on_node_b(domus_stack *stack, void *self, const void *payload)
{
    domus_node node;

    ck_assert_int_eq(domus_cluster_find_node(world.clusters[A], "b", &node), 0);
    return domus_cluster_spawn(stack, node, "plain", NULL, NULL, DOMT_SECOND,
                               send_notices_to_spawned);
}

static const domus_behaviour user = {
    .name = "user",
    .on = (const domus_on[]){{&order_type, on_order_spawn_on_node_b, 0}, {NULL, NULL, 0}}};

/* --- nodes -------------------------------------------------------------------------------------
 */

static domus_system *system_of_node(uint32_t node)
{
    return domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.numbers[node]));
}

static void open_cluster_of_node(uint32_t node, uint64_t seed)
{
    char error[200] = "";
    const domus_cluster_options options = {
        .name = "sim",
        .node = node == A ? "a" : "b",
        .heartbeat_ns = 100 * DOMT_MS,
        .down_after_ns = 600 * DOMT_MS,
        .exports = exports,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(world.sim, world.numbers[node]),
        .seed = seed,
    };

    if (node == A) /* the kit writes no log, so node a gets a log function of the test */
        system_of_node(A)->hooks.log = record_log_line;
    ck_assert_msg(domus_cluster_open(system_of_node(node), &options, error, sizeof error,
                                     &world.clusters[node]) == 0,
                  "%s", error);
}

static void set_up_nodes_and_server(uint32_t nodes, bool has_server)
{
    memset(&world, 0, sizeof world);
    world.sim = domt_cluster_new(7, NULL);
    if (!has_server)
        ck_assert_int_eq(domus_testkit_cluster_stop_server(world.sim, 0), 0);
    for (uint32_t node = A; node < nodes; node++) {
        ck_assert_int_eq(domus_testkit_cluster_add_node(world.sim, NULL, &world.numbers[node]), 0);
        open_cluster_of_node(node, 100 * (1 + node));
    }
    domt_pass_time(world.sim, 3 * DOMT_SECOND);
}

static void free_sim_and_clusters(void)
{
    domus_testkit_cluster_free(world.sim);
    for (uint32_t node = A; node < NODES; node++)
        domus_cluster_close(world.clusters[node]);
}

/* Send the heartbeat of an invented node that hears node a. */
static void send_heartbeat_of_made_up_node(uint64_t id, const char *name, uint64_t incarnation)
{
    domi_heartbeat beat = {.id = id,
                           .incarnation = incarnation,
                           .gateways = 1,
                           .state = DOMI_BEAT_UP,
                           .heard_count = 1};
    const uint64_t heard[] = {domus_cluster_here(world.clusters[A]).id};
    unsigned char bytes[DOMI_HEARTBEAT_MAX];

    snprintf(beat.name, sizeof beat.name, "%s", name);
    domt_member_publish_bytes(&world.gossip, "dm.sim.b", bytes,
                              domi_heartbeat_write(&beat, heard, bytes));
}

/* --- tests -------------------------------------------------------------------------------------
 */

DOMT_TEST(each_change_of_a_node_has_a_log_line)
{
    set_up_nodes_and_server(2, true);
    expect_one_log_line(DOMUS_LOG_INFO, "cluster sim: node a has a server");
    expect_one_log_line(DOMUS_LOG_INFO, "cluster sim: node b is up");
    ck_assert_uint_eq(world.count, 2);
    ck_assert_int_eq(domus_testkit_cluster_cut(world.sim, world.numbers[B], DOMUS_EVERY,
                                               DOMUS_BOTH_WAYS, DOMUS_CUT_LOSES),
                     0);
    domt_pass_time(world.sim, 2 * DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_WARNING, "cluster sim: node b is down: for 0.6 s it was silent");
    ck_assert_int_eq(
        domus_testkit_cluster_heal(world.sim, world.numbers[B], DOMUS_EVERY, DOMUS_BOTH_WAYS), 0);
    domt_pass_time(world.sim, 5 * DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_INFO, "cluster sim: node b is up again, after ");
    double seconds = seconds_behind_text_in_log("node b is up again, after ");
    ck_assert_msg(seconds > 1.3 && seconds < 4, "%f", seconds);
    domus_cluster_leave(world.clusters[B]);
    domt_pass_time(world.sim, DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_INFO, "cluster sim: node b has left");
    ck_assert_uint_eq(world.count, 5);
    free_sim_and_clusters();
}

DOMT_TEST(node_that_begins_anew_is_logged_as_ended_and_as_up)
{
    set_up_nodes_and_server(2, true);
    ck_assert_int_eq(domus_testkit_cluster_crash(world.sim, world.numbers[B], false), 0);
    domus_cluster_close(world.clusters[B]);
    ck_assert_int_eq(domus_testkit_cluster_start(world.sim, world.numbers[B]), 0);
    open_cluster_of_node(B, 300);
    domt_pass_time(world.sim, 2 * DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_INFO, "node b has ended: its program has begun anew");
    ck_assert_uint_eq(count_log_lines("node b is up"), 2);
    ck_assert_uint_eq(world.count, 4);
    free_sim_and_clusters();
}

/* A node that has no servers does not log that other nodes are down. */
DOMT_TEST(node_says_that_it_is_alone_and_that_it_is_back)
{
    set_up_nodes_and_server(2, true);
    for (uint32_t i = 1; i <= 2; i++) {
        ck_assert_int_eq(domus_testkit_cluster_stop_server(world.sim, 0), 0);
        domt_pass_time(world.sim, 5 * DOMT_SECOND);
        ck_assert_uint_eq(
            count_log_lines("node a has lost its servers: it goes on for its own actors"), i);
        ck_assert_uint_eq(count_log_lines("server again"), i - 1);
        ck_assert_int_eq(domus_testkit_cluster_start_server(world.sim, 0), 0);
        domt_pass_time(world.sim, 5 * DOMT_SECOND);
        ck_assert_uint_eq(count_log_lines("node a has a server again, after "), i);
        double seconds = seconds_behind_text_in_log("node a has a server again, after ");
        ck_assert_msg(seconds > 4.8 && seconds < 8, "%f", seconds);
    }
    ck_assert_uint_eq(world.count, 6);
    ck_assert_int_eq(domus_testkit_cluster_crash(world.sim, world.numbers[B], false), 0);
    domt_pass_time(world.sim, DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_WARNING, "node b is down");
    free_sim_and_clusters();
}

DOMT_TEST(node_that_finds_no_server_says_so_once)
{
    set_up_nodes_and_server(1, false);
    expect_one_log_line(DOMUS_LOG_WARNING, "node a finds no server: it goes on for its own actors");
    domt_pass_time(world.sim, 5 * DOMT_SECOND);
    ck_assert_uint_eq(world.count, 1);
    ck_assert_int_eq(domus_testkit_cluster_start_server(world.sim, 0), 0);
    domt_pass_time(world.sim, 5 * DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_INFO, "node a has a server");
    ck_assert_uint_eq(world.count, 2);
    free_sim_and_clusters();
}

/* Returns the state of its servers that node a shows in its table of figures. */
static const char *server_shown_by_node_a(void)
{
    const domus_figures_table *at = domus_figures_at(system_of_node(A), 0);
    domus_figures_shot shot;

    ck_assert(strcmp(at->name, "here") == 0 && strcmp(at->columns[3].name, "server") == 0);
    ck_assert_int_eq(domus_figures_read(system_of_node(A), 0, 0, 1, &shot), 0);
    const char *word = at->columns[3].words[domus_figures_cell(&shot, 0, 3)->number];
    domus_figures_free(&shot);
    return word;
}

DOMT_TEST(another_node_of_the_same_name_is_logged)
{
    set_up_nodes_and_server(1, true);
    domt_member_add_with_client(world.sim, NULL, &world.gossip);
    domt_pass_time(world.sim, DOMT_SECOND);
    for (uint32_t i = 0; i < 10; i++) {
        send_heartbeat_of_made_up_node(77, "a", 1);
        domt_pass_time(world.sim, 100 * DOMT_MS);
    }
    expect_one_log_line(DOMUS_LOG_WARNING, "another node has the name of this one, a");
    ck_assert_str_eq(server_shown_by_node_a(), "connected");
    for (uint32_t i = 0; i < 10; i++) {
        send_heartbeat_of_made_up_node(78, "a", UINT64_MAX);
        domt_pass_time(world.sim, 100 * DOMT_MS);
    }
    expect_one_log_line(DOMUS_LOG_WARNING, "another program has begun later as node a");
    ck_assert_str_eq(server_shown_by_node_a(), "replaced");
    free_sim_and_clusters();
}

/* Check that the last logged line about each of these nodes, if there is one, says that it is
 * down. */
static void check_last_lines_say_down(uint32_t nodes)
{
    char name[32];

    for (uint32_t i = 0; i < nodes; i++) {
        const char *last = NULL;
        snprintf(name, sizeof name, "node x%u is ", i);
        for (uint32_t k = 0; k < world.count; k++) {
            if (strstr(world.lines[k], name) != NULL)
                last = world.lines[k];
        }
        ck_assert_msg(last == NULL || strstr(last, " is down") != NULL, "%s", last);
    }
}

DOMT_TEST(nodes_that_come_and_go_cannot_fill_the_log)
{
    char name[32];

    set_up_nodes_and_server(1, true);
    domt_member_add_with_client(world.sim, NULL, &world.gossip);
    domt_pass_time(world.sim, 30 * DOMT_SECOND);
    /* each invented node is up for a moment, and down after 0.6 s */
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 60; i++) {
            snprintf(name, sizeof name, "x%u", i);
            send_heartbeat_of_made_up_node(1000 + i, name, 1);
        }
        domt_pass_time(world.sim, DOMT_SECOND);
    }
    ck_assert_uint_ge(world.count, 30);
    ck_assert_uint_le(world.count, 2 + 32 + 1 + 6);
    expect_one_log_line(DOMUS_LOG_WARNING, "nodes change too fast for the log");
    uint32_t before = world.count;
    domt_pass_time(world.sim, 10 * DOMT_SECOND);
    ck_assert_uint_le(world.count - before, 11);
    domt_pass_time(world.sim, 30 * DOMT_SECOND);
    check_last_lines_say_down(60);
    free_sim_and_clusters();
}

DOMT_TEST(type_without_a_pickler_is_logged_once)
{
    domus_address address;

    set_up_nodes_and_server(2, true);
    ck_assert_int_eq(domus_outside_spawn(system_of_node(A), &user, NULL, &address), 0);
    ck_assert_int_eq(domus_outside_notice(system_of_node(A), address, &order_type, NULL), 0);
    domt_pass_time(world.sim, DOMT_SECOND);
    expect_one_log_line(DOMUS_LOG_WARNING,
                        "a message of type secret could not leave for another node: it "
                        "has no pickler, ENOENT");
    ck_assert_uint_eq(count_log_lines("a message of type other could not leave"), TYPES_MAX - 1);
    ck_assert_uint_eq(domus_cluster_count(world.clusters[A]).refused, 3 + TYPES_MAX + 1);
    ck_assert_uint_eq(world.count, 2 + TYPES_MAX);
    free_sim_and_clusters();
}

DOMT_SUITE(60)
