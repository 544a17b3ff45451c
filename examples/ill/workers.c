/* Workers with a little work for each message, and the dispatchers that give it to them. */
#include "ill.h"

#include <domus/blocking.h>

#include <time.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

#define REPORT_NS (30 * MS)
/* CPU time in ns that the ledger needs every 2 ms, when it alone has all of the work */
#define LEDGER_NS (1600 * US)

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type report_type = {.name = "report"};
static const domus_type tick_type = {.name = "tick"};

static void use_cpu_for_ns(uint64_t time_ns)
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

static int use_cpu_as_long_as_message_says(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    use_cpu_for_ns(*(const uint64_t *)payload);
    return ill_settings.kind == ILL_GREEDY
               ? domus_notice(stack, domus_self(stack), &work_type, payload)
               : 0;
}

static int use_cpu_for_report(void *argument)
{
    use_cpu_for_ns(*(const uint64_t *)argument);
    return 0;
}

static int return_error_of_report_on_helper(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    (void)stack, (void)self;
    return answer->error;
}

/* Write a report, which takes long, in the handler itself, as programs do with slow work that they
 * do not leave to a helper thread. */
static int make_report_in_handler_or_on_helper(domus_stack *stack, void *self, const void *payload)
{
    static uint64_t report_ns = REPORT_NS;

    (void)self, (void)payload;
    if (ill_settings.mended)
        return domus_blocking(stack, use_cpu_for_report, &report_ns,
                              return_error_of_report_on_helper);
    return use_cpu_for_report(&report_ns);
}

static const domus_on rows[] = {{&work_type, use_cpu_as_long_as_message_says, 0},
                                {&report_type, make_report_in_handler_or_on_helper, 0},
                                {NULL, NULL, 0}};
static const domus_behaviour worker = {.name = "worker", .on = rows};
static const domus_behaviour ledger = {.name = "ledger", .on = rows};

/* --- dispatchers ------------------------------------------------------------------------------ */

static int send_work_to_workers(domus_stack *stack, const struct ill_dispatcher *to,
                                uint64_t time_ns)
{
    int error = 0;

    for (uint32_t i = 0; i < to->count && error == 0; i++)
        error = domus_notice(stack, to->workers[i], &work_type, &time_ns);
    return error;
}

/* Send work to the dispatcher's workers, at each tick of 2 ms. */
static int send_work_to_workers_at_tick(domus_stack *stack, void *self, const void *payload)
{
    struct ill_dispatcher *to = self;
    bool is_hot = ill_settings.kind == ILL_HOT, is_near = ill_settings.kind == ILL_NEAR;
    uint64_t ledger_ns = is_hot && !ill_settings.mended ? LEDGER_NS : 20 * US;
    uint64_t share_ns = is_hot && ill_settings.mended ? LEDGER_NS / (to->threads * to->count) : 0;

    (void)payload;
    to->ticks++;
    if (to->has_ledger && ill_settings.kind == ILL_STALLS && to->ticks % 200 == 0)
        return domus_notice(stack, to->ledger, &report_type, NULL);
    if (to->has_ledger && domus_notice(stack, to->ledger, &work_type, &ledger_ns) != 0)
        return 0; /* the ledger's mailbox is full, so nothing more is sent at this tick */
    if (ill_settings.kind == ILL_GREEDY)
        return to->ticks == 1 ? send_work_to_workers(stack, to, 50 * US) : 0;
    return send_work_to_workers(stack, to, is_near ? 110 * US : 10 * US + share_ns);
}

static int spawn_workers(domus_stack *stack, void *self)
{
    bool is_spread = ill_settings.kind == ILL_NEAR && ill_settings.mended;
    const domus_spawn_options place = {.placement = is_spread ? DOMUS_SPREAD : DOMUS_NEAR};
    struct ill_dispatcher *to = self;
    int error = 0;

    for (uint32_t i = 0; i < to->count && error == 0; i++)
        error = domus_spawn_with(stack, &worker, NULL, &place, &to->workers[i]);
    if (error == 0 && to->has_ledger)
        error = domus_spawn(stack, &ledger, NULL, &to->ledger);
    return error != 0 ? error : domus_every(stack, 2 * MS, &tick_type, NULL, NULL);
}

const domus_behaviour ill_dispatcher = {
    .name = "dispatcher",
    .state_size = sizeof(struct ill_dispatcher),
    .on_mount = spawn_workers,
    .on = (const domus_on[]){{&tick_type, send_work_to_workers_at_tick, 0}, {NULL, NULL, 0}}};
