/* Programs that come to a limit, wait, or fail, and need no CPU for that; see ills.h. */
#include "tests/observe/ills.h"

#include "runtime/outside/resolver.h"
#include "runtime/system/system.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HALF_SECOND (500 * DOMT_MS)

static const domus_type go_type = {.name = "go"};
static const domus_type odd_type = {.name = "odd"};

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&time, NULL);
}

/* Each of these behaviours does one thing for each `go`. */
#define ON_GO(name_, handler_)                                                                     \
    static const domus_behaviour name_ = {.name = #name_,                                          \
                                          .on = (const domus_on[]){{&go_type, handler_, 32}, {0}}}

#define BEGIN(function, behaviour, count)                                                          \
    static void function(domt_ill_run *run)                                                        \
    {                                                                                              \
        run->actor = domt_spawn(run->system, 0, &(behaviour), NULL);                               \
        for (int i = 0; i < (count); i++)                                                          \
            (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);                   \
    }

static void go_on(domt_ill_run *run)
{
    for (int i = 0; i < 4; i++)
        (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);
}

static int end(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self, (void)answer;
    return 0;
}

/* --- mailboxes, conversations, timers --------------------------------------------------------- */

static int sleep_long(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_sleep(stack, HALF_SECOND, end);
}
ON_GO(sleeper, sleep_long);
BEGIN(sleepers, sleeper, 8)

static void few_conversations(domus_config *config)
{
    config->scheduler.conversations_max = 2;
}

/* It refuses, because it has all conversations that it may have, and then a full mailbox. */
static void small_mailboxes(domus_config *config)
{
    few_conversations(config);
    config->scheduler.mailbox_max = 4;
}

static int arm_timers(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    for (int i = 0; i < 4; i++)
        (void)domus_after(stack, 60000 * DOMT_MS, &odd_type, NULL, NULL);
    return 0;
}
ON_GO(armer, arm_timers);
BEGIN(timers, armer, 4)

static void few_timers(domus_config *config)
{
    config->scheduler.timers_max = 8;
}

/* --- failures --------------------------------------------------------------------------------- */

static int fail_at_once(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    return -EIO;
}
ON_GO(failing, fail_at_once);
BEGIN(failures, failing, 1)

static int mistake(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    return 5;
}
ON_GO(mistaken, mistake);
BEGIN(mistakes, mistaken, 1)

static void odd_messages(domt_ill_run *run)
{
    for (int i = 0; i < 4; i++)
        (void)domus_outside_notice(run->system, run->actor, &odd_type, NULL);
}

/* Actors fail so often that the log drops lines. */
static void fail_often(domt_ill_run *run)
{
    for (int i = 0; i < 64; i++)
        (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);
}

static void log_all(domus_config *config)
{
    config->log.level = DOMUS_LOG_INFO;
}

static int ask_in_vain(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_ask_within(stack, *(const domus_address *)self, &odd_type, NULL, 2 * DOMT_MS, end);
}

static int answer_late(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    pause_ms(10);
    return domus_reply(stack, &odd_type, NULL);
}

static const domus_behaviour late = {.name = "late",
                                     .on = (const domus_on[]){{&odd_type, answer_late, 0}, {0}}};
static const domus_behaviour asker = {.name = "asker",
                                      .state_size = sizeof(domus_address),
                                      .on = (const domus_on[]){{&go_type, ask_in_vain, 0}, {0}}};

static void asks(domt_ill_run *run)
{
    domus_address to = domt_spawn(run->system, 1, &late, NULL);

    run->actor = domt_spawn(run->system, 0, &asker, &to);
}

/* --- connections ------------------------------------------------------------------------------ */

static int keep_silent(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)stack, (void)self;
    domus_buffer_free(event->bytes);
    return 0;
}

static const domus_behaviour silent = {
    .name = "silent", .kind = DOMUS_CHANNELS, .on_read = {keep_silent, 0}};

static int refuse(domus_stack *stack, void *self, const void *payload)
{
    (void)keep_silent(stack, self, payload);
    return -EPROTO;
}

static const domus_behaviour refusing = {
    .name = "refusing", .kind = DOMUS_CHANNELS, .on_read = {refuse, 0}};

static int take_long(domus_stack *stack, void *self, const void *payload)
{
    (void)keep_silent(stack, self, payload);
    return domus_sleep(stack, 2 * DOMT_MS, end);
}

static const domus_behaviour lengthy = {
    .name = "lengthy", .kind = DOMUS_CHANNELS, .on_read = {take_long, 0}};

static int flood(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[1 << 16];
    const domus_channel_event *event = payload;

    (void)self;
    for (int i = 0; i < 256; i++)
        (void)domus_channel_append(stack, event->channel, bytes, sizeof bytes);
    return 0;
}

static const domus_behaviour flooding = {
    .name = "flooding", .kind = DOMUS_CHANNELS, .on_open = {flood, 0}, .on_read = {keep_silent, 0}};

static void deaf_client(domt_ill_run *run)
{
    run->fds[0] = domt_ill_connect(run);
}

static void two_connections(domus_config *config)
{
    config->channel.connections_max = 2;
}

static void three_clients(domt_ill_run *run)
{
    for (int i = 0; i < 3; i++)
        run->fds[i] = domt_ill_connect(run);
}

static void small_share(domus_config *config)
{
    config->channel.connections_max = 100;
    config->connection.loopback_percent = 1;
}

static void come_and_go(domt_ill_run *run)
{
    int fd = domt_ill_connect(run);

    (void)send(fd, "?", 1, MSG_NOSIGNAL);
    close(fd);
}

static void stay_and_come(domt_ill_run *run)
{
    if (run->fds[0] < 0)
        run->fds[0] = domt_ill_connect(run);
    else
        come_and_go(run);
}

static void two_requests(domus_config *config)
{
    config->channel.requests_max = 2;
}

static void few_buffers(domus_config *config)
{
    config->io.buffers.count = 16;
    config->io.buffers.size_bytes = 256;
    config->system.threads = 1;
}

static int connect_in_vain(domus_stack *stack, void *self, const void *payload)
{
    static const domus_connect_options options = {.behaviour = &silent};

    (void)self, (void)payload;
    return domus_connect(stack, "unix:@domus-nobody-listens-here", &options, end);
}
ON_GO(connector, connect_in_vain);
BEGIN(connects, connector, 1)

static int look_up_name(domus_stack *stack, void *self, const void *payload)
{
    static const domus_connect_options options = {.behaviour = &silent};
    static _Atomic uint32_t names;
    char name[64];

    (void)self, (void)payload;
    snprintf(name, sizeof name, "name%u.invalid:80", atomic_fetch_add(&names, 1));
    return domus_connect(stack, name, &options, end);
}
ON_GO(seeker, look_up_name);

static int look_up_slowly(void *context, const char *name, domus_endpoint *ret_found, uint32_t max)
{
    (void)context, (void)name, (void)ret_found, (void)max;
    pause_ms(300);
    return -ENODATA;
}

static void names(domt_ill_run *run)
{
    domi_resolver_use(run->system->resolver, look_up_slowly, NULL);
    run->actor = domt_spawn(run->system, 0, &seeker, NULL);
    for (int i = 0; i < 16; i++)
        (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);
}

static void one_name(domus_config *config)
{
    config->connect.resolve.threads_max = 1;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int block(void *argument)
{
    (void)argument;
    pause_ms(300);
    return 0;
}

static int use_helper(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return domus_blocking(stack, block, self, end);
}
ON_GO(blocker, use_helper);
BEGIN(blockers, blocker, 16)

static void one_helper(domus_config *config)
{
    config->blocking.threads_max = 1;
}

static int wait_in_handler(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    pause_ms(5);
    return 0;
}
ON_GO(waiter, wait_in_handler);
BEGIN(waiters, waiter, 1)

static int spawn_detached(domus_stack *stack, void *self, const void *payload)
{
    static const domus_spawn_options options = {.detached = true};
    domus_address address;

    (void)self, (void)payload;
    (void)domus_spawn_with(stack, &waiter, NULL, &options, &address);
    return 0;
}
ON_GO(parent, spawn_detached);
BEGIN(detached, parent, 2)

static void one_detached(domus_config *config)
{
    config->detached.threads_max = 1;
}

static void little_memory(domus_config *config)
{
    config->memory.limit_bytes = 1 << 20;
}

const domt_ill domt_ills_of_limits[] = {
    {"mailbox-full", NULL, 0, small_mailboxes, sleepers, go_on},
    {"conversations-full", NULL, 0, few_conversations, sleepers, go_on},
    {"timers-full", NULL, 0, few_timers, timers, go_on},
    {"handlers-fail", NULL, 0, NULL, failures, go_on},
    {"log-dropped", NULL, 0, log_all, failures, fail_often},
    {"mistakes", NULL, 0, NULL, mistakes, go_on},
    {"dead-letters", NULL, 0, NULL, mistakes, odd_messages},
    {"asks-expire", NULL, 0, NULL, asks, go_on},
    {"connections-full", &silent, 0, two_connections, three_clients, NULL},
    {"address-share", &silent, 0, small_share, NULL, stay_and_come},
    {"requests-fail", &refusing, 0, NULL, NULL, come_and_go},
    {"requests-full", &lengthy, 4, two_requests, NULL, NULL},
    {"slow-readers", &flooding, 0, NULL, deaf_client, NULL},
    {"buffers-starved", &silent, 64, few_buffers, NULL, NULL},
    {"connects-fail", NULL, 0, NULL, connects, go_on},
    {"resolver-full", NULL, 0, one_name, names, NULL},
    {"helpers-full", NULL, 0, one_helper, blockers, NULL},
    {"handler-waits", NULL, 0, NULL, waiters, go_on},
    {"detached-full", NULL, 0, one_detached, detached, NULL},
    {"memory-foreign", NULL, 0, little_memory, NULL, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
