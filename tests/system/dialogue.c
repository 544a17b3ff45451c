/* Two sets of connections, one to each server. The lines go to redis-server first, and then to kv,
 * and what each client has heard from both is compared after every line. */
#include "tests/system/dialogue.h"

#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS  26
#define QUIET_MS 60    /* redis-server has mostly said all when it is silent for so long */
#define TIMED_MS 400   /* the same when a time-out is waited for, which it sees every 100 ms */
#define SURE_MS  10000 /* both have to say the same in this time */

struct side {
    uint16_t port;
    int fds[CLIENTS]; /* 0: not connected */
    size_t sizes[CLIENTS];
    char heard[CLIENTS][DOMT_REPLY_MAX];
};

static struct side redis, kv;

/* Read what comes on any connection within `ms`. Returns false if nothing came. */
static bool listen_to(struct side *side, int ms)
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

static void say(struct side *side, const char *line)
{
    int i = line[0] - 'a';
    char text[2048];

    if (side->fds[i] == 0)
        side->fds[i] = domt_connect(side->port);
    snprintf(text, sizeof text, "%s", line + 2);
    if (strcmp(text, "CLOSE") == 0) {
        close(side->fds[i]);
        side->fds[i] = 0;
        return;
    }
    for (char *rest = NULL, *command = strtok_r(text, ";", &rest); command != NULL;
         command = strtok_r(NULL, ";", &rest))
        domt_resp_send(side->fds[i], command);
}

/* True if some client of one server has heard more than that of the other one. */
static bool differ(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (kv.sizes[i] != redis.sizes[i])
            return true;
    }
    return false;
}

static void compare(const char *line)
{
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_msg(
            kv.sizes[i] == redis.sizes[i] && memcmp(kv.heard[i], redis.heard[i], kv.sizes[i]) == 0,
            "%s\n client %c\n kv:    %s\n redis: %s", line, 'a' + i, kv.heard[i], redis.heard[i]);
        kv.sizes[i] = redis.sizes[i] = 0;
        kv.heard[i][0] = redis.heard[i][0] = '\0';
    }
}

static void hang_up(struct side *side)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (side->fds[i] != 0)
            close(side->fds[i]);
        side->fds[i] = 0;
    }
}

void domt_dialogue(const char *const lines[], uint16_t kv_port, uint16_t redis_port)
{
    redis.port = redis_port;
    kv.port = kv_port;
    for (; *lines != NULL; lines++) {
        say(&redis, *lines);
        say(&kv, *lines);
        while (listen_to(&redis, (*lines)[1] == '~' ? TIMED_MS : QUIET_MS))
            ;
        uint64_t begin = domt_monotonic_ns();
        while (differ() && domt_monotonic_ns() - begin < UINT64_C(1000000) * SURE_MS) {
            (void)listen_to(&kv, 10);
            (void)listen_to(&redis, 10); /* on a busy machine it may be late, too */
        }
        (void)listen_to(&kv, 0); /* not more than redis-server */
        compare(*lines);
    }
    domt_sleep_ms(QUIET_MS);
    (void)listen_to(&kv, 0);
    compare("(the end)");
    hang_up(&redis);
    hang_up(&kv);
}

void domt_dialogue_with_redis(const char *const lines[], uint16_t kv_port)
{
    uint16_t port;
    pid_t pid;

    if (!domt_redis_start(&pid, &port))
        return;
    domt_dialogue(lines, kv_port, port);
    domt_redis_stop(pid);
}
