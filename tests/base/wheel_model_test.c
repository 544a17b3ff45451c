/* base/wheel.c agrees with a sorted reference in random runs: arm, cancel, advance, take in part or
 * in full, over distances from nothing to beyond the wheel's reach. A failure names its seed. */
#include "base/wheel.h"

#include "base/random.h"
#include "tests/support/suite.h"

#define TICK  DOMI_WHEEL_TICK_NS
#define NODES 48
#define SEEDS 2000
#define STEPS 400

struct entry {
    domi_wheel_node node;
    bool armed;
    bool due;
    /* tick at which the timer should fire; if its time was past, the tick in which it was armed */
    uint64_t tick;
};

struct run {
    domi_random random;
    uint64_t seed;
    uint64_t now_ns;
    domi_wheel wheel;
    struct entry entries[NODES];
};

/* Assert `holds`, and on failure print the seed. Check logs each assertion that holds, so of
 * millions only a failure is handed to it. */
static void check_condition(bool holds, uint64_t seed, const char *what)
{
    if (!holds)
        ck_abort_msg("seed %llu: %s", (unsigned long long)seed, what);
}

static uint64_t random_distance(domi_random *random)
{
    /* delays of up to 2^54 ns, which is 200 days */
    uint64_t magnitude = domi_random_below(random, 42);

    return domi_random_next(random) >> (63 - magnitude) << domi_random_below(random, 13);
}

static void arm_timer(struct run *run, struct entry *entry)
{
    uint64_t distance = random_distance(&run->random);
    uint64_t expires = run->now_ns + distance;
    uint64_t handed_out = run->now_ns / TICK;

    if (domi_random_below(&run->random, 8) == 0)
        expires = distance > run->now_ns ? 0 : run->now_ns - distance;
    domi_wheel_arm(&run->wheel, &entry->node, expires);
    entry->armed = true;
    entry->due = false;
    entry->tick = (expires + TICK - 1) / TICK;
    if (entry->tick < handed_out)
        entry->tick = handed_out;
}

static void advance_wheel(struct run *run)
{
    uint64_t next = domi_wheel_next_ns(&run->wheel);

    if (next > run->now_ns && next != UINT64_MAX && domi_random_below(&run->random, 2) == 0)
        run->now_ns = next;
    else
        run->now_ns += random_distance(&run->random) >> domi_random_below(&run->random, 10);
    domi_wheel_advance(&run->wheel, run->now_ns);
    for (int i = 0; i < NODES; i++)
        if (run->entries[i].armed && run->entries[i].tick <= run->now_ns / TICK)
            run->entries[i].due = true;
}

static struct entry *first_due(struct run *run)
{
    struct entry *first = NULL;

    for (int i = 0; i < NODES; i++) {
        struct entry *entry = &run->entries[i];
        if (entry->due && (first == NULL || entry->tick < first->tick))
            first = entry;
    }
    return first;
}

static void take_timer(struct run *run)
{
    struct entry *expected = first_due(run);
    /* the node is the first member of the entry */
    struct entry *taken = (struct entry *)domi_wheel_take(&run->wheel);

    if (expected == NULL) {
        check_condition(taken == NULL, run->seed, "fired early");
        return;
    }
    check_condition(taken != NULL, run->seed, "not fired");
    check_condition(taken->due, run->seed, "one fired that is not due");
    check_condition(taken->tick == expected->tick, run->seed, "not in order");
    check_condition(!domi_wheel_is_armed(&taken->node), run->seed, "taken and armed");
    taken->armed = taken->due = false;
}

/* Check that next_ns is not later than the first timer, and is later than now if no timer is
 * due. */
static void expect_next(struct run *run)
{
    uint64_t next = domi_wheel_next_ns(&run->wheel);
    uint64_t first_tick = UINT64_MAX;
    uint32_t armed = 0;
    bool waiting = false;

    for (int i = 0; i < NODES; i++) {
        struct entry *entry = &run->entries[i];
        check_condition(entry->armed == domi_wheel_is_armed(&entry->node), run->seed, "armed");
        if (!entry->armed)
            continue;
        armed++;
        waiting = waiting || entry->tick <= run->now_ns / TICK;
        if (entry->tick < first_tick)
            first_tick = entry->tick;
    }
    check_condition(run->wheel.count == armed, run->seed, "count");
    if (waiting)
        check_condition(next == 0, run->seed, "sleeps over what is due");
    else if (armed == 0)
        check_condition(next == UINT64_MAX, run->seed, "waits for nothing");
    else
        check_condition(next > run->now_ns && next <= first_tick * TICK, run->seed, "next");
}

/* Check that a bit of the map is set exactly for each slot that is not empty, and that the slot of
 * the present time is empty. */
static void expect_sound(struct run *run)
{
    domi_wheel *wheel = &run->wheel;

    for (unsigned level = 0; level < DOMI_WHEEL_LEVELS; level++) {
        for (unsigned slot = 0; slot < DOMI_WHEEL_SLOTS; slot++) {
            domi_wheel_node *head = &wheel->slots[level][slot];
            bool bit = (wheel->occupied[level] >> slot & 1) != 0;
            check_condition(bit == (head->next != head), run->seed, "bit");
        }
        uint64_t slot = wheel->tick >> (level * DOMI_WHEEL_BITS) & (DOMI_WHEEL_SLOTS - 1);
        check_condition(level == 0 || (wheel->occupied[level] >> slot & 1) == 0, run->seed,
                        "not spread");
    }
}

static void do_random_step(struct run *run)
{
    struct entry *entry = &run->entries[domi_random_below(&run->random, NODES)];
    uint64_t kind = domi_random_below(&run->random, 10);

    if (kind < 5 && !entry->armed) {
        arm_timer(run, entry);
    } else if (kind < 6) {
        domi_wheel_cancel(&run->wheel, &entry->node);
        entry->armed = entry->due = false;
    } else if (kind < 8) {
        advance_wheel(run);
    } else {
        bool all = domi_random_below(&run->random, 2) == 0;
        do
            take_timer(run);
        while (all && first_due(run) != NULL);
    }
}

DOMT_TEST(wheel_does_what_a_sorted_list_does)
{
    static struct run run;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        run = (struct run){.seed = seed};
        domi_random_init(&run.random, seed);
        run.now_ns = random_distance(&run.random);
        domi_wheel_init(&run.wheel, run.now_ns);
        for (int i = 0; i < STEPS; i++) {
            do_random_step(&run);
            expect_next(&run);
        }
        expect_sound(&run);
    }
}

/* A thread that sleeps until next_ns fires each timer within its tick, and wakes at most once per
 * level and timer. */
DOMT_TEST(wheel_wakes_a_sleeper_in_time_and_seldom)
{
    static struct run run;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        unsigned wakes = 0;
        uint64_t next;

        run = (struct run){.seed = seed};
        domi_random_init(&run.random, seed);
        domi_wheel_init(&run.wheel, 0);
        for (int i = 0; i < NODES; i++) {
            uint64_t expires = 1 + domi_random_next(&run.random) % (UINT64_C(1) << (10 + i % 40));
            domi_wheel_arm(&run.wheel, &run.entries[i].node, expires);
        }
        while ((next = domi_wheel_next_ns(&run.wheel)) != UINT64_MAX) {
            domi_wheel_node *node;

            check_condition(next > run.now_ns, seed, "spins");
            run.now_ns = next;
            domi_wheel_advance(&run.wheel, next);
            while ((node = domi_wheel_take(&run.wheel)) != NULL) {
                check_condition(node->expires_ns <= next, seed, "early");
                check_condition(next - node->expires_ns < TICK, seed, "late");
            }
            wakes++;
        }
        ck_assert_uint_eq(run.wheel.count, 0);
        ck_assert_uint_le(wakes, NODES * DOMI_WHEEL_LEVELS);
    }
}

DOMT_SUITE(60)
