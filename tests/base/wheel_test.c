/* base/wheel.c: one test for each property of the timer wheel, and random runs beside a sorted
 * reference. */
#include "base/random.h"
#include "base/wheel.h"
#include "tests/support/suite.h"

/* The timer wheel of base/wheel.c, with one test for each property; random runs beside a sorted
 * reference follow. */

#define TICK  DOMI_WHEEL_TICK_NS
#define S     (1000 * TICK)
#define DAY   (86400 * S)
#define START (12345 * TICK + 678)

static domi_wheel wheel;

/* Advance the wheel, take all timers that are due, and return how many there were. */
static unsigned advance_and_count_fired_timers(uint64_t now_ns)
{
    unsigned count = 0;

    domi_wheel_advance_to_time(&wheel, now_ns);
    while (domi_wheel_take_due_node(&wheel) != NULL)
        count++;
    return count;
}

static uint64_t round_time_up_to_tick(uint64_t ns)
{
    return (ns + TICK - 1) / TICK * TICK;
}

/* List delays of timers around each edge: of ticks, of levels, and of the wheel's reach. Returns
 * how many. */
static size_t list_delays_around_edges(uint64_t delays[256])
{
    size_t count = 0;

    for (uint64_t ticks = 1; ticks < UINT64_C(1) << 33; ticks *= 8)
        for (int around = -1; around <= 1; around++)
            for (int part = -1; part <= 1; part++)
                delays[count++] = ticks * TICK + (uint64_t)around * TICK + (uint64_t)part;
    return count;
}

DOMT_TEST(wheel_fires_each_timer_within_its_tick)
{
    uint64_t delays[256];
    size_t count = list_delays_around_edges(delays);

    for (size_t i = 0; i < count; i++) {
        for (uint64_t start = START; start < START + 70 * TICK; start += 23 * TICK + 7) {
            domi_wheel_node node;
            uint64_t expires = start + delays[i];

            if (delays[i] == 0 || delays[i] >= UINT64_MAX / 2)
                continue;
            domi_wheel_init(&wheel, start);
            domi_wheel_node_init(&node);
            domi_wheel_arm_node(&wheel, &node, expires);
            ck_assert_uint_eq(advance_and_count_fired_timers(expires - 1), 0);
            ck_assert(domi_wheel_is_armed(&node));
            ck_assert_uint_eq(advance_and_count_fired_timers(round_time_up_to_tick(expires)), 1);
            ck_assert(!domi_wheel_is_armed(&node));
            ck_assert_uint_eq(wheel.count, 0);
        }
    }
}

DOMT_TEST(wheel_fires_far_timers_within_their_tick)
{
    static const uint64_t delays[] = {63 * TICK,   64 * TICK, 65 * TICK,  4095 * TICK,
                                      4096 * TICK, 3600 * S,  DAY,        12 * DAY,
                                      13 * DAY,    400 * DAY, 3650 * DAY, 5000 * S};

    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        domi_wheel_node node;
        unsigned wakes = 0;
        uint64_t now;

        domi_wheel_init(&wheel, START);
        domi_wheel_node_init(&node);
        domi_wheel_arm_node(&wheel, &node, START + delays[i]);
        do {
            now = domi_wheel_next_ns(&wheel);
            ck_assert_uint_lt(now, START + delays[i] + TICK);
            ck_assert_uint_lt(++wakes, 310 + DOMI_WHEEL_LEVELS);
        } while (advance_and_count_fired_timers(now) == 0);
        ck_assert_uint_eq(now, round_time_up_to_tick(START + delays[i]));
        ck_assert_uint_eq(domi_wheel_next_ns(&wheel), UINT64_MAX);
    }
}

/* Arm timers while time goes on, so that timers of one tick start on different levels of the wheel;
 * the distance decides how often they cascade. Check that they fire in order. */
static void expect_timers_fire_in_order(uint64_t distance_ns)
{
    enum { count = 1000 };
    static domi_wheel_node nodes[count];
    domi_random random;
    domi_wheel_node *last = NULL, *node;
    unsigned taken = 0;

    domi_random_init(&random, 1);
    domi_wheel_init(&wheel, START);
    for (unsigned i = 0; i < count; i++) {
        uint64_t expires = START + distance_ns + domi_random_below(&random, 100 * TICK);
        domi_wheel_node_init(&nodes[i]);
        domi_wheel_arm_node(&wheel, &nodes[i], expires);
        domi_wheel_advance_to_time(&wheel, START + i * TICK);
    }
    domi_wheel_advance_to_time(&wheel, START + DAY);
    while ((node = domi_wheel_take_due_node(&wheel)) != NULL) {
        if (last != NULL) {
            ck_assert_uint_le(round_time_up_to_tick(last->expires_ns),
                              round_time_up_to_tick(node->expires_ns));
            ck_assert(round_time_up_to_tick(last->expires_ns) !=
                          round_time_up_to_tick(node->expires_ns) ||
                      last < node);
        }
        last = node;
        taken++;
    }
    ck_assert_uint_eq(taken, count);
}

DOMT_TEST(wheel_fires_in_order_of_tick_then_arming)
{
    expect_timers_fire_in_order(1010 * TICK);
    expect_timers_fire_in_order(5000 * TICK);
    expect_timers_fire_in_order(300 * S);
    expect_timers_fire_in_order(20000 * S);
}

DOMT_TEST(wheel_fires_past_timers_at_next_advance)
{
    domi_wheel_node past, now, later;

    domi_wheel_init(&wheel, START);
    domi_wheel_node_init(&past);
    domi_wheel_node_init(&now);
    domi_wheel_node_init(&later);
    domi_wheel_arm_node(&wheel, &later, START + TICK);
    domi_wheel_arm_node(&wheel, &past, 0);
    domi_wheel_arm_node(&wheel, &now, START / TICK * TICK);
    /* A timer without delay that is armed while others are taken waits for the next advance;
     * otherwise a loop that arms it again would never end. */
    ck_assert_ptr_null(domi_wheel_take_due_node(&wheel));
    ck_assert_uint_eq(domi_wheel_next_ns(&wheel), 0);
    domi_wheel_advance_to_time(&wheel, START);
    ck_assert_ptr_eq(domi_wheel_take_due_node(&wheel), &past);
    ck_assert_ptr_eq(domi_wheel_take_due_node(&wheel), &now);
    ck_assert_ptr_null(domi_wheel_take_due_node(&wheel));
    ck_assert_uint_eq(wheel.count, 1);
    ck_assert_uint_gt(domi_wheel_next_ns(&wheel), START);
}

DOMT_TEST(wheel_cancels_timers_in_every_state)
{
    domi_wheel_node a, b, c;

    domi_wheel_init(&wheel, START);
    domi_wheel_node_init(&a);
    domi_wheel_node_init(&b);
    domi_wheel_node_init(&c);
    domi_wheel_disarm_node(&wheel, &a); /* timer a is not armed, so cancelling it does nothing */
    domi_wheel_disarm_node(&wheel, &a);

    domi_wheel_arm_node(&wheel, &a, START + DAY);
    domi_wheel_disarm_node(&wheel, &a); /* timer a is alone in its slot of the wheel */
    ck_assert(!domi_wheel_is_armed(&a));
    ck_assert_uint_eq(domi_wheel_next_ns(&wheel), UINT64_MAX);

    domi_wheel_arm_node(&wheel, &a, 0);
    domi_wheel_disarm_node(&wheel, &a); /* timer a was armed for a time that had passed */
    ck_assert_uint_eq(domi_wheel_next_ns(&wheel), UINT64_MAX);

    domi_wheel_arm_node(&wheel, &a, START + 9 * TICK);
    domi_wheel_arm_node(&wheel, &b, START + 9 * TICK);
    domi_wheel_arm_node(&wheel, &c, START + 9 * TICK);
    domi_wheel_disarm_node(&wheel, &b); /* timer b lies between two others in their slot */
    domi_wheel_advance_to_time(&wheel, START + DAY);
    domi_wheel_disarm_node(&wheel, &a); /* timer a is due, and was not taken yet */
    ck_assert_ptr_eq(domi_wheel_take_due_node(&wheel), &c);
    domi_wheel_disarm_node(&wheel, &c); /* timer c was taken, so cancelling it does nothing */
    ck_assert_ptr_null(domi_wheel_take_due_node(&wheel));
    ck_assert_uint_eq(domi_wheel_next_ns(&wheel), UINT64_MAX);
    ck_assert_uint_eq(wheel.count, 0);
}

DOMT_TEST(fired_timer_may_arm_and_cancel_others)
{
    enum { count = 64 };
    domi_wheel_node nodes[count], *node;
    unsigned taken = 0;

    domi_wheel_init(&wheel, START);
    for (int i = 0; i < count; i++) {
        domi_wheel_node_init(&nodes[i]);
        domi_wheel_arm_node(&wheel, &nodes[i], START + TICK);
    }
    domi_wheel_advance_to_time(&wheel, START + 2 * TICK);
    /* Each timer that fires cancels its neighbour and arms itself again. */
    while ((node = domi_wheel_take_due_node(&wheel)) != NULL) {
        ck_assert_int_eq((node - nodes) % 2, 0);
        domi_wheel_disarm_node(&wheel, node + 1);
        domi_wheel_arm_node(&wheel, node, START + 4 * TICK);
        taken++;
    }
    ck_assert_uint_eq(taken, count / 2);
    ck_assert_uint_eq(wheel.count, count / 2);
    ck_assert_uint_eq(advance_and_count_fired_timers(START + 5 * TICK), count / 2);
}

DOMT_TEST(wheel_skips_idle_time_at_once)
{
    domi_wheel_node near, far;

    domi_wheel_init(&wheel, START);
    domi_wheel_node_init(&near);
    domi_wheel_node_init(&far);
    for (uint64_t now = START; now < START + 100 * 3650 * DAY; now += 3650 * DAY) {
        domi_wheel_arm_node(&wheel, &near, now + DAY);
        domi_wheel_arm_node(&wheel, &far, now + 3649 * DAY);
        ck_assert_uint_eq(advance_and_count_fired_timers(now + 3650 * DAY), 2);
        ck_assert_uint_eq(advance_and_count_fired_timers(now + 3650 * DAY), 0);
    }
}

DOMT_TEST(wheel_accepts_the_largest_time)
{
    domi_wheel_node node;

    domi_wheel_init(&wheel, START);
    domi_wheel_node_init(&node);
    domi_wheel_arm_node(&wheel, &node, UINT64_MAX);
    ck_assert_uint_eq(advance_and_count_fired_timers(START + 36500 * DAY), 0);
    ck_assert_uint_gt(domi_wheel_next_ns(&wheel), START + 36500 * DAY);
    advance_and_count_fired_timers(UINT64_MAX - TICK);
    ck_assert(domi_wheel_is_armed(&node));
    ck_assert_uint_eq(domi_wheel_next_ns(&wheel), UINT64_MAX);
    domi_wheel_disarm_node(&wheel, &node);
}

/* All timers lie in one slot of the wheel, so an operation that walked the slot's list would take
 * far too long. */
DOMT_TEST(wheel_arms_and_cancels_in_constant_time)
{
    enum { count = 1000000 };
    domi_wheel_node *nodes = calloc(count, sizeof *nodes);

    ck_assert_ptr_nonnull(nodes);
    domi_wheel_init(&wheel, START);
    for (size_t i = 0; i < count; i++)
        domi_wheel_arm_node(&wheel, &nodes[i], START + S);
    ck_assert_uint_eq(wheel.count, count);
    for (size_t i = 0; i < count; i++)
        domi_wheel_disarm_node(&wheel, &nodes[(uint64_t)i * 7919 % count]);
    ck_assert_uint_eq(wheel.count, 0);
    ck_assert_uint_eq(domi_wheel_next_ns(&wheel), UINT64_MAX);
    for (size_t i = 0; i < count; i++)
        domi_wheel_arm_node(&wheel, &nodes[i], START + i * 997 * TICK);
    ck_assert_uint_eq(advance_and_count_fired_timers(START + DAY), DAY / (997 * TICK) + 1);
    for (size_t i = 0; i < count; i++)
        domi_wheel_disarm_node(&wheel, &nodes[i]);
    ck_assert_uint_eq(wheel.count, 0);
    free(nodes);
}

/* --- wheel model ------------------------------------------------------------------------------ */

/* base/wheel.c agrees with a sorted reference in random runs: arm, cancel, advance, take in part
 * or in full, over distances from nothing to beyond the wheel's reach. A failure names its seed. */

#define NODES 48
#define SEEDS 2000
#define STEPS 400

struct entry {
    domi_wheel_node node;
    bool armed;
    bool due;
    /* tick in which the timer should fire; the tick of arming, if its time was past then */
    uint64_t tick;
};

struct run {
    domi_random random;
    uint64_t seed;
    uint64_t now_ns;
    domi_wheel wheel;
    struct entry entries[NODES];
};

/* Assert that `holds` is true, and print the seed if not. The test library logs each assertion that
 * holds, so of millions only a failure is handed to it. */
static void check_condition_of_seed(bool holds, uint64_t seed, const char *what)
{
    if (!holds)
        ck_abort_msg("seed %llu: %s", (unsigned long long)seed, what);
}

static uint64_t draw_random_delay(domi_random *random)
{
    /* random delays of timers: up to 2^54 ns, which are 200 days */
    uint64_t magnitude = domi_random_below(random, 42);

    return domi_random_next_bits(random) >> (63 - magnitude) << domi_random_below(random, 13);
}

static void arm_random_timer(struct run *run, struct entry *entry)
{
    uint64_t distance = draw_random_delay(&run->random);
    uint64_t expires = run->now_ns + distance;
    uint64_t handed_out = run->now_ns / TICK;

    if (domi_random_below(&run->random, 8) == 0)
        expires = distance > run->now_ns ? 0 : run->now_ns - distance;
    domi_wheel_arm_node(&run->wheel, &entry->node, expires);
    entry->armed = true;
    entry->due = false;
    entry->tick = (expires + TICK - 1) / TICK;
    if (entry->tick < handed_out)
        entry->tick = handed_out;
}

static void advance_wheel_by_random_time(struct run *run)
{
    uint64_t next = domi_wheel_next_ns(&run->wheel);

    if (next > run->now_ns && next != UINT64_MAX && domi_random_below(&run->random, 2) == 0)
        run->now_ns = next;
    else
        run->now_ns += draw_random_delay(&run->random) >> domi_random_below(&run->random, 10);
    domi_wheel_advance_to_time(&run->wheel, run->now_ns);
    for (int i = 0; i < NODES; i++)
        if (run->entries[i].armed && run->entries[i].tick <= run->now_ns / TICK)
            run->entries[i].due = true;
}

static struct entry *find_first_due_entry(struct run *run)
{
    struct entry *first = NULL;

    for (int i = 0; i < NODES; i++) {
        struct entry *entry = &run->entries[i];
        if (entry->due && (first == NULL || entry->tick < first->tick))
            first = entry;
    }
    return first;
}

static void take_and_check_due_timer(struct run *run)
{
    struct entry *expected = find_first_due_entry(run);
    /* The wheel's node is the first member of the entry. */
    struct entry *taken = (struct entry *)domi_wheel_take_due_node(&run->wheel);

    if (expected == NULL) {
        check_condition_of_seed(taken == NULL, run->seed, "fired early");
        return;
    }
    check_condition_of_seed(taken != NULL, run->seed, "not fired");
    check_condition_of_seed(taken->due, run->seed, "one fired that is not due");
    check_condition_of_seed(taken->tick == expected->tick, run->seed, "not in order");
    check_condition_of_seed(!domi_wheel_is_armed(&taken->node), run->seed, "taken and armed");
    taken->armed = taken->due = false;
}

/* Check that domi_wheel_next_ns() is not later than the first timer, and later than now if no timer
 * is due. */
static void check_next_time_of_wheel(struct run *run)
{
    uint64_t next = domi_wheel_next_ns(&run->wheel);
    uint64_t first_tick = UINT64_MAX;
    uint32_t armed = 0;
    bool waiting = false;

    for (int i = 0; i < NODES; i++) {
        struct entry *entry = &run->entries[i];
        check_condition_of_seed(entry->armed == domi_wheel_is_armed(&entry->node), run->seed,
                                "armed");
        if (!entry->armed)
            continue;
        armed++;
        waiting = waiting || entry->tick <= run->now_ns / TICK;
        if (entry->tick < first_tick)
            first_tick = entry->tick;
    }
    check_condition_of_seed(run->wheel.count == armed, run->seed, "count");
    if (waiting)
        check_condition_of_seed(next == 0, run->seed, "sleeps over what is due");
    else if (armed == 0)
        check_condition_of_seed(next == UINT64_MAX, run->seed, "waits for nothing");
    else
        check_condition_of_seed(next > run->now_ns && next <= first_tick * TICK, run->seed, "next");
}

/* Check that the wheel's map has a bit set exactly for each slot that is not empty, and that the
 * slot of the present time is empty. */
static void check_map_of_occupied_slots(struct run *run)
{
    domi_wheel *drawn = &run->wheel;

    for (unsigned level = 0; level < DOMI_WHEEL_LEVELS; level++) {
        for (unsigned slot = 0; slot < DOMI_WHEEL_SLOTS; slot++) {
            domi_wheel_node *head = &drawn->slots[level][slot];
            bool bit = (drawn->occupied[level] >> slot & 1) != 0;
            check_condition_of_seed(bit == (head->next != head), run->seed, "bit");
        }
        uint64_t slot = drawn->tick >> (level * DOMI_WHEEL_BITS) & (DOMI_WHEEL_SLOTS - 1);
        check_condition_of_seed(level == 0 || (drawn->occupied[level] >> slot & 1) == 0, run->seed,
                                "not spread");
    }
}

static void do_random_step_of_run(struct run *run)
{
    struct entry *entry = &run->entries[domi_random_below(&run->random, NODES)];
    uint64_t kind = domi_random_below(&run->random, 10);

    if (kind < 5 && !entry->armed) {
        arm_random_timer(run, entry);
    } else if (kind < 6) {
        domi_wheel_disarm_node(&run->wheel, &entry->node);
        entry->armed = entry->due = false;
    } else if (kind < 8) {
        advance_wheel_by_random_time(run);
    } else {
        bool all = domi_random_below(&run->random, 2) == 0;
        do
            take_and_check_due_timer(run);
        while (all && find_first_due_entry(run) != NULL);
    }
}

DOMT_TEST(wheel_fires_like_a_sorted_list)
{
    static struct run run;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        run = (struct run){.seed = seed};
        domi_random_init(&run.random, seed);
        run.now_ns = draw_random_delay(&run.random);
        domi_wheel_init(&run.wheel, run.now_ns);
        for (int i = 0; i < STEPS; i++) {
            do_random_step_of_run(&run);
            check_next_time_of_wheel(&run);
        }
        check_map_of_occupied_slots(&run);
    }
}

/* A thread that sleeps until domi_wheel_next_ns() fires each timer within its tick, and wakes at
 * most once for each level and timer. */
DOMT_TEST(wheel_wakes_sleeper_in_time_and_seldom)
{
    static struct run run;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        unsigned wakes = 0;
        uint64_t next;

        run = (struct run){.seed = seed};
        domi_random_init(&run.random, seed);
        domi_wheel_init(&run.wheel, 0);
        for (int i = 0; i < NODES; i++) {
            uint64_t expires =
                1 + domi_random_next_bits(&run.random) % (UINT64_C(1) << (10 + i % 40));
            domi_wheel_arm_node(&run.wheel, &run.entries[i].node, expires);
        }
        while ((next = domi_wheel_next_ns(&run.wheel)) != UINT64_MAX) {
            domi_wheel_node *node;

            check_condition_of_seed(next > run.now_ns, seed, "spins");
            run.now_ns = next;
            domi_wheel_advance_to_time(&run.wheel, next);
            while ((node = domi_wheel_take_due_node(&run.wheel)) != NULL) {
                check_condition_of_seed(node->expires_ns <= next, seed, "early");
                check_condition_of_seed(next - node->expires_ns < TICK, seed, "late");
            }
            wakes++;
        }
        ck_assert_uint_eq(run.wheel.count, 0);
        ck_assert_uint_le(wakes, NODES * DOMI_WHEEL_LEVELS);
    }
}

DOMT_SUITE(60)
