/* The contender of `bench cluster` that is domus itself: each side is a node with one thread.
 *
 * The requester spawns a desk on the other node and asks it, in 64 conversations of one actor, or
 * sends it notices. Marks and their answers are notices, too, because asks overtake notices
 * (domus/actor.h). Payloads travel as MessagePack; that of a notice has 64 bytes, as all
 * contenders' have. */
#include "bench/support/cluster_side.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/pickle_code.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

typedef struct notice {
    char bytes[CLUSTER_NOTICE_BYTES];
} notice;

static struct cluster_side side;
static domus_system *system_here;
static domus_cluster *cluster;
static struct cluster_words counts; /* of the responder's desk */
static struct cluster_asks asks;
static _Atomic(const char *) outcome; /* of the requester; "" if it is right */
static atomic_bool is_ready;
static domus_address desk;

/* --- types ------------------------------------------------------------------------------------ */

static const domus_type ask_type = {.name = "ask", .size = sizeof(struct cluster_words)};
static const domus_type mark_type = {.name = "mark", .size = sizeof(struct cluster_words)};
static const domus_type answer_type = {.name = "answer", .size = sizeof(struct cluster_words)};
static const domus_type notice_type = {.name = "notice", .size = sizeof(notice)};
static const domus_type pump_type = {.name = "pump"};

static const domus_pickle_field words_fields[] = {
    {DOMUS_PICKLE(1, struct cluster_words, first, UINT(0))},
    {DOMUS_PICKLE(2, struct cluster_words, second, UINT(0))},
};
static const domus_pickle_table words_table =
    DOMUS_PICKLE_TABLE(struct cluster_words, words_fields);

static int write_notice(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_bytes(writer, payload, sizeof(notice));
}

static int read_notice(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domus_slice bytes;
    int error = domus_pickle_get_slice(reader, sizeof(notice), &bytes);

    (void)version;
    if (error != 0)
        return error;
    if (bytes.size == sizeof(notice))
        memcpy(payload, domus_slice_data(bytes), sizeof(notice));
    else
        error = -EBADMSG;
    domus_slice_free(bytes);
    return error;
}

static const domus_pickler picklers[] = {
    {.type = &ask_type, .version = 1, .table = &words_table},
    {.type = &mark_type, .version = 1, .table = &words_table},
    {.type = &answer_type, .version = 1, .table = &words_table},
    {.type = &notice_type, .version = 1, .write = write_notice, .read = read_notice},
    {.type = NULL},
};

/* --- the responder ---------------------------------------------------------------------------- */

static int take_ask(domus_stack *stack, void *self, const void *payload)
{
    struct cluster_words answer = cluster_side_answer(*(const struct cluster_words *)payload);

    (void)self;
    return domus_reply(stack, &answer_type, &answer);
}

static int take_mark(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_notice(stack, domus_sender(stack), &answer_type, &counts);
}

static int take_notice(domus_stack *stack, void *self, const void *payload)
{
    uint64_t number;

    (void)stack, (void)self;
    memcpy(&number, payload, sizeof number);
    counts = cluster_side_count(counts, number);
    return 0;
}

static const domus_behaviour desk_behaviour = {
    .name = "desk",
    .on = (const domus_on[]){{&ask_type, take_ask, 0},
                             {&mark_type, take_mark, 0},
                             {&notice_type, take_notice, 0},
                             {NULL, NULL, 0}},
};
static const domus_cluster_export exports[] = {{.name = "desk", .behaviour = &desk_behaviour},
                                               {.name = NULL}};

/* --- the requester ---------------------------------------------------------------------------- */

static uint64_t sent, marked, marks, marks_answered;

static int end_with(const char *wrong)
{
    atomic_store(&outcome, wrong);
    return 0;
}

static int hear_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    if (answer->error != 0)
        return end_with("an ask has failed");
    struct cluster_words words = *(const struct cluster_words *)answer->payload;
    if (!cluster_asks_take(&asks, words))
        return end_with("an answer");
    if (asks.answered == side.count)
        return end_with("");
    words = (struct cluster_words){words.first + CLUSTER_UNDER_WAY, 0};
    return words.first < side.count ? domus_ask(stack, desk, &ask_type, &words, hear_answer) : 0;
}

/* Begin one of the conversations. */
static int begin_ask(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_ask(stack, desk, &ask_type, payload, hear_answer);
}

static int hear_mark(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    marked += CLUSTER_NOTICES_A_MARK;
    marked = marked < side.count ? marked : side.count;
    if (!cluster_side_mark_is_right(*(const struct cluster_words *)payload, marked))
        return end_with("a mark");
    marks_answered++;
    if (marked == side.count)
        return end_with("");
    return sent < side.count && marks - marks_answered == CLUSTER_MARKS_MAX - 1
               ? domus_notice(stack, domus_self(stack), &pump_type, NULL)
               : 0;
}

/* Send the notices up to the next mark, and the mark. */
static int pump(domus_stack *stack, void *self, const void *payload)
{
    struct cluster_words none = {0, 0};
    notice next = {{0}};

    (void)self, (void)payload;
    do {
        memcpy(next.bytes, &sent, sizeof sent);
        int error = domus_notice(stack, desk, &notice_type, &next);
        if (error == -ENOBUFS) /* it goes on a little later */
            return domus_after(stack, MS, &pump_type, NULL, NULL);
        if (error != 0)
            return end_with("a notice");
        sent++;
    } while (sent % CLUSTER_NOTICES_A_MARK != 0 && sent < side.count);
    marks++;
    if (sent < side.count && marks - marks_answered < CLUSTER_MARKS_MAX)
        (void)domus_notice(stack, domus_self(stack), &pump_type, NULL);
    return domus_notice(stack, desk, &mark_type, &none) == 0 ? 0 : end_with("a mark");
}

static int hear_first(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self;
    if (answer->error != 0)
        return end_with("the first ask");
    atomic_store(&is_ready, true);
    return 0;
}

static int hear_spawned(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct cluster_words none = {0, 0};

    (void)self;
    if (answer->error != 0)
        return end_with("the desk");
    desk = ((const domus_cluster_spawned *)answer->payload)->address;
    return domus_ask(stack, desk, &ask_type, &none, hear_first);
}

static int begin(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_cluster_spawn(stack, *(const domus_node *)payload, "desk", NULL, NULL, 10000 * MS,
                               hear_spawned);
}

static const domus_type begin_type = {.name = "begin", .size = sizeof(domus_node)};
static const domus_type ask_one_type = {.name = "ask one", .size = sizeof(struct cluster_words)};
static const domus_behaviour requester = {
    .name = "requester",
    .on = (const domus_on[]){{&begin_type, begin, 0},
                             {&ask_one_type, begin_ask, 0},
                             {&pump_type, pump, 0},
                             {&answer_type, hear_mark, 0},
                             {NULL, NULL, 0}},
};

/* --- both sides ------------------------------------------------------------------------------- */

static void check(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "cluster_domus: %s: %s\n", what, strerror(-error));
    exit(1);
}

static void open_node(void)
{
    char error[200] = "", servers[32];
    domus_config config;
    domus_cluster_options options = {.name = "bench",
                                     .node = side.responds ? "responder" : "requester",
                                     .servers = servers,
                                     .picklers = picklers,
                                     .exports = exports};

    snprintf(servers, sizeof servers, "127.0.0.1:%u", side.port);
    domus_config_init(&config);
    config.system.threads = 1;
    check(domus_system_new(&config, error, sizeof error, &system_here), error);
    check(domus_system_start(system_here), "start");
    check(domus_cluster_open(system_here, &options, error, sizeof error, &cluster), error);
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Wait until the other node is up, and has answered. */
static domus_address begin_requester(void)
{
    domus_node node;
    domus_address address;

    while (domus_cluster_find_node(cluster, "responder", &node) != 0)
        pause_a_little();
    check(domus_outside_spawn(system_here, &requester, NULL, &address), "spawn");
    check(domus_outside_notice(system_here, address, &begin_type, &node), "begin");
    while (!atomic_load(&is_ready) && atomic_load(&outcome) == NULL)
        pause_a_little();
    return address;
}

int main(int argc, char **argv)
{
    cluster_side_init(&side, argc, argv);
    open_node();
    if (side.responds) {
        while (domus_cluster_nodes(cluster, NULL, 0) == 0)
            pause_a_little();
        cluster_side_ready();
        cluster_side_await_end();
        _exit(0); /* what is measured is over */
    }
    domus_address address = begin_requester();
    cluster_asks_begin(&asks, side.count);
    if (atomic_load(&outcome) == NULL)
        cluster_side_await_go(&side);
    if (side.notices)
        check(domus_outside_notice(system_here, address, &pump_type, NULL), "pump");
    for (uint64_t i = 0; !side.notices && i < CLUSTER_UNDER_WAY && i < side.count; i++)
        check(domus_outside_notice(system_here, address, &ask_one_type,
                                   &(struct cluster_words){i, 0}),
              "ask");
    while (atomic_load(&outcome) == NULL)
        pause_a_little();
    const char *wrong = atomic_load(&outcome);
    cluster_side_done(&side, *wrong != '\0' ? wrong : NULL);
    _exit(0);
}
