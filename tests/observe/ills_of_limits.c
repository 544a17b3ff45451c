/* Programs that reach a limit, wait, or fail, and need no CPU for it. */
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

static void sleep_for_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&time, NULL);
}

/* Defines a behaviour with one handler, for messages of type `go_type`. */
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

static void send_go(domt_ill_run *run)
{
    for (int i = 0; i < 4; i++)
        (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);
}

static int end_conversation(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

/* --- mailboxes, conversations, timers --------------------------------------------------------- */

static int sleep_in_conversation(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, HALF_SECOND, end_conversation);
}
ON_GO(sleeper, sleep_in_conversation);
BEGIN(sleepers, sleeper, 8)

static void limit_conversations(domus_config *config)
{
    config->scheduler.conversations_max = 2;
}

/* Let the receiver refuse asks: it has all the conversations
 * that it may have, and its mailbox is full. */
static void limit_mailboxes(domus_config *config)
{
    limit_conversations(config);
    config->scheduler.mailbox_max = 4;
}

#define LARGE 4096

static const domus_type large_type = {.name = "large", .size = LARGE};

static int keep_message_awhile(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, HALF_SECOND, end_conversation);
}

static const domus_behaviour keeper = {
    .name = "keeper", .on = (const domus_on[]){{&large_type, keep_message_awhile, 0}, {0}}};

static int send_large_messages(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[LARGE];

    for (int i = 0; i < 100; i++)
        (void)domus_notice(stack, *(const domus_address *)self, &large_type, bytes);
    return 0;
}

static const domus_behaviour giver = {
    .name = "giver",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&go_type, send_large_messages, 0}, {0}}};

static void spawn_keeper(domt_ill_run *run)
{
    domus_address to = domt_spawn(run->system, 1, &keeper, NULL);

    run->actor = domt_spawn(run->system, 0, &giver, &to);
}

static void limit_messages(domus_config *config)
{
    limit_conversations(config);
    config->memory.thread_max_bytes = 1 << 20;
}

static int arm_timers_beyond_limit(domus_stack *stack, void *self, const void *payload)
{
    for (int i = 0; i < 4; i++)
        (void)domus_after(stack, 60000 * DOMT_MS, &odd_type, NULL, NULL);
    return 0;
}
ON_GO(armer, arm_timers_beyond_limit);
BEGIN(timers, armer, 4)

static void limit_timers(domus_config *config)
{
    config->scheduler.timers_max = 8;
}

/* --- failures --------------------------------------------------------------------------------- */

static int fail_on_each_message(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}
ON_GO(failing, fail_on_each_message);
BEGIN(failures, failing, 1)

static int return_wrong_result(domus_stack *stack, void *self, const void *payload)
{
    return 5;
}
ON_GO(mistaken, return_wrong_result);
BEGIN(mistakes, mistaken, 1)

static void send_messages_without_handler(domt_ill_run *run)
{
    for (int i = 0; i < 4; i++)
        (void)domus_outside_notice(run->system, run->actor, &odd_type, NULL);
}

/* Let actors fail so often that the log drops lines. */
static void let_actors_fail_often(domt_ill_run *run)
{
    for (int i = 0; i < 64; i++)
        (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);
}

static void log_all_levels(domus_config *config)
{
    config->log.level = DOMUS_LOG_INFO;
}

static int ask_and_ignore_answer(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask_within(stack, *(const domus_address *)self, &odd_type, NULL, 2 * DOMT_MS,
                            end_conversation);
}

static int answer_slowly(domus_stack *stack, void *self, const void *payload)
{
    sleep_for_ms(10);
    return domus_reply(stack, &odd_type, NULL);
}

static const domus_behaviour late = {.name = "late",
                                     .on = (const domus_on[]){{&odd_type, answer_slowly, 0}, {0}}};
static const domus_behaviour asker = {
    .name = "asker",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&go_type, ask_and_ignore_answer, 0}, {0}}};

static int ask_sleeping_actor(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, *(const domus_address *)self, &go_type, NULL, end_conversation);
}

static const domus_behaviour impatient = {
    .name = "impatient",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&go_type, ask_sleeping_actor, 0}, {0}}};

struct client_maker {
    domus_address to, client;
};

/* Spawn a client that asks, and stop the client that was spawned before it,
 * whether or not that one has its answer. */
static int replace_impatient_client(domus_stack *stack, void *self, const void *payload)
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
    .on = (const domus_on[]){{&go_type, replace_impatient_client, 0}, {0}}};

static void spawn_maker_of_impatient_clients(domt_ill_run *run)
{
    const struct client_maker maker = {.to = domt_spawn(run->system, 1, &sleeper, NULL)};

    run->actor = domt_spawn(run->system, 0, &client_maker, &maker);
}

static void spawn_asker_of_late_actor(domt_ill_run *run)
{
    domus_address to = domt_spawn(run->system, 1, &late, NULL);

    run->actor = domt_spawn(run->system, 0, &asker, &to);
}

/* --- connections ------------------------------------------------------------------------------ */

static int drop_received_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return 0;
}

static const domus_behaviour silent = {
    .name = "silent", .kind = DOMUS_CHANNELS, .on_read = {drop_received_bytes, 0}};

static int refuse_received_bytes(domus_stack *stack, void *self, const void *payload)
{
    (void)drop_received_bytes(stack, self, payload);
    return -EPROTO;
}

static const domus_behaviour refusing = {
    .name = "refusing", .kind = DOMUS_CHANNELS, .on_read = {refuse_received_bytes, 0}};

static int read_slowly_in_handler(domus_stack *stack, void *self, const void *payload)
{
    (void)drop_received_bytes(stack, self, payload);
    return domus_sleep(stack, 2 * DOMT_MS, end_conversation);
}

static const domus_behaviour lengthy = {
    .name = "lengthy", .kind = DOMUS_CHANNELS, .on_read = {read_slowly_in_handler, 0}};

static int append_many_bytes_on_open(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[1 << 16];
    const domus_channel_event *event = payload;

    for (int i = 0; i < 256; i++)
        (void)domus_channel_append(stack, event->channel, bytes, sizeof bytes);
    return 0;
}

static const domus_behaviour flooding = {.name = "flooding",
                                         .kind = DOMUS_CHANNELS,
                                         .on_open = {append_many_bytes_on_open, 0},
                                         .on_read = {drop_received_bytes, 0}};

struct pusher {
    domus_channel *channel;
};

/* Send one byte at a time over a connection whose peer does not answer. */
static int append_one_byte(domus_stack *stack, void *self, const void *payload)
{
    return domus_channel_append(stack, ((const struct pusher *)self)->channel, "x", 1);
}

static int begin_to_push_bytes(domus_stack *stack, void *self, const void *payload)
{
    ((struct pusher *)self)->channel = ((const domus_channel_event *)payload)->channel;
    return domus_every(stack, 2 * DOMT_MS, &go_type, NULL, NULL);
}

static const domus_behaviour pushing = {.name = "pushing",
                                        .kind = DOMUS_CHANNELS,
                                        .state_size = sizeof(struct pusher),
                                        .on =
                                            (const domus_on[]){{&go_type, append_one_byte, 0}, {0}},
                                        .on_open = {begin_to_push_bytes, 0},
                                        .on_read = {drop_received_bytes, 0}};

static void enable_delay_of_small_writes(domus_config *config)
{
    config->sockets.no_delay = false;
}

static void connect_client_that_never_reads(domt_ill_run *run)
{
    run->fds[0] = domt_ill_connect_to_listener(run);
}

static void limit_connections_to_two(domus_config *config)
{
    config->channel.connections_max = 2;
}

static void connect_three_clients(domt_ill_run *run)
{
    for (int i = 0; i < 3; i++)
        run->fds[i] = domt_ill_connect_to_listener(run);
}

static void limit_share_of_loopback_peers(domus_config *config)
{
    config->channel.connections_max = 100;
    config->connection.loopback_percent = 1;
}

static void connect_and_close_at_once(domt_ill_run *run)
{
    int fd = domt_ill_connect_to_listener(run);

    (void)send(fd, "?", 1, MSG_NOSIGNAL);
    close(fd);
}

static void keep_one_connection_and_try_more(domt_ill_run *run)
{
    if (run->fds[0] < 0)
        run->fds[0] = domt_ill_connect_to_listener(run);
    else
        connect_and_close_at_once(run);
}

static void shorten_first_byte_timeout(domus_config *config)
{
    config->connection.first_byte_timeout_ns = 20 * DOMT_MS;
}

/* Connect a client that sends nothing, and close the connection that was made eight ticks of 10 ms
 * before. */
static void connect_silent_client(domt_ill_run *run)
{
    int *fd = &run->fds[run->turn++ % 8];

    if (*fd >= 0)
        close(*fd);
    *fd = domt_ill_connect_to_listener(run);
}

static void limit_requests(domus_config *config)
{
    config->channel.requests_max = 2;
}

static void limit_buffers(domus_config *config)
{
    config->io.buffers.count = 16;
    config->io.buffers.size_bytes = 256;
    config->system.threads = 1;
}

static int connect_to_unused_address(domus_stack *stack, void *self, const void *payload)
{
    static const domus_connect_options options = {.behaviour = &silent};

    return domus_connect(stack, "unix:@domus-nobody-listens-here", &options, end_conversation);
}
ON_GO(connector, connect_to_unused_address);
BEGIN(connects, connector, 1)

static int connect_by_host_name(domus_stack *stack, void *self, const void *payload)
{
    static const domus_connect_options options = {.behaviour = &silent};
    static _Atomic uint32_t names;
    char name[64];

    snprintf(name, sizeof name, "name%u.invalid:80", atomic_fetch_add(&names, 1));
    return domus_connect(stack, name, &options, end_conversation);
}
ON_GO(seeker, connect_by_host_name);

static int resolve_name_slowly(void *context, const char *name, domus_endpoint *ret_found,
                               uint32_t max)
{
    sleep_for_ms(300);
    return -ENODATA;
}

static void connect_to_many_names(domt_ill_run *run)
{
    domi_resolver_set_look_up(run->system->resolver, resolve_name_slowly, NULL);
    run->actor = domt_spawn(run->system, 0, &seeker, NULL);
    for (int i = 0; i < 16; i++)
        (void)domus_outside_notice(run->system, run->actor, &go_type, NULL);
}

static void limit_resolver_threads(domus_config *config)
{
    config->connect.resolve.threads_max = 1;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int block_helper_thread(void *argument)
{
    sleep_for_ms(300);
    return 0;
}

static int run_blocking_work(domus_stack *stack, void *self, const void *payload)
{
    return domus_blocking(stack, block_helper_thread, self, end_conversation);
}
ON_GO(blocker, run_blocking_work);
BEGIN(blockers, blocker, 16)

static void limit_helpers_to_one_thread(domus_config *config)
{
    config->blocking.threads_max = 1;
}

static int sleep_in_handler(domus_stack *stack, void *self, const void *payload)
{
    sleep_for_ms(5);
    return 0;
}
ON_GO(waiter, sleep_in_handler);
BEGIN(waiters, waiter, 1)

static int spawn_detached_actors(domus_stack *stack, void *self, const void *payload)
{
    static const domus_spawn_options options = {.detached = true};
    domus_address address;

    (void)domus_spawn_with(stack, &waiter, NULL, &options, &address);
    return 0;
}
ON_GO(parent, spawn_detached_actors);
BEGIN(detached, parent, 2)

static void limit_detached_actors_to_one(domus_config *config)
{
    config->detached.threads_max = 1;
}

static void limit_memory_of_system(domus_config *config)
{
    config->memory.limit_bytes = 1 << 20;
}

const domt_ill domt_ills_of_limits[] = {
    {.rule = "mailbox-full", .configure = limit_mailboxes, .begin = sleepers, .again = send_go},
    {.rule = "messages-full", .configure = limit_messages, .begin = spawn_keeper, .again = send_go},
    {.rule = "conversations-full",
     .configure = limit_conversations,
     .begin = sleepers,
     .again = send_go},
    {.rule = "timers-full", .configure = limit_timers, .begin = timers, .again = send_go},
    {.rule = "handlers-fail", .begin = failures, .again = send_go},
    {.rule = "log-dropped",
     .configure = log_all_levels,
     .begin = failures,
     .again = let_actors_fail_often},
    {.rule = "mistakes", .begin = mistakes, .again = send_go},
    {.rule = "dead-letters", .begin = mistakes, .again = send_messages_without_handler},
    {.rule = "asks-expire", .begin = spawn_asker_of_late_actor, .again = send_go},
    {.rule = "askers-gone", .begin = spawn_maker_of_impatient_clients, .again = send_go},
    {.rule = "first-byte",
     .channel = &silent,
     .configure = shorten_first_byte_timeout,
     .again = connect_silent_client},
    {.rule = "connections-full",
     .channel = &silent,
     .configure = limit_connections_to_two,
     .begin = connect_three_clients},
    {.rule = "address-share",
     .channel = &silent,
     .configure = limit_share_of_loopback_peers,
     .again = keep_one_connection_and_try_more},
    {.rule = "requests-fail", .channel = &refusing, .again = connect_and_close_at_once},
    {.rule = "requests-full", .channel = &lengthy, .clients = 4, .configure = limit_requests},
    {.rule = "small-writes",
     .channel = &pushing,
     .configure = enable_delay_of_small_writes,
     .begin = connect_client_that_never_reads},
    {.rule = "slow-readers", .channel = &flooding, .begin = connect_client_that_never_reads},
    {.rule = "buffers-starved", .channel = &silent, .clients = 64, .configure = limit_buffers},
    {.rule = "connects-fail", .begin = connects, .again = send_go},
    {.rule = "resolver-full", .configure = limit_resolver_threads, .begin = connect_to_many_names},
    {.rule = "helpers-full", .configure = limit_helpers_to_one_thread, .begin = blockers},
    {.rule = "handler-waits", .begin = waiters, .again = send_go},
    {.rule = "detached-full", .configure = limit_detached_actors_to_one, .begin = detached},
    {.rule = "memory-foreign", .configure = limit_memory_of_system},
    {.rule = NULL},
};
