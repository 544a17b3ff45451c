/* house/message/queue.h: a queue of houses has two levels, every 4th take is of a normal house, and
 * the priority is sampled when a house is queued. */
#include "house/message/queue.h"

#include "tests/support/suite.h"

#define HOUSES 64

static domi_house houses[HOUSES];

static domi_house *high(unsigned index)
{
    houses[index].asks = 0;
    return &houses[index];
}

static domi_house *normal(unsigned index)
{
    houses[index].asks = 1;
    return &houses[index];
}

static bool is_high(uint32_t asks, uint32_t replies, uint32_t events)
{
    domi_house house = {.asks = asks, .replies = replies, .events = events * DOMI_EVENT_STEP};

    return domi_house_is_high(&house);
}

DOMT_TEST(fifo_is_first_in_first_out)
{
    domi_fifo fifo = {NULL, NULL};

    ck_assert_ptr_null(domi_fifo_take(&fifo));
    for (int round = 0; round < 3; round++) {
        domi_fifo_put(&fifo, &houses[0]);
        domi_fifo_put(&fifo, &houses[1]);
        ck_assert_ptr_eq(domi_fifo_take(&fifo), &houses[0]);
        domi_fifo_put(&fifo, &houses[2]);
        ck_assert_ptr_eq(domi_fifo_take(&fifo), &houses[1]);
        ck_assert_ptr_eq(domi_fifo_take(&fifo), &houses[2]);
        ck_assert_ptr_null(domi_fifo_take(&fifo));
    }
}

DOMT_TEST(priority_is_high_by_replies_events_or_no_ask)
{
    ck_assert(is_high(0, 0, 0));
    ck_assert(!is_high(1, 0, 0));
    ck_assert(!is_high(1, 2, 4));
    ck_assert(is_high(1, 3, 0));
    ck_assert(is_high(1, 0, 5));
    ck_assert(is_high(1000, 3, 0));
    ck_assert(is_high(1000, 0, 5));
    ck_assert(!is_high(1000, 2, 4));
}

DOMT_TEST(queue_takes_a_normal_one_every_4th_time_while_both_wait)
{
    domi_queue queue = {.normal_every = 4};
    char order[HOUSES + 1] = {0};

    for (unsigned i = 0; i < 24; i++)
        domi_queue_put(&queue, high(i));
    for (unsigned i = 24; i < 30; i++)
        domi_queue_put(&queue, normal(i));
    ck_assert_uint_eq(queue.count, 30);
    for (unsigned i = 0; i < 30; i++)
        order[i] = domi_queue_take(&queue)->asks == 0 ? 'h' : 'n';
    ck_assert_str_eq(order, "hhhnhhhnhhhnhhhnhhhnhhhnhhhhhh");
    ck_assert_uint_eq(queue.count, 0);
    ck_assert_ptr_null(domi_queue_take(&queue));
}

DOMT_TEST(queue_takes_a_normal_one_as_often_as_it_is_told)
{
    static const char *const orders[] = {"hnhnhn", "hhnhnn", "hhhnnn"};
    static const uint32_t every[] = {2, 3, 65536};

    for (unsigned i = 0; i < 3; i++) {
        domi_queue queue = {.normal_every = every[i]};
        char order[7] = "";

        for (unsigned house = 0; house < 3; house++) {
            domi_queue_put(&queue, high(house));
            domi_queue_put(&queue, normal(3 + house));
        }
        for (unsigned take = 0; take < 6; take++)
            order[take] = domi_queue_take(&queue)->asks == 0 ? 'h' : 'n';
        ck_assert_str_eq(order, orders[i]);
    }
}

DOMT_TEST(queue_of_one_level_is_first_in_first_out)
{
    domi_queue queue = {.normal_every = 4};

    for (unsigned level = 0; level < 2; level++) {
        for (unsigned i = 0; i < HOUSES; i++)
            domi_queue_put(&queue, level == 0 ? high(i) : normal(i));
        for (unsigned i = 0; i < HOUSES; i++)
            ck_assert_ptr_eq(domi_queue_take(&queue), &houses[i]);
        ck_assert_ptr_null(domi_queue_take(&queue));
    }
    ck_assert_uint_eq(queue.high_takes, 0); /* a take without a choice is not counted */
}

/* A middleman, always with a promise pending, among any number of others: never further than 4. */
DOMT_TEST(queue_starves_nobody)
{
    domi_queue queue = {.normal_every = 4};
    unsigned distance = 0;
    unsigned worst = 0;

    for (unsigned i = 0; i < 32; i++)
        domi_queue_put(&queue, high(i));
    domi_queue_put(&queue, normal(32));
    for (int i = 0; i < 10000; i++) {
        domi_house *house = domi_queue_take(&queue);
        distance = house == &houses[32] ? 0 : distance + 1;
        worst = distance > worst ? distance : worst;
        domi_queue_put(&queue, house);
    }
    ck_assert_uint_eq(worst, 3);
}

DOMT_TEST(priority_is_sampled_when_queued_and_not_changed_while_queued)
{
    domi_queue queue = {.normal_every = 4};

    domi_queue_put(&queue, normal(0));
    domi_queue_put(&queue, high(1));
    domi_queue_put(&queue, high(2));
    houses[0].asks = 0; /* high by now, but it stands where it was put */
    houses[1].asks = 1;
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[1]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[2]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[0]);

    domi_queue_put(&queue, &houses[1]); /* sampled anew: it is normal now */
    domi_queue_put(&queue, &houses[0]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[0]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[1]);
}

DOMT_SUITE(20)
