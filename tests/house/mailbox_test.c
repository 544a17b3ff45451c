/* house/message/mailbox.c: a house has two lanes (M6, M8), plain lists at home and one
 * compare-exchange from elsewhere. A batch is one message for many actors, and each of their homes
 * is told once. */
#include "base/random.h"
#include "house/dispatch/dispatch.h"
#include "house/message/arrivals.h"
#include "house/message/mailbox.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static domt_world world;
static domt_log logs[2];

/* The words that a put by the inbox lane would change: those of the house, the arrivals and returns
 * of its home, and the park word. */
typedef struct touched {
    uint64_t inbox;
    uint64_t life;
    const void *arrival_next;
    const void *arrivals;
    const void *remote;
    uint32_t park;
    uint32_t wakes;
} touched;

static touched read_shared_words(const domi_house *house)
{
    const domi_manager *home = house->home;

    return (touched){atomic_load(&house->inbox),        atomic_load(&house->life),
                     atomic_load(&house->arrival_next), atomic_load(&home->mail.arrivals),
                     atomic_load(&home->pool.remote),   atomic_load(&home->park),
                     world.wakes[home->index]};
}

static uint64_t depth_of_inbox(const domi_house *house)
{
    return atomic_load(&house->inbox) >> 48;
}

/* The order to an agent: send notes and questions to `to`, and check that only private lists
 * change. */
typedef struct burst {
    domus_address to;
    int64_t first;
    unsigned count;
    unsigned moved; /* number of sends after which a shared word had changed */
} burst;

static int send_notes_watching_shared_words(domus_stack *stack, void *burst_)
{
    burst *now = burst_;
    touched before = read_shared_words(now->to.house);

    for (unsigned i = 0; i < now->count; i++) {
        int64_t number = now->first + i;
        ck_assert_int_eq(domus_notice(stack, now->to, &domt_note, &number), 0);
        touched after = read_shared_words(now->to.house);
        now->moved += memcmp(&before, &after, sizeof before) != 0;
    }
    return 0;
}

static int send_question_watching_shared_words(domus_stack *stack, void *burst_)
{
    burst *now = burst_;
    touched before = read_shared_words(now->to.house);
    int result = domus_ask(stack, now->to, &domt_question, &now->first, domt_hear_nothing);
    touched after = read_shared_words(now->to.house);

    now->moved += memcmp(&before, &after, sizeof before) != 0;
    return result;
}

DOMT_TEST(m8_home_lane_touches_nothing_that_others_touch)
{
    domt_world_open(&world, 1);
    domus_address to = domt_spawn_recorder(&world, 0, &logs[0]);
    domus_address agent = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    domt_settle_world(&world);

    burst notes = {to, 0, 100, 0};
    burst question = {to, 7, 1, 0};
    domt_run_as_actor(&world, agent, send_notes_watching_shared_words, &notes);
    for (int i = 0; i < 100; i++)
        domt_run_as_actor(&world, agent, send_question_watching_shared_words, &question);
    ck_assert_uint_eq(notes.moved + question.moved, 0);
    ck_assert_uint_eq(domt_log_count_letter(&logs[0], 'n'), 100);
    ck_assert_uint_eq(domt_log_count_letter(&logs[0], 'a'), 100);
    domt_world_end(&world);
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
/* Returns the number of locked instructions in a function of this program, which objdump lists; -1
 * when they cannot be counted. */
static int count_locked_instructions(const char *function)
{
    char command[512];
    char line[512];
    char program[256] = {0};
    int instructions = 0;
    int locked = 0;

    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return -1;
    snprintf(command, sizeof command, "objdump -d --no-show-raw-insn --disassemble=%s '%s' 2>&1",
             function, program);
    FILE *listing = popen(command, "r");
    if (listing == NULL)
        return -1;
    while (fgets(line, sizeof line, listing) != NULL) {
        instructions += strchr(line, '\t') != NULL;
        locked += strstr(line, "\tlock ") != NULL || strstr(line, "mfence") != NULL ||
                  (strstr(line, "xchg ") != NULL && strchr(line, '(') != NULL);
    }
    (void)pclose(listing);
    return instructions < 10 ? -1 : locked;
}

DOMT_TEST(m8_home_lane_has_no_atomic_read_modify_write)
{
    static const char *const functions[] = {"domus_notice", "domus_ask", "domus_ask_add",
                                            "domi_ask_answer_for_house",
                                            "domi_house_run_and_settle"};

    if (count_locked_instructions("domi_manager_take_arrivals") == -1)
        return; /* objdump is missing, so nothing can be counted */
    /* proof that the count sees locked instructions where there are some */
    ck_assert_int_gt(count_locked_instructions("domi_manager_take_arrivals"), 0);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        ck_assert_msg(count_locked_instructions(functions[i]) == 0, "%s", functions[i]);
}
#else
DOMT_TEST(m8_home_lane_has_no_atomic_read_modify_write)
{
    /* instructions are counted on one architecture only, and not in builds with sanitizers */
    ck_assert(true);
}
#endif

DOMT_TEST(inbox_word_tells_empty_depth_and_newest)
{
    domt_world_open(&world, 1);
    domus_address to = domt_spawn_recorder(&world, 0, &logs[0]);
    ck_assert_uint_eq(atomic_load(&to.house->inbox), 0);
    for (unsigned i = 1; i <= 300; i++) {
        domt_send_note(domt_outside_manager(&world), to, i);
        ck_assert_uint_eq(depth_of_inbox(to.house), i);
    }
    ck_assert_uint_eq(domi_manager_take_arrivals(world.managers[0]), 1);
    ck_assert_uint_eq(atomic_load(&to.house->inbox), 0);
    ck_assert_uint_eq(to.house->mail, 300);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&logs[0], 'n'), 300);
    domt_world_end(&world);
}

DOMT_TEST(only_a_sender_that_finds_the_inbox_empty_links_the_house)
{
    domt_world_open(&world, 2);
    domi_manager *home = world.managers[0];
    domi_manager *foreign = world.managers[1];
    domus_address a = domt_spawn_recorder(&world, 0, &logs[0]);
    domus_address b = domt_spawn_recorder(&world, 0, &logs[1]);

    domt_send_note(foreign, a, 1);
    ck_assert_ptr_eq(atomic_load(&home->mail.arrivals), a.house);
    domt_send_note(domt_outside_manager(&world), a, 2);
    domt_send_note(foreign, a, 3);
    ck_assert_ptr_eq(atomic_load(&home->mail.arrivals), a.house);
    ck_assert_ptr_null(atomic_load(&a.house->arrival_next));
    domt_send_note(foreign, b, 4);
    domt_send_note(foreign, a, 5);
    ck_assert_ptr_eq(atomic_load(&home->mail.arrivals), b.house);
    ck_assert_ptr_eq(atomic_load(&b.house->arrival_next), a.house);
    ck_assert_uint_eq(domi_manager_take_arrivals(home), 2);
    ck_assert_ptr_null(atomic_load(&home->mail.arrivals));
    ck_assert_ptr_eq(domi_queue_take_house(&home->schedule.ready[0]),
                     a.house); /* the queue has the house first whose message came first */
    ck_assert_uint_eq(domi_manager_take_arrivals(home), 0);
    domi_house_run_and_settle(home, a.house);
    /* home took the house off the arrivals, so this put links it anew */
    domt_send_note(foreign, a, 6);
    ck_assert_ptr_eq(atomic_load(&home->mail.arrivals), a.house);
    domt_settle_world(&world);
    ck_assert_int_eq(domt_log_sum_of_letter(&logs[0], 'n'), 1 + 2 + 3 + 5 + 6);
    domt_world_end(&world);
}

/* M6: an earlier message of home's own may be in the inbox, behind a foreign one. */
DOMT_TEST(m6_home_uses_the_inbox_while_it_is_not_empty)
{
    domt_world_open(&world, 2);
    domi_manager *home = world.managers[0];
    domus_address to = domt_spawn_recorder(&world, 0, &logs[0]);

    domt_send_note(home, to, 1); /* the inbox is empty, so this note goes by the home lane */
    ck_assert_uint_eq(depth_of_inbox(to.house), 0);
    domt_send_note(world.managers[1], to, 2);
    domt_send_note(home, to, 3);
    domt_send_note(home, to, 4);
    ck_assert_uint_eq(depth_of_inbox(to.house), 3);
    ck_assert_uint_eq(to.house->mail, 1);
    (void)domi_manager_take_arrivals(home);
    domt_send_note(home, to, 5); /* the inbox is empty again, so this note goes by the home lane */
    ck_assert_uint_eq(depth_of_inbox(to.house), 0);
    ck_assert_uint_eq(to.house->mail, 5);
    domt_settle_world(&world);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(logs[0].entries[i].number, i + 1);
    domt_world_end(&world);
}

/* M6: three senders (home, foreign, outside), two mailboxes, and anything in between. Numbers are
 * sender * 1e6 + place, and questions are asked by recorders on the sender's thread. */
DOMT_TEST(m6_order_is_kept_per_sender_and_mailbox_through_all_lanes)
{
    enum { STEPS = 6000, SCALE = 1000000 };
    domi_random random;
    int64_t sent[2][3] = {{0}};
    int64_t seen[2][3] = {{0}};
    unsigned wrong = 0;

    domi_random_init(&random, 6);
    domt_world_open(&world, 2);
    domus_address to = domt_spawn_recorder(&world, 0, &logs[0]);
    domus_address askers[2] = {domt_spawn_recorder(&world, 0, &logs[1]),
                               domt_spawn_recorder(&world, 1, &logs[1])};
    for (int step = 0; step < STEPS; step++) {
        uint64_t sender = domi_random_below(&random, 3);
        switch (domi_random_below(&random, 6)) {
        case 0:
        case 1:
        case 2:
            domt_send_note(world.managers[sender], to, (int64_t)sender * SCALE + sent[0][sender]++);
            break;
        /* the question is sent by an asker, which a notice tells to ask; each asker has a home of
         * its own */
        case 3:
            if (sender < 2)
                domt_let_recorder_ask(world.managers[sender], askers[sender], to,
                                      (int64_t)sender * SCALE + sent[1][sender]++);
            break;
        case 4:
            (void)domi_manager_take_arrivals(world.managers[0]);
            break;
        default:
            (void)domt_iterate_home(world.managers[sender % 2]);
            break;
        }
    }
    domt_settle_world(&world);
    for (uint32_t i = 0; i < logs[0].count; i++) {
        const domt_entry *entry = &logs[0].entries[i];
        int kind = entry->what == 'a';
        wrong += entry->number % SCALE != seen[kind][entry->number / SCALE]++;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_mem_eq(sent, seen, sizeof sent);
    ck_assert_uint_gt(logs[0].count, STEPS / 3);
    ck_assert_uint_eq(domt_log_count_letter(&logs[1], 'r'), (uint32_t)(sent[1][0] + sent[1][1]));
    domt_world_end(&world);
}

/* The part of M12 in house/: a put from elsewhere wakes a sleeper, once. */
DOMT_TEST(foreign_put_wakes_a_sleeping_home_once)
{
    domt_world_open(&world, 2);
    domi_manager *home = world.managers[0];
    domus_address a = domt_spawn_recorder(&world, 0, &logs[0]);
    domus_address b = domt_spawn_recorder(&world, 0, &logs[1]);

    world.wakes[0] = 0;
    domt_send_note(world.managers[1], a, 1); /* home runs and does not sleep, so no wake is sent */
    ck_assert_uint_eq(world.wakes[0], 0);
    domt_settle_world(&world);
    atomic_store(&home->park, DOMI_PARK_SLEEPING);
    domt_send_note(world.managers[1], a, 2);
    ck_assert_uint_eq(world.wakes[0], 1);
    ck_assert_uint_eq(atomic_load(&home->park), DOMI_PARK_NOTIFIED);
    domt_send_note(world.managers[1], b, 3);
    domt_send_note(domt_outside_manager(&world), a, 4);
    ck_assert_uint_eq(world.wakes[0], 1);
    ck_assert(domi_manager_has_work(home));
    domt_world_end(&world);
}

DOMT_TEST(put_to_nobody_is_stale_and_the_payload_stays_the_callers)
{
    domt_world_open(&world, 1);
    ck_assert_int_eq(
        domt_send_notice(world.managers[0], (domus_address){0}, &domt_note, &(int64_t){1}),
        -ESTALE);
    domt_end_clean_world(&world);
}

/* --- batches ---------------------------------------------------------------------------------- */

#define MANY (DOMI_LINKS_MAX + 8)

static domt_log records;
static domus_address sender;
static domus_address near_by[MANY], far[MANY]; /* actors on home 1, and actors on home 2 */

static void open_world_for_batches(void)
{
    domt_world_open_without_belts(&world, 3);
    memset(&records, 0, sizeof records);
    sender = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    for (size_t i = 0; i < MANY; i++) {
        near_by[i] = domt_spawn_recorder(&world, 1, &records);
        far[i] = domt_spawn_recorder(&world, 2, &records);
    }
}

static uint32_t count_houses_in_arrivals(uint32_t home)
{
    uint32_t count = 0;

    for (const domi_house *house = atomic_load(&world.managers[home]->mail.arrivals); house != NULL;
         house = atomic_load(&house->arrival_next))
        count++;
    return count;
}

/* An order to the sender: in one batch it sends to the first `count` actors on home 1 and on home
 * 2. */
typedef struct deed {
    uint32_t count;
    uint32_t arrived; /* messages that had arrived at home 1 when the sender's handler went on */
    uint32_t sent;
    int result;
} deed;

static int send_batch_to_near_and_far(domus_stack *stack, void *deed_)
{
    deed *now = deed_;
    domus_address to[2 * MANY];
    int64_t number = 7;

    for (uint32_t i = 0; i < now->count; i++) {
        to[2 * i] = near_by[i];
        to[2 * i + 1] = far[i];
    }
    now->result = domus_notice_all(stack, to, 2 * now->count, &domt_note, &number, &now->sent);
    now->arrived = count_houses_in_arrivals(1);
    return 0;
}

static deed let_sender_send_batch(uint32_t count)
{
    static deed now;

    now = (deed){.count = count};
    domt_send_function_to_call(world.managers[0], sender, send_batch_to_near_and_far, &now);
    (void)domt_take_arrivals_and_timers(world.managers[0]);
    ck_assert_uint_eq(domt_run_state_queue(world.managers[0]), 1);
    return now;
}

DOMT_TEST(a_batch_reaches_each_once_and_is_over_when_it_returns)
{
    open_world_for_batches();
    for (uint32_t count = 0; count <= MANY; count++) {
        deed now = let_sender_send_batch(count);
        ck_assert_int_eq(now.result, 0);
        ck_assert_uint_eq(now.sent, 2 * count);
        ck_assert_uint_eq(now.arrived, count);
        ck_assert_uint_eq(count_houses_in_arrivals(2), count);
        domt_settle_world(&world);
    }
    ck_assert_uint_eq(domt_log_count_letter(&records, 'n'), MANY * (MANY + 1));
    ck_assert_int_eq(domt_log_sum_of_letter(&records, 'n'), 7 * MANY * (MANY + 1));
    domt_end_clean_world(&world);
}

/* A batch pushes its links to each home together; when as many links as the bound wait, they are
 * pushed at once. */
DOMT_TEST(links_of_a_batch_are_pushed_together)
{
    open_world_for_batches();
    domi_links_begin_batch(world.managers[0]);
    for (uint32_t i = 0; i < DOMI_LINKS_MAX - 1; i++) {
        domt_send_note(world.managers[0], near_by[i], 1);
        /* only the link waits: the put into the inbox was done at once */
        ck_assert_uint_ne(atomic_load(&near_by[i].house->inbox), 0);
    }
    ck_assert_uint_eq(count_houses_in_arrivals(1), 0);
    domt_send_note(world.managers[0], far[0], 1);
    ck_assert_uint_eq(count_houses_in_arrivals(1), DOMI_LINKS_MAX - 1);
    ck_assert_uint_eq(count_houses_in_arrivals(2), 1);
    domt_send_note(world.managers[0], far[1], 1);
    ck_assert_uint_eq(count_houses_in_arrivals(2), 1);
    domi_links_end_batch(world.managers[0]);
    ck_assert_uint_eq(count_houses_in_arrivals(2), 2);
    domt_send_note(world.managers[0], far[2], 1);
    /* without a batch a message arrives at once */
    ck_assert_uint_eq(count_houses_in_arrivals(2), 3);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&records, 'n'), DOMI_LINKS_MAX + 2);
    domt_world_end(&world);
}

DOMT_TEST(a_batch_wakes_a_sleeper_once)
{
    open_world_for_batches();
    atomic_store(&world.managers[1]->park, DOMI_PARK_SLEEPING);
    (void)let_sender_send_batch(20);
    ck_assert_uint_eq(world.wakes[1], 1);
    ck_assert_uint_eq(world.wakes[2], 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&records, 'n'), 40);
    domt_world_end(&world);
}

/* A second message finds an inbox that is not empty, although its house is not linked into the
 * arrivals yet. */
DOMT_TEST(a_house_with_mail_of_a_batch_is_linked_once)
{
    open_world_for_batches();
    (void)let_sender_send_batch(4);
    (void)let_sender_send_batch(4);
    ck_assert_uint_eq(count_houses_in_arrivals(1), 4);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&records, 'n'), 16);
    domt_world_end(&world);
}

DOMT_TEST(actor_that_is_gone_keeps_the_batch_from_nobody)
{
    open_world_for_batches();
    domt_stop_actor_and_settle(&world, world.managers[0], near_by[1]);
    deed now = let_sender_send_batch(3);
    ck_assert_int_eq(now.result, -ESTALE);
    ck_assert_uint_eq(now.sent, 5);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&records, 'n'), 5);
    domt_end_clean_world(&world);
}

static void release_nothing(void *payload)
{
}

static int try_wrong_batches(domus_stack *stack, void *context)
{
    static const domus_type owned = {.name = "owned", .size = 8, .release = release_nothing};
    static const domus_type vast = {.name = "vast", .size = DOMUS_PAYLOAD_MAX + 1};
    uint32_t sent = 77;

    ck_assert_int_eq(domus_notice_all(stack, near_by, 3, &owned, "1234567", &sent), -EINVAL);
    ck_assert_uint_eq(sent, 0);
    sent = 77;
    ck_assert_int_eq(domus_notice_all(stack, near_by, 3, &vast, NULL, &sent), -EMSGSIZE);
    ck_assert_uint_eq(sent, 0);
    ck_assert_int_eq(domus_notice_all(stack, near_by, 1, &domt_note, &(int64_t){1}, NULL), 0);
    return 0;
}

DOMT_TEST(batch_with_a_payload_that_cannot_be_shared_is_not_sent)
{
    open_world_for_batches();
    domt_run_as_actor(&world, sender, try_wrong_batches, NULL);
    ck_assert_uint_eq(domt_log_count_letter(&records, 'n'), 1);
    domt_world_end(&world);
}

DOMT_SUITE(60)
