/* Makes and changes made-up looks at a program. */
#include "tests/observe/looks.h"

#include "tests/support/suite.h"

#define WALL_NS (DOMT_LOOKS_SECONDS * UINT64_C(1000000000))

static const domi_look_settings defaults = {
    .io_ratio = 50,
    .min_budget_ns = 50000,
    .min_budget_busy_ns = 50000,
    .max_budget_ns = 10000000,
    .wait_max_ns = 4000000,
    .messages_per_run = 64,
    .mailbox_max = 32768,
    .conversations_max = 65536,
    .timers_max = 4194304,
    .steal_enabled = 1,
    .steal_floor = 32,
    .steal_aggression = 128,
    .steal_min_run_ns = 2000,
    .stand_in_ns = 100000,
    .buffers_count = 1024,
    .send_high = 262144,
    .send_low = 65536,
    .send_timeout_ns = 30000000000,
    .requests_max = 128,
    .connections_max = 10000,
    .first_byte_ns = 60000000000,
    .address_percent = 10,
    .loopback_percent = 100,
    .helpers_max = 64,
    .names_max = 4,
    .detached_max = 64,
    .stall_ns = 25000000,
    .log_level = 2,
    .log_lines = 1024,
};

static void fill_look_of_healthy_program(domi_look *look)
{
    ck_assert_int_eq(domi_look_allocate_lists(look, 2, 2, 2, 1), 0);
    look->pid = 7;
    look->settings = defaults;
    look->machine = (domi_look_machine){.cpus = 4, .cpus_online = 4, .files_max = 65536};
    domi_look_copy_name(look->program, DOMI_LOOK_NAME, "shop");
    domi_look_copy_name(look->level, DOMI_LOOK_NAME, "counters");
    domi_look_copy_name(look->backend, DOMI_LOOK_NAME, "io_uring");
    for (uint32_t i = 0; i < 2; i++) {
        domi_look_copy_name(look->runners[i].pool, DOMI_LOOK_NAME, "work");
        look->runners[i].runner = i;
        domi_look_copy_name(look->actors[i].name, DOMI_LOOK_NAME, "worker");
        look->actors[i].thread = i;
        look->actors[i].counts.alive = 8;
    }
}

void domt_looks_set_time_shares(domt_looks *looks, uint32_t thread, uint32_t state, uint32_t sleep)
{
    domi_look_thread *to = &looks->after.threads[thread];

    to->phases = (domi_look_phases){.state = WALL_NS / 100 * state,
                                    .sleep = WALL_NS / 100 * sleep,
                                    .other = WALL_NS / 100 * (100 - state - sleep)};
    to->times.cpu_ns = 1 + WALL_NS / 100 * (100 - sleep);
}

void domt_looks_set_number_of_actors(domt_looks *looks, uint64_t alive, uint32_t thread)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.actors[i].counts.alive = i == thread ? alive : 0;
}

void domt_looks_make_two_looks(domt_looks *looks)
{
    fill_look_of_healthy_program(&looks->before);
    fill_look_of_healthy_program(&looks->after);
    looks->after.now_ns = looks->after.uptime_ns = WALL_NS;
    looks->after.machine.cpu_ns = WALL_NS;
    looks->after.machine.idle_ns = 3 * WALL_NS;
    for (uint32_t i = 0; i < 2; i++) {
        domi_look_thread *to = &looks->after.threads[i];
        to->counters = (domi_look_counters){.wall_ns = WALL_NS,
                                            .iterations = 100000,
                                            .completions = 100000,
                                            .runs = 200000,
                                            .reads = 100000,
                                            .sent_bytes = 10000000};
        looks->before.threads[i].times.cpu_ns = 1;
        domt_looks_set_time_shares(looks, i, 40, 50);
        looks->after.runners[i].times =
            (domi_look_runner){.wall_ns = WALL_NS, .run_ns = WALL_NS / 2};
        looks->after.actors[i].counts = (domi_look_behaviour){.runs = 200000,
                                                              .run_ns = WALL_NS / 100 * 40,
                                                              .messages = 400000,
                                                              .waits = 100,
                                                              .wait_ns = 100 * UINT64_C(20000),
                                                              .alive = 8};
    }
}

void domt_looks_free_both(domt_looks *looks)
{
    domi_look_free_lists(&looks->before);
    domi_look_free_lists(&looks->after);
}

uint32_t domt_looks_judge_span(const domt_looks *looks, domi_finding ret_findings[DOMI_RULES_MAX])
{
    domi_span span;
    const char *why = domi_span_init(&looks->before, &looks->after, &span);

    ck_assert_msg(why == NULL, "%s", why);
    uint32_t count = domi_judge_span_by_all_rules(&span, ret_findings);
    domi_span_fini(&span);
    return count;
}

const domi_finding *domt_find_finding_of_rule(const domi_finding *findings, uint32_t count,
                                              const char *rule)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(findings[i].rule->name, rule) == 0)
            return &findings[i];
    }
    return NULL;
}
