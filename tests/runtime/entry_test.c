/* runtime/outside/entry.c, house/family/processes.c: processes are spawned by the name of an entry
 * point, may block in work, and get a last event when the system stops. */
#include "tests/runtime/outsiders.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct worker {
    uint32_t input;
    uint32_t number; /* the number that the work gets as its argument */
} worker;

static const domus_type input_type = {.name = "input", .size = sizeof(uint32_t)};
static const domus_type large_type = {.name = "large", .size = DOMUS_PROCESS_INPUT_MAX + 1};
static const domus_type value_type = {.name = "value", .size = sizeof(uint32_t), .release = NULL};

static domus_system *system_;
static _Atomic uint32_t cancels, closes, works, works_begun, seen;
static _Atomic uint64_t left_ns;

static _Atomic bool hold, ignores, works_at_end;

/* --- work ------------------------------------------------------------------------------------- */

static int block_and_double_number(void *number)
{
    atomic_fetch_add(&works_begun, 1);
    while (atomic_load(&hold))
        domt_pause_ns(DOMT_MS);
    uint32_t it = *(uint32_t *)number; /* the state of the process must still be there */
    atomic_fetch_add(&works, 1);
    return it == 0 ? -EDOM : (int)it * 2;
}

/* --- the process ------------------------------------------------------------------------------ */

static int init_worker_by_method(domus_stack *stack, void *self, const char *method,
                                 const domus_type *type, const void *input)
{
    worker *state = self;

    state->input = type != NULL ? *(const uint32_t *)input : 0;
    state->number = state->input;
    return strcmp(method, "double") == 0 || strcmp(method, "wait") == 0 ? 0 : -ENOENT;
}

static void end_process_and_try_to_end_again(domus_process_output *out, const domus_type *type,
                                             uint32_t value)
{
    ck_assert_int_eq(domus_process_done(out, type, &value), 0);
    ck_assert_int_eq(domus_process_done(out, type, &value), -EALREADY);
}

/* A step that doubles the input in blocking work, and ends the process with the result. */
static int double_input_in_work(domus_stack *stack, void *self, const domus_process_event *events,
                                uint32_t count, domus_process_output *out)
{
    worker *state = self;

    if (count == 0)
        return domus_process_work(out, block_and_double_number, &state->number, 7);
    for (uint32_t i = 0; i < count; i++) {
        if (events[i].type == DOMUS_PROCESS_MESSAGE) {
            uint32_t next = *(const uint32_t *)events[i].data + 1;
            ck_assert(events[i].is_ask);
            ck_assert_int_eq(domus_kept_reply(stack, events[i].ask, &domt_number_type, &next), 0);
        }
        if (events[i].type != DOMUS_PROCESS_COMPLETE)
            continue;
        ck_assert_uint_eq(events[i].tag, 7);
        if (events[i].error != 0) {
            ck_assert_ptr_null(events[i].data);
            end_process_and_try_to_end_again(out, &domt_owner_type, (uint32_t)-events[i].error);
            return 0;
        }
        ck_assert_ptr_eq(events[i].data_type, &domus_blocking_type);
        end_process_and_try_to_end_again(out, &value_type,
                                         (uint32_t)(*(const int *)events[i].data));
    }
    return 0;
}

static void clear_state_on_close(domus_stack *stack, void *self)
{
    memset(self, 0, sizeof(worker));
    atomic_fetch_add(&closes, 1);
}

static const domus_process doubling = {.name = "doubling",
                                       .state_size = sizeof(worker),
                                       .init = init_worker_by_method,
                                       .step = double_input_in_work,
                                       .close = clear_state_on_close};

/* A step that waits for the last event, and then begins more work or ignores the event. */
static int record_event_and_wait_on(domus_stack *stack, void *self,
                                    const domus_process_event *events, uint32_t count,
                                    domus_process_output *out)
{
    worker *state = self;

    atomic_fetch_add(&seen, count);
    for (uint32_t i = 0; i < count; i++) {
        if (events[i].type == DOMUS_PROCESS_COMPLETE && events[i].tag == 1)
            end_process_and_try_to_end_again(out, NULL, 0);
        if (events[i].type != DOMUS_PROCESS_CANCEL)
            continue;
        const domus_process_cancel *cancel = events[i].data;
        ck_assert_ptr_eq(events[i].data_type, &domus_process_cancel_type);
        ck_assert_uint_gt(cancel->deadline_ns, domus_now_ns(stack));
        atomic_store(&left_ns, cancel->left_ns);
        atomic_fetch_add(&cancels, 1);
        if (atomic_load(&ignores))
            continue;
        if (atomic_load(&works_at_end))
            ck_assert_int_eq(domus_process_work(out, block_and_double_number, &state->number, 1),
                             0);
        else
            end_process_and_try_to_end_again(out, NULL, 0);
    }
    return 0;
}

static const domus_process waiting = {.name = "waiting",
                                      .state_size = sizeof(worker),
                                      .init = init_worker_by_method,
                                      .step = record_event_and_wait_on,
                                      .close = clear_state_on_close};

static const domus_entry entries[] = {
    {.name = "double", .process = &doubling, .input = &input_type},
    {.name = "wait", .process = &waiting},
    {.name = "other", .process = &doubling, .method = "triple", .input = &input_type},
};

static void start_system_with_entries(uint64_t actor_timeout_ns)
{
    domus_config config = domt_config_of_threads(2);
    char text[256];

    config.shutdown.actor_timeout_ns = actor_timeout_ns;
    ck_assert_int_eq(domus_system_new(&config, text, sizeof text, &system_), 0);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(domus_entry_add(system_, &entries[i]), 0);
    ck_assert_int_eq(domus_system_start(system_), 0);
}

static domus_address spawn_process_of_entry(const char *name, uint32_t input,
                                            domus_address result_to)
{
    const domus_entry_options options = {.result_to = result_to};
    domus_address address;
    bool takes = strcmp(name, "wait") != 0;

    ck_assert_int_eq(domus_outside_process_spawn(system_, name, takes ? &input_type : NULL,
                                                 takes ? &input : NULL, &options, &address),
                     0);
    return address;
}

DOMT_TEST(process_is_spawned_by_name_and_its_value_comes)
{
    domus_outside_message message;
    uint32_t number = 4;

    start_system_with_entries(1000 * DOMT_MS);
    domus_outsider *self = domt_attach_outsider(system_);
    atomic_store(&hold, true);
    domus_address process = spawn_process_of_entry("double", 21, domus_outsider_address(self));
    DOMT_WAIT_FOR(10, atomic_load(&works_begun) == 1);
    /* While the work blocks, the process goes on and answers an ask. */
    ck_assert_int_eq(domus_outsider_ask(self, process, &domt_number_type, &number, 0, NULL), 0);
    atomic_store(&hold, false);
    ck_assert_uint_eq(domt_receive_number(self, &value_type, &message), 42);
    ck_assert(domus_address_equals(message.sender, process));
    /* The work of this process fails, and its result must be sent to nobody. */
    process = spawn_process_of_entry("double", 0, domus_outsider_address(self));
    ck_assert_uint_eq(domt_receive_number(self, &domt_owner_type, &message), EDOM);
    (void)spawn_process_of_entry("double", 0, (domus_address){0});
    DOMT_WAIT_FOR(10, atomic_load(&closes) == 3);
    ck_assert_uint_eq(atomic_load(&domt_released), 1);
    ck_assert_int_eq(domus_outside_detach(self), 0);
    ck_assert_uint_eq(atomic_load(&domt_released), 2);
    domt_end_system(system_);
}

DOMT_TEST(wrong_entry_point_is_refused)
{
    domus_config config = domt_config_of_threads(1);
    char text[256], names[DOMUS_ENTRIES_MAX][16];
    domus_address address;
    uint32_t number = 1;
    char long_name[DOMUS_PROCESS_METHOD_MAX + 2] = {0};
    static const domus_process no_step = {.name = "no step"};

    memset(long_name, 'a', DOMUS_PROCESS_METHOD_MAX + 1);
    ck_assert_int_eq(domus_system_new(&config, text, sizeof text, &system_), 0);
    domus_entry entry = {.process = &doubling};
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EINVAL);
    entry.name = "";
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EINVAL);
    entry.name = long_name;
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EMSGSIZE);
    entry = (domus_entry){.name = "a", .process = &no_step};
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EINVAL);
    entry = (domus_entry){.name = "a", .process = &doubling, .input = &domt_owner_type};
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EINVAL);
    entry.input = &large_type;
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EMSGSIZE);
    entry = (domus_entry){.name = "a", .process = &doubling, .method = long_name};
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EMSGSIZE);
    entry.method = NULL;
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domus_entry_add(system_, &entry), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    for (uint32_t i = 0; i < DOMUS_ENTRIES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "entry %u", i);
        entry.name = names[i];
        ck_assert_int_eq(domus_entry_add(system_, &entry), 0);
        ck_assert_int_eq(domus_entry_add(system_, &entry), -EEXIST);
    }
    entry.name = "one more";
    ck_assert_int_eq(domus_entry_add(system_, &entry), -ENOSPC);
    ck_assert_int_eq(domus_outside_process_spawn(system_, "entry 1", NULL, NULL, NULL, &address),
                     -ESHUTDOWN);
    domus_system_free(system_);

    start_system_with_entries(1000 * DOMT_MS);
    ck_assert_int_eq(domus_entry_add(system_, &entry), -EALREADY);
    ck_assert_int_eq(domus_outside_process_spawn(system_, "none", NULL, NULL, NULL, &address),
                     -ENOENT);
    ck_assert_int_eq(domus_outside_process_spawn(system_, NULL, NULL, NULL, NULL, &address),
                     -ENOENT);
    ck_assert_int_eq(domus_outside_process_spawn(system_, "double", NULL, NULL, NULL, &address),
                     -EINVAL);
    ck_assert_int_eq(
        domus_outside_process_spawn(system_, "wait", &input_type, &number, NULL, &address),
        -EINVAL);
    /* init refuses a method that it does not know, so the new process ends */
    ck_assert_int_eq(
        domus_outside_process_spawn(system_, "other", &input_type, &number, NULL, &address), 0);
    DOMT_WAIT_FOR(10, atomic_load(&closes) == 1);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_int_eq(domus_outside_process_spawn(system_, "wait", NULL, NULL, NULL, &address),
                     -ESHUTDOWN);
    domus_system_free(system_);
}

DOMT_TEST(process_gets_a_last_event_and_ends_in_time)
{
    uint64_t timeout_ns = 20000 * DOMT_MS;

    atomic_store(&works_at_end, true);
    start_system_with_entries(timeout_ns);
    for (int i = 0; i < 200; i++)
        (void)spawn_process_of_entry("wait", 0, (domus_address){0});
    uint64_t before_ns = domt_now_ns();
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_lt(domt_now_ns() - before_ns, timeout_ns);
    ck_assert_uint_eq(atomic_load(&cancels), 200);
    /* the process has begun all its work, which goes on after the last event */
    ck_assert_uint_eq(atomic_load(&works), 200);
    ck_assert_uint_eq(atomic_load(&closes), 200);
    ck_assert_uint_gt(atomic_load(&left_ns), timeout_ns - 10000 * DOMT_MS);
    ck_assert_uint_le(atomic_load(&left_ns), timeout_ns);
    ck_assert_str_eq(domus_system_left(system_), "");
    domus_system_free(system_);
}

DOMT_TEST(process_that_ignores_its_last_event_is_stopped)
{
    uint64_t timeout_ns = 150 * DOMT_MS;

    atomic_store(&ignores, true);
    start_system_with_entries(timeout_ns);
    (void)spawn_process_of_entry("wait", 0, (domus_address){0});
    uint64_t before_ns = domt_now_ns();
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_ge(domt_now_ns() - before_ns, timeout_ns);
    ck_assert_uint_eq(atomic_load(&cancels), 1);
    ck_assert_uint_eq(atomic_load(&closes), 1);
    ck_assert_str_eq(domus_system_left(system_), "");
    domus_system_free(system_);
}

/* The last event comes even though messages wait and a mailbox of the process is full. */
DOMT_TEST(last_event_does_not_wait_behind_mail)
{
    uint32_t number = 0;
    uint32_t sent = 0;

    start_system_with_entries(20000 * DOMT_MS);
    domus_address process = spawn_process_of_entry("wait", 0, (domus_address){0});
    while (sent < 200000) {
        int result = domus_outside_notice(system_, process, &domt_number_type, &number);
        ck_assert(result == 0 || result == -ENOBUFS);
        sent++;
    }
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_eq(atomic_load(&cancels), 1);
    ck_assert_uint_eq(atomic_load(&closes), 1);
    domus_system_free(system_);
}

DOMT_TEST(work_is_waited_for_when_the_process_is_stopped)
{
    start_system_with_entries(20000 * DOMT_MS);
    atomic_store(&hold, true);
    domus_address process = spawn_process_of_entry("double", 3, (domus_address){0});
    DOMT_WAIT_FOR(10, atomic_load(&works_begun) == 1);
    ck_assert_int_eq(domus_outside_stop(system_, process), 0);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&closes), 0);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(10, atomic_load(&closes) == 1);
    ck_assert_uint_eq(atomic_load(&works), 1);
    domt_end_system(system_);
}

/* --- many pieces of work ---------------------------------------------------------------------- */

typedef struct many {
    uint32_t numbers[DOMUS_PROCESS_WORKS_MAX];
    uint32_t tags_sum;
    uint32_t got;
    uint32_t wanted; /* number of pieces of work beyond the first ones */
} many;

static int add_results_of_many_works(domus_stack *stack, void *self,
                                     const domus_process_event *events, uint32_t count,
                                     domus_process_output *out)
{
    many *state = self;

    if (count == 0) {
        for (uint32_t i = 0; i < DOMUS_PROCESS_WORKS_MAX; i++) {
            state->numbers[i] = i + 1;
            ck_assert_int_eq(
                domus_process_work(out, block_and_double_number, &state->numbers[i], i), 0);
        }
        ck_assert_int_eq(domus_process_work(out, block_and_double_number, state->numbers, 0),
                         -ENOBUFS);
        ck_assert_int_eq(
            domus_process_work(out, block_and_double_number, state->numbers, UINT64_MAX), -EINVAL);
    }
    /* at the first results there is room for as many more pieces of work as have ended */
    for (uint32_t i = 0; state->got == 0 && i <= count && count != 0; i++)
        ck_assert_int_eq(domus_process_work(out, block_and_double_number, state->numbers, 0),
                         i < count ? 0 : -ENOBUFS);
    state->wanted += state->got == 0 ? count : 0;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(*(const int *)events[i].data, (int)(events[i].tag + 1) * 2);
        state->tags_sum += (uint32_t)events[i].tag;
        state->got++;
    }
    atomic_store(&seen, state->got);
    if (state->got == DOMUS_PROCESS_WORKS_MAX + state->wanted)
        end_process_and_try_to_end_again(out, &value_type, state->tags_sum);
    return 0;
}

static int init_process_of_many_works(domus_stack *stack, void *self, const char *method,
                                      const domus_type *type, const void *input)
{
    return 0;
}

static const domus_process many_works = {.name = "many",
                                         .state_size = sizeof(many),
                                         .init = init_process_of_many_works,
                                         .step = add_results_of_many_works};

DOMT_TEST(as_many_works_as_allowed_end_once_each)
{
    domus_config config = domt_config_of_threads(2);
    char text[256];
    domus_address address;
    domus_outside_message message;
    const domus_entry entry = {.name = "many", .process = &many_works};

    ck_assert_int_eq(domus_system_new(&config, text, sizeof text, &system_), 0);
    ck_assert_int_eq(domus_entry_add(system_, &entry), 0);
    ck_assert_int_eq(domus_system_start(system_), 0);
    domus_outsider *self = domt_attach_outsider(system_);
    const domus_entry_options options = {.result_to = domus_outsider_address(self)};
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(
            domus_outside_process_spawn(system_, "many", NULL, NULL, &options, &address), 0);
        ck_assert_uint_eq(domt_receive_number(self, &value_type, &message),
                          DOMUS_PROCESS_WORKS_MAX * (DOMUS_PROCESS_WORKS_MAX - 1) / 2);
    }
    ck_assert_int_eq(domus_outside_detach(self), 0);
    domt_end_system(system_);
}
DOMT_SUITE(60)
