/* Workers with a little work for each message, and the dispatchers that give it to them. */
#include "ill.h"

#include <time.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type report_type = {.name = "report", .size = sizeof(uint64_t)};
static const domus_type tick_type = {.name = "tick"};

static void use_cpu(uint64_t time_ns)
{
    struct timespec now;
    uint64_t until_ns = 0;

    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t now_ns = (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
        until_ns = until_ns != 0 ? until_ns : now_ns + time_ns;
        if (now_ns >= until_ns)
            return;
    } while (true);
}

static int work(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    use_cpu(*(const uint64_t *)payload);
    return ill_settings.kind == ILL_GREEDY
               ? domus_notice(stack, domus_self(stack), &work_type, payload)
               : 0;
}

/* Write a report, or what else takes its time in a program and is not left to a helper thread. */
static int report(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self;
    use_cpu(*(const uint64_t *)payload);
    return 0;
}

static const domus_on rows[] = {{&work_type, work, 0}, {&report_type, report, 0}, {NULL, NULL, 0}};
static const domus_behaviour worker = {.name = "worker", .on = rows};
static const domus_behaviour ledger = {.name = "ledger", .on = rows};

/* --- who gives them work ---------------------------------------------------------------------- */

static int send_work(domus_stack *stack, const struct ill_dispatcher *to, uint64_t time_ns)
{
    int error = 0;

    for (uint32_t i = 0; i < to->count && error == 0; i++)
        error = domus_notice(stack, to->workers[i], &work_type, &time_ns);
    return error;
}

/* Runs each 2 ms. */
static int tick(domus_stack *stack, void *self, const void *payload)
{
    struct ill_dispatcher *to = self;
    uint64_t ledger_ns = ill_settings.kind == ILL_HOT ? 1600 * US : 20 * US, report_ns = 30 * MS;

    (void)payload;
    to->ticks++;
    if (to->has_ledger && ill_settings.kind == ILL_STALLS && to->ticks % 200 == 0)
        return domus_notice(stack, to->ledger, &report_type, &report_ns);
    if (to->has_ledger && domus_notice(stack, to->ledger, &work_type, &ledger_ns) != 0)
        return 0; /* its mailbox is full */
    if (ill_settings.kind == ILL_GREEDY)
        return to->ticks == 1 ? send_work(stack, to, 50 * US) : 0;
    return send_work(stack, to, ill_settings.kind == ILL_NEAR ? 110 * US : 10 * US);
}

static int begin(domus_stack *stack, void *self)
{
    struct ill_dispatcher *to = self;
    int error = 0;

    for (uint32_t i = 0; i < to->count && error == 0; i++)
        error = domus_spawn(stack, &worker, NULL, &to->workers[i]);
    if (error == 0 && to->has_ledger)
        error = domus_spawn(stack, &ledger, NULL, &to->ledger);
    return error != 0 ? error : domus_every(stack, 2 * MS, &tick_type, NULL, NULL);
}

const domus_behaviour ill_dispatcher = {
    .name = "dispatcher",
    .state_size = sizeof(struct ill_dispatcher),
    .on_mount = begin,
    .on = (const domus_on[]){{&tick_type, tick, 0}, {NULL, NULL, 0}}};
