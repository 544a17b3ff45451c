/* The hooks of a system. Its allocator gets each byte back, whichever thread frees it, and a
 * refused allocation is -ENOMEM. Its log gets the right lines, and not too many of them. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <domus/blocking.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- a bank that counts what it has lent ------------------------------------------------------ */

typedef struct bank {
    domus_allocator allocator;
    /* Numbers of allocations, bytes and mappings that were not given back yet. */
    atomic_uint_fast64_t blocks, bytes, maps, mapped_bytes;
    atomic_uint_fast64_t calls;
    atomic_int_fast64_t passes; /* number of allocations that still succeed; below 0: all of them */
} bank;

static bool is_allocation_refused(bank *from)
{
    atomic_fetch_add(&from->calls, 1);
    if (atomic_load(&from->passes) < 0)
        return false;
    if (atomic_fetch_sub(&from->passes, 1) > 0)
        return false;
    atomic_store(&from->passes, 0);
    return true;
}

static void *allocate_and_count(void *context, size_t bytes)
{
    bank *from = context;
    void *memory = is_allocation_refused(from) ? NULL : calloc(1, bytes);

    if (memory != NULL) {
        atomic_fetch_add(&from->blocks, 1);
        atomic_fetch_add(&from->bytes, bytes);
    }
    return memory;
}

static void free_and_count_down(void *context, void *memory, size_t bytes)
{
    bank *to = context;

    atomic_fetch_sub(&to->blocks, 1);
    atomic_fetch_sub(&to->bytes, bytes);
    free(memory);
}

static void *map_pages_and_count(void *context, size_t bytes)
{
    bank *from = context;

    ck_assert_uint_eq(bytes % 4096, 0);
    if (is_allocation_refused(from))
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    atomic_fetch_add(&from->maps, 1);
    atomic_fetch_add(&from->mapped_bytes, bytes);
    return memory;
}

static void unmap_pages_and_count_down(void *context, void *memory, size_t bytes)
{
    bank *to = context;

    atomic_fetch_sub(&to->maps, 1);
    atomic_fetch_sub(&to->mapped_bytes, bytes);
    ck_assert_int_eq(munmap(memory, bytes), 0);
}

static void init_counting_allocator(bank *opened)
{
    memset(opened, 0, sizeof *opened);
    opened->allocator = (domus_allocator){allocate_and_count, free_and_count_down,
                                          map_pages_and_count, unmap_pages_and_count_down, opened};
    atomic_store(&opened->passes, -1);
}

static bool is_all_memory_given_back(bank *one)
{
    return atomic_load(&one->blocks) == 0 && atomic_load(&one->bytes) == 0 &&
           atomic_load(&one->maps) == 0 && atomic_load(&one->mapped_bytes) == 0;
}

/* --- actors that want memory for all that they do --------------------------------------------- */

static const domus_type large_type = {.name = "large", .size = 60000};
static const domus_type work_type = {.name = "work"};
static const domus_type small_type = {.name = "small", .size = 8};

static char bytes[60000] = "large";
static atomic_int unexpected; /* number of results that were errors other than -ENOMEM */
static atomic_int in_vain;    /* number of results that were -ENOMEM */

static int count_result_if_out_of_memory(int result)
{
    if (result == -ENOMEM)
        atomic_fetch_add(&in_vain, 1);
    else if (result < 0)
        atomic_store(&unexpected, result);
    return result;
}

static int ignore_message(void *argument)
{
    return 0;
}

static int reply_bytes_after_work(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_result_if_out_of_memory(answer->error);
    if (answer->error != 0)
        return answer->error;
    return domus_reply(stack, &large_type, bytes);
}

static int reply_same_large_message(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &large_type, payload);
}

static const domus_behaviour child = {
    .name = "child",
    .state_size = 5000,
    .on = (const domus_on[]){{&large_type, reply_same_large_message, DOMUS_FRAME_MAX}, {0}}};

/* Let an actor allocate in many ways: it spawns a child, begins blocking work, and arms a timer. */
static int allocate_in_many_ways(domus_stack *stack, void *self, const void *payload)
{
    domus_address address;

    count_result_if_out_of_memory(domus_spawn(stack, &child, NULL, &address));
    count_result_if_out_of_memory(
        domus_after(stack, 60000 * DOMT_MS, &small_type, "a small", NULL));
    return count_result_if_out_of_memory(
        domus_blocking(stack, ignore_message, NULL, reply_bytes_after_work));
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = 3000,
    .on = (const domus_on[]){
        {&work_type, allocate_in_many_ways, 100}, {&large_type, reply_same_large_message, 0}, {0}}};

static const domus_behaviour echoing = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {domt_on_read_echo, 0}};

static const domus_listener_config listeners[] = {
    {.name = "echo", .address = "127.0.0.1:0", .backlog = 16}};

static domus_config config_with_small_ring(void)
{
    domus_config config = domt_config_of_threads(2);

    config.listeners = listeners;
    config.listener_count = 1;
    config.io.ring_entries = 16;
    config.io.completion_entries = 32;
    config.names.max = 16;
    return config;
}

/* Use all functions of a system that a program uses; any thread may call this. */
static void use_all_functions_of_system(domus_system *system, bool connects)
{
    static char text[1 << 16];
    domus_spawn_options named = {.name = "worker", .passivate_after_ns = 60000 * DOMT_MS};
    domus_address address = {NULL, 0};
    domus_outside_reply reply = {.buffer = text, .size = sizeof text};
    uint16_t port = 0;

    if (count_result_if_out_of_memory(
            domus_outside_spawn_with(system, &worker, NULL, &named, &address)) == 0) {
        count_result_if_out_of_memory(
            domus_outside_ask(system, address, &work_type, NULL, 0, &reply));
        count_result_if_out_of_memory(
            domus_outside_ask(system, address, &large_type, bytes, 0, &reply));
        count_result_if_out_of_memory(domus_outside_notice(system, address, &large_type, bytes));
        count_result_if_out_of_memory(domus_outside_letters(system, address, DOMUS_LETTERS_DEAD));
    }
    domus_group group;
    count_result_if_out_of_memory(domus_outside_group_open(system, "group", &group));
    const domus_spawn_options own_thread = {.detached = true};
    if (count_result_if_out_of_memory(
            domus_outside_spawn_with(system, &child, NULL, &own_thread, &address)) == 0)
        count_result_if_out_of_memory(
            domus_outside_ask(system, address, &large_type, bytes, 0, &reply));
    count_result_if_out_of_memory(domus_dump(system, text, sizeof text));
    int served = count_result_if_out_of_memory(domus_serve(system, "echo", &echoing, NULL, &port));
    if (connects && served == 0) {
        int fd = domt_connect_to_port(port);
        ck_assert(domt_send_and_get_echo(fd, "hello"));
        close(fd);
    }
}

DOMT_TEST(hooks_get_all_allocated_memory_back)
{
    domus_config config = config_with_small_ring();
    domus_system *systems[3] = {NULL, NULL, NULL};
    static bank banks[2];

    /* Three systems run at the same time: two with allocators of their own, and one without. */
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            init_counting_allocator(&banks[i]);
        const domus_hooks hooks = {.allocator = i < 2 ? &banks[i].allocator : NULL};
        ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &systems[i]), 0);
        ck_assert_int_eq(domus_system_start(systems[i]), 0);
    }
    use_all_functions_of_system(systems[0], true);
    uint64_t calls = atomic_load(&banks[0].calls);
    ck_assert_uint_gt(calls, 30);
    use_all_functions_of_system(systems[2], true);
    use_all_functions_of_system(systems[1], true);
    ck_assert_uint_eq(atomic_load(&banks[0].calls), calls);
    ck_assert_uint_gt(atomic_load(&banks[1].calls), 30);
    ck_assert_int_eq(atomic_load(&unexpected), 0);
    ck_assert_int_eq(atomic_load(&in_vain), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_ge(domus_system_stop(systems[i]), 0);
        ck_assert(i == 2 || !is_all_memory_given_back(&banks[i]));
        domus_system_free(systems[i]);
        ck_assert(i == 2 || is_all_memory_given_back(&banks[i]));
    }
}

DOMT_TEST(system_that_never_started_gives_its_memory_back)
{
    domus_config config = config_with_small_ring();
    domus_system *system = NULL;
    static bank only;
    const domus_hooks hooks = {.allocator = &only.allocator};

    init_counting_allocator(&only);
    ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &system), 0);
    ck_assert(!is_all_memory_given_back(&only));
    domus_system_free(system);
    ck_assert(is_all_memory_given_back(&only));
    config.scheduler.io_ratio = 0;
    ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &system), -EINVAL);
    ck_assert(is_all_memory_given_back(&only));
}

/* Run a system with these hooks from its start to its end. Returns true if no call has failed. */
static bool run_system_with_hooks(const domus_config *config, const domus_hooks *hooks)
{
    char error[256] = "";
    domus_system *system = NULL;
    int result = domus_system_new_with(config, hooks, error, sizeof error, &system);

    atomic_store(&in_vain, 0);
    if (count_result_if_out_of_memory(result) != 0) {
        ck_assert_str_ne(error, "");
        return false;
    }
    result = domus_system_start(system);
    ck_assert(result == 0 || domus_system_error(system)[0] != '\0');
    if (count_result_if_out_of_memory(result) == 0) {
        use_all_functions_of_system(system, false);
        ck_assert_int_eq(domus_system_stop(system), 0);
    }
    domus_system_free(system);
    return atomic_load(&in_vain) == 0;
}

DOMT_TEST(each_refused_allocation_is_told_and_leaks_nothing)
{
    domus_config config = config_with_small_ring();
    static bank only;
    const domus_hooks hooks = {.allocator = &only.allocator};
    int passes = 0;
    bool clean;

    do {
        init_counting_allocator(&only);
        atomic_store(&only.passes, passes);
        clean = run_system_with_hooks(&config, &hooks);
        ck_assert_msg(is_all_memory_given_back(&only), "after %d", passes);
        ck_assert_int_eq(atomic_load(&unexpected), 0);
        ck_assert_int_lt(passes, 400);
        /* Let each of the first allocations be the one from which on all fail; under a sanitizer,
         * take later ones in larger steps. */
        passes += passes < 40 || !DOMT_SANITIZED ? 1 : 3;
    } while (!clean);
    ck_assert_int_gt(passes, 30);
}

/* --- the log ---------------------------------------------------------------------------------- */

#define LINES_MAX 4096

static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    atomic_uint count;
    atomic_uint by_level[3];
    uint32_t thread[LINES_MAX];
    char text[LINES_MAX][DOMUS_LOG_TEXT_MAX + 1];
} lines;

static void record_log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    ck_assert_ptr_eq(context, &lines);
    ck_assert_ptr_null(strchr(text, '\n'));
    pthread_mutex_lock(&lines_mutex);
    unsigned place = atomic_load(&lines.count);
    ck_assert_uint_lt(place, LINES_MAX);
    lines.thread[place] = thread;
    memcpy(lines.text[place], text, strlen(text) + 1);
    atomic_store(&lines.count, place + 1); /* from now on the test may read this line */
    pthread_mutex_unlock(&lines_mutex);
    atomic_fetch_add(&lines.by_level[level], 1);
}

static domus_system *start_system_with_log_hook(const domus_config *config)
{
    const domus_hooks hooks = {.log = record_log_line, .log_context = &lines};
    domus_system *system = NULL;

    ck_assert_int_eq(domus_system_new_with(config, &hooks, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    return system;
}

static bool was_logged_by_thread(uint32_t thread, const char *text)
{
    for (unsigned i = 0; i < atomic_load(&lines.count); i++) {
        if (lines.thread[i] == thread && strstr(lines.text[i], text) != NULL)
            return true;
    }
    return false;
}

static const domus_type fail_type = {.name = "fail"};
static const domus_type begin_type = {.name = "begin"};

static int fail_with_eproto(domus_stack *stack, void *self, const void *payload)
{
    return -EPROTO;
}

static int refuse_to_mount(domus_stack *stack, void *self)
{
    return -ENXIO;
}

static const domus_behaviour failing = {
    .name = "failing\nactor", .on = (const domus_on[]){{&fail_type, fail_with_eproto, 0}, {0}}};

static const domus_behaviour unborn = {.name = "unborn", .on_mount = refuse_to_mount};

static domus_address child_address;
static atomic_int spawned;

static int spawn_failing_child(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_spawn(stack, &failing, NULL, &child_address), 0);
    atomic_store(&spawned, 1);
    return 0;
}

static const domus_supervision once = {.intensity = 1, .otherwise = DOMUS_RESTART};

static const domus_behaviour parent = {
    .name = "parent",
    .on = (const domus_on[]){{&begin_type, spawn_failing_child, 0}, {0}},
    .supervision = &once};

DOMT_TEST(log_hook_hears_failures_and_restarts)
{
    domus_config config = domt_config_of_threads(2);
    domus_system *system = start_system_with_log_hook(&config);
    domus_address above = domt_spawn(system, 1, &parent, NULL);
    domus_address address;

    domt_send_notice(system, above, &begin_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&spawned) == 1);
    domt_send_notice(system, child_address, &fail_type, NULL);
    DOMT_WAIT_FOR(10, was_logged_by_thread(1, "is restarted: EPROTO (-71)"));
    ck_assert_uint_eq(domt_profile_of_thread(system, 1).restarts, 1);
    ck_assert(was_logged_by_thread(1, "actor failing\\nactor"));
    ck_assert(was_logged_by_thread(1, "has failed: EPROTO (-71)"));
    domt_send_notice(system, child_address, &fail_type, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 1).stops == 2);
    ck_assert(was_logged_by_thread(1, "escalates the failure of a child: EPROTO (-71)"));
    ck_assert(was_logged_by_thread(1, "is ended: no rule is for its failure: EPROTO (-71)"));
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &unborn, NULL, &address), 0);
    DOMT_WAIT_FOR(10, was_logged_by_thread(
                          0, "is ended: no rule is for its failure: ENXIO (-6), and it was not "
                             "mounted"));
    /* the address is given as thread, place and lease, and not as a pointer */
    ck_assert(was_logged_by_thread(0, "actor unborn 0/"));
    ck_assert(!was_logged_by_thread(0, "0x") && !was_logged_by_thread(1, "0x"));
    ck_assert_uint_eq(atomic_load(&lines.by_level[DOMUS_LOG_ERROR]), 3);
    domt_end_system(system);
}

static atomic_bool may_go;

static int block_work_until_allowed(void *argument)
{
    atomic_store(&spawned, 1); /* from here on the test waits for the end of the spawn */
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static int begin_work_until_allowed(domus_stack *stack, void *self, const void *payload)
{
    return domus_blocking(stack, block_work_until_allowed, NULL, reply_bytes_after_work);
}

static const domus_behaviour hanging = {
    .name = "hanging", .on = (const domus_on[]){{&begin_type, begin_work_until_allowed, 0}, {0}}};

DOMT_TEST(actor_that_is_left_at_a_stop_is_logged)
{
    domus_config config = domt_config_of_threads(1);
    config.shutdown.actor_timeout_ns = 50 * DOMT_MS;
    domus_system *system = start_system_with_log_hook(&config);
    domus_address address = domt_spawn(system, 0, &hanging, NULL);

    domt_send_notice(system, address, &begin_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&spawned) == 1);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert(was_logged_by_thread(DOMUS_LOG_OUTSIDE, "not stopped in time: thread 0: hanging"));
    atomic_store(&may_go, true);
    domus_system_free(system);
}

#define FAILURES 3000

DOMT_TEST(flood_of_log_lines_is_bounded_and_counted)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = start_system_with_log_hook(&config);
    domus_address address = domt_spawn(system, 0, &failing, NULL);

    for (int i = 0; i < FAILURES; i++)
        domt_send_notice(system, address, &fail_type, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).notices == FAILURES);
    domus_profile profile = domt_profile_of_thread(system, 0);
    ck_assert_uint_gt(profile.log_lines_dropped, 0);
    /* The flood may take a few seconds, and each of these seconds has one more line, which tells
     * how many lines of the second before were dropped. */
    uint64_t passed = FAILURES - profile.log_lines_dropped;
    uint64_t about = atomic_load(&lines.count) - passed;
    ck_assert_uint_le(about, passed / DOMUS_LOG_LINES_PER_SECOND + 1);
    ck_assert_uint_lt(passed, FAILURES / 2);
    domt_pause_ns(1100 * DOMT_MS);
    domt_send_notice(system, address, &fail_type, NULL);
    DOMT_WAIT_FOR(10, was_logged_by_thread(0, " lines of this thread were dropped"));
    domt_end_system(system);
}

DOMT_SUITE(120)
