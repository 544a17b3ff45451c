/* Programs that reach a limit, wait, or fail, and need no CPU for that. */
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

/* Behaviours that have one handler, for messages of type `go_type`. */
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
    return 0;
}

/* --- mailboxes, conversations, timers --------------------------------------------------------- */

static int sleep_long(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, HALF_SECOND, end);
}
ON_GO(sleeper, sleep_long);
BEGIN(sleepers, sleeper, 8)

static void few_conversations(domus_config *config)
{
    config->scheduler.conversations_max = 2;
}

/* The receiver refuses asks: it has all conversations that it may have, and then its mailbox is
 * full. */
static void small_mailboxes(domus_config *config)
{
    few_conversations(config);
    config->scheduler.mailbox_max = 4;
}

#define LARGE 4096

static const domus_type large_type = {.name = "large", .size = LARGE};

static int keep(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, HALF_SECOND, end);
}

static const domus_behaviour keeper = {.name = "keeper",
                                       .on = (const domus_on[]){{&large_type, keep, 0}, {0}}};

static int give_much(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[LARGE];

    for (int i = 0; i < 100; i++)
        (void)domus_notice(stack, *(const domus_address *)self, &large_type, bytes);
    return 0;
}

static const domus_behaviour giver = {.name = "giver",
                                      .state_size = sizeof(domus_address),
                                      .on = (const domus_on[]){{&go_type, give_much, 0}, {0}}};

static void keep_messages(domt_ill_run *run)
{
    domus_address to = domt_spawn(run->system, 1, &keeper, NULL);

    run->actor = domt_spawn(run->system, 0, &giver, &to);
}

static void little_for_messages(domus_config *config)
{
    few_conversations(config);
    config->memory.thread_max_bytes = 1 << 20;
}

static int arm_timers(domus_stack *stack, void *self, const void *payload)
{
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
    return -EIO;
}
ON_GO(failing, fail_at_once);
BEGIN(failures, failing, 1)

static int mistake(domus_stack *stack, void *self, const void *payload)
{
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
    return domus_ask_within(stack, *(const domus_address *)self, &odd_type, NULL, 2 * DOMT_MS, end);
}

static int answer_late(domus_stack *stack, void *self, const void *payload)
{
    pause_ms(10);
    return domus_reply(stack, &odd_type, NULL);
}

static const domus_behaviour late = {.name = "late",
                                     .on = (const domus_on[]){{&odd_type, answer_late, 0}, {0}}};
static const domus_behaviour asker = {.name = "asker",
                                      .state_size = sizeof(domus_address),
                                      .on = (const domus_on[]){{&go_type, ask_in_vain, 0}, {0}}};

static int ask_sleeper(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, *(const domus_address *)self, &go_type, NULL, end);
}

static const domus_behaviour impatient = {.name = "impatient",
                                          .state_size = sizeof(domus_address),
                                          .on =
                                              (const domus_on[]){{&go_type, ask_sleeper, 0}, {0}}};

struct client_maker {
    domus_address to, client;
};

/* Spawn a client that asks, and stop the client before it, whether that one has its answer or
 * not. */
static int change_client(domus_stack *stack, void *self, const void *payload)
{
    struct client_maker *maker = self;

    if (maker->client.house != NULL)
        (void)domus_stop(stack, maker->client);
    int error = domus_spawn(stack, &impatient, &maker->to, &maker->client);
    return error != 0 ? error : domus_notice(stack, maker->client, &go_type, NULL);
}

static const domus_behaviour client_maker = {
    .name = "client maker",
    .state_size = sizeof(struct client_maker),
    .on = (const domus_on[]){{&go_type, change_client, 0}, {0}}};

static void impatient_asks(domt_ill_run *run)
{
    const struct client_maker maker = {.to = domt_spawn(run->system, 1, &sleeper, NULL)};

    run->actor = domt_spawn(run->system, 0, &client_maker, &maker);
}

static void asks(domt_ill_run *run)
{
    domus_address to = domt_spawn(run->system, 1, &late, NULL);

    run->actor = domt_spawn(run->system, 0, &asker, &to);
}

/* --- connections ------------------------------------------------------------------------------ */

static int keep_silent(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

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

    for (int i = 0; i < 256; i++)
        (void)domus_channel_append(stack, event->channel, bytes, sizeof bytes);
    return 0;
}

static const domus_behaviour flooding = {
    .name = "flooding", .kind = DOMUS_CHANNELS, .on_open = {flood, 0}, .on_read = {keep_silent, 0}};

struct pusher {
    domus_channel *channel;
};

/* Send one byte at a time to a listener that does not answer. */
static int push(domus_stack *stack, void *self, const void *payload)
{
    return domus_channel_append(stack, ((const struct pusher *)self)->channel, "x", 1);
}

static int begin_to_push(domus_stack *stack, void *self, const void *payload)
{
    ((struct pusher *)self)->channel = ((const domus_channel_event *)payload)->channel;
    return domus_every(stack, 2 * DOMT_MS, &go_type, NULL, NULL);
}

static const domus_behaviour pushing = {.name = "pushing",
                                        .kind = DOMUS_CHANNELS,
                                        .state_size = sizeof(struct pusher),
                                        .on = (const domus_on[]){{&go_type, push, 0}, {0}},
                                        .on_open = {begin_to_push, 0},
                                        .on_read = {keep_silent, 0}};

static void with_delay(domus_config *config)
{
    config->sockets.no_delay = false;
}

static void deaf_client(domt_ill_run *run)
{
    run->fds[0] = domt_ill_connect_to_listener(run);
}

static void two_connections(domus_config *config)
{
    config->channel.connections_max = 2;
}

static void three_clients(domt_ill_run *run)
{
    for (int i = 0; i < 3; i++)
        run->fds[i] = domt_ill_connect_to_listener(run);
}

static void small_share(domus_config *config)
{
    config->channel.connections_max = 100;
    config->connection.loopback_percent = 1;
}

static void come_and_go(domt_ill_run *run)
{
    int fd = domt_ill_connect_to_listener(run);

    (void)send(fd, "?", 1, MSG_NOSIGNAL);
    close(fd);
}

static void stay_and_come(domt_ill_run *run)
{
    if (run->fds[0] < 0)
        run->fds[0] = domt_ill_connect_to_listener(run);
    else
        come_and_go(run);
}

static void short_patience(domus_config *config)
{
    config->connection.first_byte_timeout_ns = 20 * DOMT_MS;
}

/* Connect a client that sends nothing, and disconnect the one of eight ticks of 10 ms before. */
static void listen_alone(domt_ill_run *run)
{
    int *fd = &run->fds[run->turn++ % 8];

    if (*fd >= 0)
        close(*fd);
    *fd = domt_ill_connect_to_listener(run);
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

    return domus_connect(stack, "unix:@domus-nobody-listens-here", &options, end);
}
ON_GO(connector, connect_in_vain);
BEGIN(connects, connector, 1)

static int look_up_name(domus_stack *stack, void *self, const void *payload)
{
    static const domus_connect_options options = {.behaviour = &silent};
    static _Atomic uint32_t names;
    char name[64];

    snprintf(name, sizeof name, "name%u.invalid:80", atomic_fetch_add(&names, 1));
    return domus_connect(stack, name, &options, end);
}
ON_GO(seeker, look_up_name);

static int look_up_slowly(void *context, const char *name, domus_endpoint *ret_found, uint32_t max)
{
    pause_ms(300);
    return -ENODATA;
}

static void names(domt_ill_run *run)
{
    domi_resolver_set_look_up(run->system->resolver, look_up_slowly, NULL);
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
    pause_ms(300);
    return 0;
}

static int use_helper(domus_stack *stack, void *self, const void *payload)
{
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
    pause_ms(5);
    return 0;
}
ON_GO(waiter, wait_in_handler);
BEGIN(waiters, waiter, 1)

static int spawn_detached(domus_stack *stack, void *self, const void *payload)
{
    static const domus_spawn_options options = {.detached = true};
    domus_address address;

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
    {.rule = "mailbox-full", .configure = small_mailboxes, .begin = sleepers, .again = go_on},
    {.rule = "messages-full",
     .configure = little_for_messages,
     .begin = keep_messages,
     .again = go_on},
    {.rule = "conversations-full",
     .configure = few_conversations,
     .begin = sleepers,
     .again = go_on},
    {.rule = "timers-full", .configure = few_timers, .begin = timers, .again = go_on},
    {.rule = "handlers-fail", .begin = failures, .again = go_on},
    {.rule = "log-dropped", .configure = log_all, .begin = failures, .again = fail_often},
    {.rule = "mistakes", .begin = mistakes, .again = go_on},
    {.rule = "dead-letters", .begin = mistakes, .again = odd_messages},
    {.rule = "asks-expire", .begin = asks, .again = go_on},
    {.rule = "askers-gone", .begin = impatient_asks, .again = go_on},
    {.rule = "first-byte", .channel = &silent, .configure = short_patience, .again = listen_alone},
    {.rule = "connections-full",
     .channel = &silent,
     .configure = two_connections,
     .begin = three_clients},
    {.rule = "address-share", .channel = &silent, .configure = small_share, .again = stay_and_come},
    {.rule = "requests-fail", .channel = &refusing, .again = come_and_go},
    {.rule = "requests-full", .channel = &lengthy, .clients = 4, .configure = two_requests},
    {.rule = "small-writes", .channel = &pushing, .configure = with_delay, .begin = deaf_client},
    {.rule = "slow-readers", .channel = &flooding, .begin = deaf_client},
    {.rule = "buffers-starved", .channel = &silent, .clients = 64, .configure = few_buffers},
    {.rule = "connects-fail", .begin = connects, .again = go_on},
    {.rule = "resolver-full", .configure = one_name, .begin = names},
    {.rule = "helpers-full", .configure = one_helper, .begin = blockers},
    {.rule = "handler-waits", .begin = waiters, .again = go_on},
    {.rule = "detached-full", .configure = one_detached, .begin = detached},
    {.rule = "memory-foreign", .configure = little_memory},
    {.rule = NULL},
};
