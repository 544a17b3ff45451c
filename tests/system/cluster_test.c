/* The example `cluster`: a line said in a room on one node comes to guests on another node, a
 * counter is the same whichever node is asked, and it goes on elsewhere when its node is killed. */
#include "tests/support/crowd.h"
#include "tests/support/nats_server.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNTERS 8 /* so many counters that each node has some */

static domt_nats_server broker;
static domt_service nodes[2]; /* the nodes "a" and "b" */
static int guests[2];

static void send_line(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void start_node(int i, const char *down_after)
{
    char node[32], servers[96], down[64];

    snprintf(node, sizeof node, "cluster.node=%c", 'a' + i);
    snprintf(servers, sizeof servers, "cluster.servers=%s", broker.url);
    snprintf(down, sizeof down, "cluster.downAfter=%s", down_after);
    domt_service_start(&nodes[i],
                       (const char *const[]){DOMT_BIN_DIR "/cluster", "--config",
                                             DOMT_SOURCE_DIR "/examples/cluster/cluster.yaml",
                                             "--set", node, "--set", servers, "--set", down,
                                             "--set", "cluster.heartbeat=50ms", "--set",
                                             "listeners.guests.address=127.0.0.1:0", NULL});
    guests[i] = domt_connect_to_port(nodes[i].port);
}

/* Send one line to a node, and return its answer up to the line end, which is removed. The room has
 * to be quiet meanwhile. */
static void send_line_and_read_answer(int fd, const char *line, char *answer, size_t room)
{
    send_line(fd, line);
    size_t size = domt_read_until_text(fd, "\n", answer, room);
    ck_assert_uint_gt(size, 0);
    answer[size - 1] = '\0';
}

/* Send a line to a node again and again until its answer is this one. */
static void repeat_line_until_answer(int fd, const char *line, const char *wanted)
{
    char answer[512] = "";

    for (int i = 0; i < 1000 && strcmp(answer, wanted) != 0; i++) {
        domt_sleep_ms(i > 0 ? 10 : 0);
        send_line_and_read_answer(fd, line, answer, sizeof answer);
    }
    ck_assert_str_eq(answer, wanted);
}

/* Start two nodes, and wait until each knows of the other. */
static void start_nodes(const char *down_after)
{
    domt_nats_server_start(&broker, "jetstream { store_dir: \"js\" }", 0);
    start_node(0, down_after);
    start_node(1, down_after);
    repeat_line_until_answer(guests[0], "nodes\n", "a up (here), b up");
    repeat_line_until_answer(guests[1], "nodes\n", "b up (here), a up");
}

static void stop_node_and_its_guest(int i)
{
    close(guests[i]);
    domt_service_stop(&nodes[i]);
}

/* Add 1 to a counter, and repeat that until it succeeds. Returns the value, and the node of the
 * counter; failed tries may have counted, so `tries` counts them. */
static uint64_t add_to_counter(int guest, int counter, uint64_t *tries, char *ret_node)
{
    char line[32], answer[128];
    unsigned long value;

    snprintf(line, sizeof line, "add counter.%d\n", counter);
    for (int i = 0; i < 200; i++) {
        ++*tries;
        send_line_and_read_answer(guest, line, answer, sizeof answer);
        if (sscanf(answer, "%lu on %c", &value, ret_node) == 2)
            return value;
        ck_assert_msg(strncmp(answer, "error: ", 7) == 0, "%s", answer);
        domt_sleep_ms(10);
    }
    ck_abort_msg("counter %d: %s", counter, answer);
}

/* Add to a counter on both nodes until the same life of it has answered twice: counters that began
 * on node a while it was alone are moved. Returns the counter's node. */
static char add_on_both_until_same_node(int counter)
{
    uint64_t last = 0;
    char node[2] = {'a', 'b'};

    for (int i = 0; i < 100 && node[0] != node[1]; i++) {
        for (int on = 0; on < 2; on++) {
            uint64_t tries = 0, value = add_to_counter(guests[on], counter, &tries, &node[on]);
            ck_assert_uint_gt(value, last);
            ck_assert(last == 0 || value <= last + tries);
            last = value;
        }
    }
    ck_assert_int_eq(node[0], node[1]);
    return node[0];
}

DOMT_TEST(rooms_and_counters_are_over_both_nodes)
{
    char text[4096], places[COUNTERS + 1] = "";

    start_nodes("2s");
    for (int i = 0; i < 1000 && recv(guests[1], text, 1, MSG_PEEK | MSG_DONTWAIT) != 1; i++) {
        /* said again until node a knows of the guest on node b */
        repeat_line_until_answer(guests[0], "say knock\n", "lobby, a: knock");
        domt_sleep_ms(5);
    }
    repeat_line_until_answer(guests[0], "say hello\n", "lobby, a: hello");
    (void)domt_read_until_text(guests[1], "lobby, a: hello\n", text, sizeof text);
    repeat_line_until_answer(guests[1], "join garden\n", "garden");
    repeat_line_until_answer(guests[0], "say alone\n", "lobby, a: alone");
    repeat_line_until_answer(guests[1], "join cellar\n", "error: ENOENT");
    repeat_line_until_answer(guests[1], "sing\n", "what? try help");
    for (int i = 0; i < COUNTERS; i++)
        places[i] = add_on_both_until_same_node(i);
    ck_assert_msg(strchr(places, 'a') != NULL && strchr(places, 'b') != NULL, "%s", places);
    stop_node_and_its_guest(1);
    stop_node_and_its_guest(0);
    domt_nats_server_stop(&broker);
}

DOMT_TEST(counter_goes_on_when_its_node_is_killed)
{
    uint64_t tries = 0;
    char node, other;

    start_nodes("500ms");
    uint64_t last = add_to_counter(guests[0], 0, &tries, &node);
    int killed = node - 'a', left = 1 - killed;
    ck_assert(killed == 0 || killed == 1);
    domt_service_signal(&nodes[killed], SIGKILL);
    ck_assert_int_eq(domt_service_wait(&nodes[killed], 5000), 128 + SIGKILL);
    tries = 0;
    uint64_t next = add_to_counter(guests[left], 0, &tries, &other);
    ck_assert_int_eq(other, 'a' + left);
    ck_assert_uint_gt(next, last);
    ck_assert_uint_le(next, last + tries);
    repeat_line_until_answer(guests[left], "nodes\n",
                             left == 0 ? "a up (here), b down" : "b up (here), a down");
    close(guests[killed]);
    stop_node_and_its_guest(left);
    domt_nats_server_stop(&broker);
}

DOMT_SUITE(60)
