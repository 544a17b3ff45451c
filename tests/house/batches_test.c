/* Batches: one message goes to many actors, and each of their homes is told once. */
#include "house/message/arrivals.h"

#include "house/family/life.h"
#include "tests/house/recorder.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MANY (DOMI_LINKS_MAX + 8)

static domt_world world;
static domt_log records;
static domus_address sender;
static domus_address near_by[MANY], far[MANY]; /* on homes 1 and 2 */

static void begin(void)
{
    domt_world_open_without_belts(&world, 3);
    memset(&records, 0, sizeof records);
    sender = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    for (size_t i = 0; i < MANY; i++) {
        near_by[i] = domt_recorder_new(&world, 1, &records);
        far[i] = domt_recorder_new(&world, 2, &records);
    }
}

static uint32_t arrived(uint32_t home)
{
    uint32_t count = 0;

    for (const domi_house *house = atomic_load(&world.managers[home]->mail.arrivals); house != NULL;
         house = atomic_load(&house->arrival_next))
        count++;
    return count;
}

/* An order to a sender: it sends to the first `count` actors near by and to the first
 * `count` far away. */
typedef struct deed {
    uint32_t count;
    uint32_t arrived; /* messages that had arrived at home 1 when the handler went on */
    uint32_t sent;
    int result;
} deed;

static int send_to_all(domus_stack *stack, void *deed_)
{
    deed *now = deed_;
    domus_address to[2 * MANY];
    int64_t number = 7;

    for (uint32_t i = 0; i < now->count; i++) {
        to[2 * i] = near_by[i];
        to[2 * i + 1] = far[i];
    }
    now->result = domus_notice_all(stack, to, 2 * now->count, &domt_note, &number, &now->sent);
    now->arrived = arrived(1);
    return 0;
}

static deed run_sender(uint32_t count)
{
    static deed now;

    now = (deed){.count = count};
    domt_send(world.managers[0], sender, send_to_all, &now);
    (void)domt_events(world.managers[0]);
    ck_assert_uint_eq(domt_run_state(world.managers[0]), 1);
    return now;
}

DOMT_TEST(a_batch_reaches_each_once_and_is_over_when_it_returns)
{
    begin();
    for (uint32_t count = 0; count <= MANY; count++) {
        deed now = run_sender(count);
        ck_assert_int_eq(now.result, 0);
        ck_assert_uint_eq(now.sent, 2 * count);
        ck_assert_uint_eq(now.arrived, count);
        ck_assert_uint_eq(arrived(2), count);
        domt_settle(&world);
    }
    ck_assert_uint_eq(domt_log_count(&records, 'n'), MANY * (MANY + 1));
    ck_assert_int_eq(domt_log_sum(&records, 'n'), 7 * MANY * (MANY + 1));
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

/* One push for each home, but no more than the bound wait. */
DOMT_TEST(links_of_a_batch_are_pushed_together)
{
    begin();
    domi_links_begin(world.managers[0]);
    for (uint32_t i = 0; i < DOMI_LINKS_MAX - 1; i++) {
        domt_note_to(world.managers[0], near_by[i], 1);
        ck_assert_uint_ne(atomic_load(&near_by[i].house->inbox), 0); /* the put is not put off */
    }
    ck_assert_uint_eq(arrived(1), 0);
    domt_note_to(world.managers[0], far[0], 1);
    ck_assert_uint_eq(arrived(1), DOMI_LINKS_MAX - 1);
    ck_assert_uint_eq(arrived(2), 1);
    domt_note_to(world.managers[0], far[1], 1);
    ck_assert_uint_eq(arrived(2), 1);
    domi_links_end(world.managers[0]);
    ck_assert_uint_eq(arrived(2), 2);
    domt_note_to(world.managers[0], far[2], 1);
    ck_assert_uint_eq(arrived(2), 3); /* outside of a batch at once */
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), DOMI_LINKS_MAX + 2);
    domt_world_end(&world);
}

DOMT_TEST(a_batch_wakes_a_sleeper_once)
{
    begin();
    atomic_store(&world.managers[1]->park, DOMI_PARK_SLEEPING);
    (void)run_sender(20);
    ck_assert_uint_eq(world.wakes[1], 1);
    ck_assert_uint_eq(world.wakes[2], 0);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 40);
    domt_world_end(&world);
}

/* A second message finds the inbox filled, though its house is not linked yet. */
DOMT_TEST(a_house_with_mail_of_a_batch_is_linked_once)
{
    begin();
    (void)run_sender(4);
    (void)run_sender(4);
    ck_assert_uint_eq(arrived(1), 4);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 16);
    domt_world_end(&world);
}

DOMT_TEST(actor_that_is_gone_keeps_the_batch_from_nobody)
{
    begin();
    ck_assert_int_eq(domi_house_stop(world.managers[0], near_by[1]), 0);
    domt_settle(&world);
    deed now = run_sender(3);
    ck_assert_int_eq(now.result, -ESTALE);
    ck_assert_uint_eq(now.sent, 5);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 5);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

static void release_nothing(void *payload)
{
}

static int send_wrong(domus_stack *stack, void *context)
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

DOMT_TEST(what_cannot_be_shared_is_not_sent)
{
    begin();
    domt_do(&world, sender, send_wrong, NULL);
    ck_assert_uint_eq(domt_log_count(&records, 'n'), 1);
    domt_world_end(&world);
}

DOMT_SUITE(20)
