/* Two sets of connections, one to each server. The lines go to redis-server first, and then to kv,
 * and after every line the test compares what each client has received from both.
 *
 * The test does not wait for silence. redis-server has one thread, so when it has answered twice on
 * another connection, it has read the line, and written everything that follows from it. The
 * service kv has done the same when it has written as much, and counts as many clients, and as many
 * that wait. */
#include "tests/system/dialogue.h"

#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS   26
#define TIMED_MS  400   /* ms after which redis-server has noticed that a command's time is over */
#define SILENT_MS 20    /* ms in which kv handles a line that gets no answer */
#define SURE_MS   10000 /* ms within which both servers give the same answer */

struct side {
    uint16_t port;
    int control;      /* a further connection, on which the test asks the server for its figures */
    int fds[CLIENTS]; /* connections of the clients by letter; 0: not connected */
    size_t sizes[CLIENTS];
    char heard[CLIENTS][DOMT_REPLY_MAX];
};

static struct side redis, kv;

/* Read bytes that come on any connection of a client within `ms`. Returns false if none came. */
static bool read_bytes_of_clients(struct side *side, int ms)
{
    struct pollfd polls[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        polls[i] = (struct pollfd){.fd = side->fds[i] != 0 ? side->fds[i] : -1, .events = POLLIN};
    if (poll(polls, CLIENTS, ms) <= 0)
        return false;
    for (int i = 0; i < CLIENTS; i++) {
        if ((polls[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0)
            continue;
        char *to = side->heard[i] + side->sizes[i];
        ssize_t got = recv(side->fds[i], to, DOMT_REPLY_MAX - side->sizes[i] - 1, 0);
        if (got <= 0) {
            close(side->fds[i]);
            side->fds[i] = 0;
            got = snprintf(to, 16, "<closed>");
        }
        side->sizes[i] += (size_t)got;
        side->heard[i][side->sizes[i]] = '\0';
    }
    return true;
}

static void send_line(struct side *side, const char *line)
{
    int i = line[0] - 'a';
    char text[2048];

    if (side->fds[i] == 0)
        side->fds[i] = domt_connect_to_port(side->port);
    snprintf(text, sizeof text, "%s", line + 2);
    if (strcmp(text, "CLOSE") == 0) {
        close(side->fds[i]);
        side->fds[i] = 0;
        return;
    }
    for (char *rest = NULL, *command = strtok_r(text, ";", &rest); command != NULL;
         command = strtok_r(NULL, ";", &rest))
        domt_resp_send_command(side->fds[i], command);
}

/* Wait until redis-server has handled all lines that it was sent. */
static void await_redis_has_handled_all(void)
{
    for (int i = 0; i < 2; i++)
        domt_resp_expect_trace(redis.control, "PING", "+PONG\r\n");
    while (read_bytes_of_clients(&redis, 0))
        ;
}

#define FIGURES 2

/* Read how many clients the server counts, and how many of them wait. */
static void read_client_counts_of_server(int control, long figures[FIGURES])
{
    static const char *const names[] = {"connected_clients:", "blocked_clients:"};
    char text[DOMT_REPLY_MAX];

    (void)domt_resp_ask_for_reply(control, "INFO clients", text);
    for (int i = 0; i < FIGURES; i++) {
        const char *at = strstr(text, names[i]);
        ck_assert_msg(at != NULL, "%s", text);
        figures[i] = strtol(at + strlen(names[i]), NULL, 10);
    }
}

static long
    /* differences between the figures of kv and redis-server before the dialogue, because other
     * clients are there */
    more[FIGURES];

/* Returns true if some client has received more from one server than from the other, or if the
 * servers count different numbers of clients or of waiting ones. */
static bool do_answers_or_client_counts_differ(void)
{
    long of_redis[FIGURES], of_kv[FIGURES];

    for (int i = 0; i < CLIENTS; i++) {
        if (kv.sizes[i] != redis.sizes[i])
            return true;
    }
    read_client_counts_of_server(redis.control, of_redis);
    read_client_counts_of_server(kv.control, of_kv);
    for (int i = 0; i < FIGURES; i++) {
        if (of_kv[i] - of_redis[i] != more[i])
            return true;
    }
    return false;
}

static void compare_answers(const char *line)
{
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_msg(
            kv.sizes[i] == redis.sizes[i] && memcmp(kv.heard[i], redis.heard[i], kv.sizes[i]) == 0,
            "%s\n client %c\n kv:    %s\n redis: %s", line, 'a' + i, kv.heard[i], redis.heard[i]);
        kv.sizes[i] = redis.sizes[i] = 0;
        kv.heard[i][0] = redis.heard[i][0] = '\0';
    }
}

static void close_clients_of_side(struct side *side)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (side->fds[i] != 0)
            close(side->fds[i]);
        side->fds[i] = 0;
    }
    close(side->control);
}

/* Returns true if redis-server has sent nothing to any client. */
static bool is_redis_silent(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (redis.sizes[i] != 0)
            return false;
    }
    return true;
}

static void send_line_and_compare_answers(const char *line)
{
    send_line(&redis, line);
    send_line(&kv, line);
    if (line[1] == '~')
        (void)read_bytes_of_clients(&redis, TIMED_MS);
    await_redis_has_handled_all();
    if (is_redis_silent())
        domt_sleep_ms(SILENT_MS);
    uint64_t begin = domt_monotonic_ns();
    while (do_answers_or_client_counts_differ() &&
           domt_monotonic_ns() - begin < UINT64_C(1000000) * SURE_MS) {
        (void)read_bytes_of_clients(&kv, 1);
        /* reads what redis-server sends late on a busy machine, when a command's time is over */
        (void)read_bytes_of_clients(&redis, 0);
    }
    /* reads what kv may have sent beyond the answers of redis-server */
    (void)read_bytes_of_clients(&kv, 0);
    compare_answers(line);
}

void domt_compare_dialogue_at_two_ports(const char *const lines[], uint16_t kv_port,
                                        uint16_t redis_port)
{
    redis.port = redis_port;
    kv.port = kv_port;
    redis.control = domt_connect_to_port(redis.port);
    kv.control = domt_connect_to_port(kv.port);
    long before[FIGURES];
    read_client_counts_of_server(redis.control, before);
    read_client_counts_of_server(kv.control, more);
    for (int i = 0; i < FIGURES; i++)
        more[i] -= before[i];
    for (; *lines != NULL; lines++)
        send_line_and_compare_answers(*lines);
    domt_sleep_ms(60);
    (void)read_bytes_of_clients(&kv, 0);
    compare_answers("(the end)");
    close_clients_of_side(&redis);
    close_clients_of_side(&kv);
}

void domt_compare_dialogue_with_redis(const char *const lines[], uint16_t kv_port)
{
    uint16_t port;
    pid_t pid;

    if (!domt_redis_start_server(&pid, &port))
        return;
    domt_compare_dialogue_at_two_ports(lines, kv_port, port);
    domt_redis_stop_server(pid);
}
