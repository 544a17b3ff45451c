/* cluster_domus SIDE ROW COUNT PORT: the contender of `bench cluster` on libdomus-cluster.
 *
 * Each side is a node whose system has one thread. The requester spawns an actor at the responder.
 * Row `ask`: CLUSTER_UNDER_WAY actors ask it, each one ask after the other. Row `notice`: one actor
 * sends the notices of a mark in one turn, then the mark, and goes on with the next ones when a
 * mark was answered. Both payloads travel as bytes of their whole size (domus/pickle_code.h), as
 * those of the other contenders do. */
#include "bench/support/cluster_side.h"
#include "bench/support/measure.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/pickle_code.h>

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX   8u
#define PATIENCE_NS UINT64_C(20000000000)
#define LOOK_S      0.01
/* ns between two marks that are sent before the row begins */
#define TRY_NS UINT64_C(50000000)

struct notice {
    uint64_t number;
    char rest[CLUSTER_NOTICE_BYTES - sizeof(uint64_t)];
};
static_assert(sizeof(struct notice) == CLUSTER_NOTICE_BYTES, "no hole");

static const domus_type words_type = {.name = "words", .size = sizeof(struct cluster_words)};
static const domus_type mark_type = {.name = "mark", .size = sizeof(struct cluster_words)};
static const domus_type notice_type = {.name = "notice", .size = sizeof(struct notice)};
static const domus_type go_type = {.name = "go"};

static struct cluster_side side;
static domus_node node;    /* the responder's node, as the requester sees it */
static domus_address peer; /* address of the responder's actor */
static struct cluster_asks asks;
static const char *wrong; /* text that says what went wrong; NULL: nothing has */
static sem_t told; /* posted when the system's thread has done the step that main() waits for */

static _Noreturn void exit_with_error(const char *what, int error)
{
    fprintf(stderr, "cluster_domus: %s: %s\n", what, strerror(-error));
    _Exit(1);
}

/* ---- Pickling the payloads --------------------------------------------------------------- */

static int unpickle_payload_of_fixed_size(domus_pickle_reader *reader, void *payload, uint32_t size)
{
    domus_slice slice;
    int error = domus_pickle_get_slice(reader, size, &slice);

    if (error != 0)
        return error;
    if (slice.size != size)
        error = domus_pickle_reject(reader, -EBADMSG, "%u bytes", slice.size);
    else
        memcpy(payload, domus_slice_data(slice), size);
    domus_slice_free(slice);
    return error;
}

static int pickle_words_of_ask(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_bytes(writer, payload, sizeof(struct cluster_words));
}

static int unpickle_words_of_ask(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    (void)version;
    return unpickle_payload_of_fixed_size(reader, payload, sizeof(struct cluster_words));
}

static int pickle_payload_of_notice(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_bytes(writer, payload, sizeof(struct notice));
}

static int unpickle_payload_of_notice(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    (void)version;
    return unpickle_payload_of_fixed_size(reader, payload, sizeof(struct notice));
}

static const domus_pickler picklers[] = {
    {.type = &words_type,
     .version = 1,
     .write = pickle_words_of_ask,
     .read = unpickle_words_of_ask},
    {.type = &mark_type, .version = 1, .write = pickle_words_of_ask, .read = unpickle_words_of_ask},
    {.type = &notice_type,
     .version = 1,
     .write = pickle_payload_of_notice,
     .read = unpickle_payload_of_notice},
    {.type = NULL},
};

/* ---- The responder ----------------------------------------------------------------------- */

static int answer_ask_of_requester(domus_stack *stack, void *self, const void *words)
{
    struct cluster_words answer =
        cluster_side_right_answer_to_ask(*(const struct cluster_words *)words);

    (void)self;
    return domus_reply(stack, &words_type, &answer);
}

/* Answer a mark of the requester. An ask would overtake the notices before it, so a mark and its
 * answer are notices. */
static int send_mark_back_to_requester(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    return domus_notice(stack, domus_sender(stack), &mark_type, self);
}

static int count_notice_at_responder(domus_stack *stack, void *self, const void *notice)
{
    struct cluster_words *counts = self;

    (void)stack;
    *counts = cluster_side_counts_with_notice(*counts, ((const struct notice *)notice)->number);
    return 0;
}

static const domus_behaviour responder = {
    .name = "responder",
    .state_size = sizeof(struct cluster_words),
    .on = (const domus_on[]){{.type = &words_type, .handle = answer_ask_of_requester},
                             {.type = &notice_type, .handle = count_notice_at_responder},
                             {.type = &mark_type, .handle = send_mark_back_to_requester},
                             {.type = NULL}},
};

static const domus_cluster_export exports[] = {{.name = "responder", .behaviour = &responder},
                                               {.name = NULL}};

/* ---- The requester ----------------------------------------------------------------------- */

static int store_verdict_and_wake_main(const char *what)
{
    wrong = what;
    sem_post(&told);
    return 0;
}

static int check_answer_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t *number = self;

    if (answer->error != 0)
        exit_with_error("an ask", answer->error);
    if (!cluster_asks_check_and_count_answer(&asks, *(const struct cluster_words *)answer->payload))
        return store_verdict_and_wake_main("an answer");
    if (asks.answered == side.count)
        return store_verdict_and_wake_main(NULL);
    *number += CLUSTER_UNDER_WAY;
    if (*number >= side.count)
        return 0;
    return domus_ask(stack, peer, &words_type, &(struct cluster_words){*number, 0},
                     check_answer_and_ask_again);
}

static int send_first_ask(domus_stack *stack, void *self, const void *nothing)
{
    const uint64_t *number = self;

    (void)nothing;
    return domus_ask(stack, peer, &words_type, &(struct cluster_words){*number, 0},
                     check_answer_and_ask_again);
}

static const domus_behaviour asker = {
    .name = "asker",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{.type = &go_type, .handle = send_first_ask}, {.type = NULL}},
};

struct notifier {
    uint64_t sent;
    uint64_t marked; /* number of notices that were sent before the last mark that was answered */
};

static int handle_answer_to_mark(domus_stack *stack, void *self, const void *counts)
{
    struct notifier *notifier = self;

    notifier->marked += CLUSTER_NOTICES_A_MARK;
    notifier->marked = notifier->marked < side.count ? notifier->marked : side.count;
    if (!cluster_side_is_mark_answer_right(*(const struct cluster_words *)counts, notifier->marked))
        return store_verdict_and_wake_main("a mark");
    if (notifier->marked == side.count)
        return store_verdict_and_wake_main(NULL);
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

/* Send the notices that come before one mark, and then the mark. */
static int send_notices_and_mark(domus_stack *stack, void *self, const void *nothing)
{
    struct notifier *notifier = self;
    uint64_t until = notifier->sent + CLUSTER_NOTICES_A_MARK;

    (void)nothing;
    until = until < side.count ? until : side.count;
    if (notifier->sent == until)
        return 0;
    while (notifier->sent < until) {
        struct notice notice = {.number = notifier->sent++};
        int error = domus_notice(stack, peer, &notice_type, &notice);
        if (error != 0)
            exit_with_error("a notice", error);
    }
    return domus_notice(stack, peer, &mark_type, &(struct cluster_words){0, 0});
}

static const domus_behaviour notifier = {
    .name = "notifier",
    .state_size = sizeof(struct notifier),
    .on = (const domus_on[]){{.type = &go_type, .handle = send_notices_and_mark},
                             {.type = &mark_type, .handle = handle_answer_to_mark},
                             {.type = NULL}},
};

/* Handle the answer to a mark of the finder, which spawns the responder's actor, asks it once, and
 * sends it marks until one is answered: a node may answer asks of another one before it sends
 * notices there, which it does only once it knows that it is heard. */
static int handle_answer_to_first_mark(domus_stack *stack, void *self, const void *counts)
{
    bool *has_told = self;

    (void)stack;
    (void)counts;
    if (!*has_told)
        sem_post(&told);
    *has_told = true;
    return 0;
}

static int send_marks_until_answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    const bool *has_told = self;

    if (answer->error != 0)
        exit_with_error("the first ask", answer->error);
    if (*has_told)
        return 0;
    int error = domus_notice(stack, peer, &mark_type, &(struct cluster_words){0, 0});
    if (error != 0)
        exit_with_error("the first mark", error);
    return domus_sleep(stack, TRY_NS, send_marks_until_answered);
}

static int send_first_ask_to_new_responder(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    (void)self;
    if (answer->error != 0)
        exit_with_error("spawn", answer->error);
    peer = ((const domus_cluster_spawned *)answer->payload)->address;
    return domus_ask(stack, peer, &words_type, &(struct cluster_words){0, 0},
                     send_marks_until_answered);
}

static int spawn_responder_on_node(domus_stack *stack, void *self, const void *nothing)
{
    (void)self;
    (void)nothing;
    return domus_cluster_spawn(stack, node, "responder", NULL, NULL, PATIENCE_NS,
                               send_first_ask_to_new_responder);
}

static const domus_behaviour finder = {
    .name = "finder",
    .state_size = sizeof(bool),
    .on = (const domus_on[]){{.type = &go_type, .handle = spawn_responder_on_node},
                             {.type = &mark_type, .handle = handle_answer_to_first_mark},
                             {.type = NULL}},
};

/* ---- Starting either side ---------------------------------------------------------------- */

/* Wait until a node is up: the other one, or with `is_here` this one. */
static domus_node wait_until_node_is_up(domus_cluster *cluster, bool is_here)
{
    domus_node_info infos[NODES_MAX];
    uint64_t end_ns = measure_now_ns() + PATIENCE_NS;

    while (measure_now_ns() < end_ns) {
        uint32_t count = domus_cluster_nodes(cluster, infos, NODES_MAX);
        for (uint32_t i = 0; i < count && i < NODES_MAX; i++) {
            if (infos[i].is_here == is_here && infos[i].state == DOMUS_NODE_UP)
                return infos[i].node;
        }
        measure_sleep_seconds(LOOK_S);
    }
    exit_with_error("no node is up", -ETIMEDOUT);
}

static void spawn_actors(domus_system *system, const domus_behaviour *behaviour, const void *state,
                         uint32_t times)
{
    domus_address address;
    int error = domus_outside_spawn(system, behaviour, state, &address);

    for (uint32_t i = 0; i < times && error == 0; i++)
        error = domus_outside_notice(system, address, &go_type, NULL);
    if (error != 0)
        exit_with_error(behaviour->name, error);
}

static void wait_until_actor_posts_semaphore(void)
{
    while (sem_wait(&told) != 0)
        continue;
}

static void run_row_as_requester(domus_system *system, domus_cluster *cluster)
{
    node = wait_until_node_is_up(cluster, false);
    spawn_actors(system, &finder, NULL, 1);
    wait_until_actor_posts_semaphore();
    cluster_asks_init(&asks, side.count);
    cluster_side_print_ready_and_await_go(&side);
    if (side.notices)
        spawn_actors(system, &notifier, &(struct notifier){0, 0}, CLUSTER_MARKS_MAX);
    for (uint64_t i = 0; !side.notices && i < CLUSTER_UNDER_WAY && i < side.count; i++)
        spawn_actors(system, &asker, &i, 1);
    wait_until_actor_posts_semaphore();
    cluster_side_print_result(&side, wrong);
}

int main(int argc, char **argv)
{
    domus_cluster_options options = {.name = "bench", .picklers = picklers, .exports = exports};
    domus_config config;
    domus_system *system;
    domus_cluster *cluster;
    char server[32], error[256] = "";

    cluster_side_parse_or_exit(&side, argc, argv);
    sem_init(&told, 0, 0);
    snprintf(server, sizeof server, "127.0.0.1:%u", side.port);
    options.servers = server;
    options.node = argv[1];
    domus_config_init(&config);
    config.system.threads = 1;
    if (domus_system_new(&config, error, sizeof error, &system) != 0 ||
        domus_system_start(system) != 0 ||
        domus_cluster_open(system, &options, error, sizeof error, &cluster) != 0) {
        fprintf(stderr, "cluster_domus: %s\n", error);
        return 1;
    }
    if (side.responds) {
        (void)wait_until_node_is_up(cluster, true);
        cluster_side_print_ready();
        cluster_side_await_end_of_stdin();
    } else {
        run_row_as_requester(system, cluster);
    }
    domus_cluster_leave(cluster);
    (void)domus_system_stop(system);
    domus_cluster_close(cluster);
    domus_system_free(system);
    return 0;
}
