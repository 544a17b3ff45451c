/* A long random walk over all that can happen to the messages of an actor with an order, beside a
 * model of them.
 *
 * The model is the list of the messages that wait, each with its kind, its key, and a number that
 * says when it came. A message may be taken if no waiting one has a smaller key, and no earlier one
 * of its kind has the same key. The walk puts notices and asks, lets the actor run for a few
 * messages, lets it receive by choice, stashes and unstashes messages, lets asks expire and be
 * cancelled, and changes the order. */
#include "base/random.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/invariants.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/receive.h>

#include <string.h>

#define OPERATIONS 100000
#define WALKS      4
#define WAITING    3000

/* A payload; `number` grows with each message. */
typedef struct letter {
    uint32_t key;
    uint32_t number;
} letter;

/* A message of the model that waits or is stashed. */
typedef struct known {
    letter letter;
    bool is_ask;
    bool aside;
} known;

static domt_world world;
static domus_address actor, asker;
static domi_random chance;
static known waits[WAITING];
static uint32_t count;      /* messages in `waits` */
static uint32_t numbers;    /* messages that were sent */
static uint32_t taken;      /* messages that were handled or received */
static uint32_t answered;   /* asks whose end the asker has got */
static uint32_t asked;      /* asks that were made */
static int direction = 1;   /* direction of the order that the actor has; 0: no order */
static uint32_t key_wanted; /* key that a receive looks for */

static uint32_t below(uint32_t bound)
{
    return (uint32_t)domi_random_below(&chance, bound);
}

/* --- the model -------------------------------------------------------------------------------- */

static void model_add(letter what, bool is_ask)
{
    ck_assert_uint_lt(count, WAITING);
    waits[count++] = (known){what, is_ask, false};
}

static uint32_t model_find(uint32_t number)
{
    uint32_t at = 0;

    while (at < count && waits[at].letter.number != number)
        at++;
    ck_assert_msg(at < count, "message %u was handled twice, or never sent", number);
    return at;
}

static void model_remove(uint32_t at)
{
    count--;
    for (; at < count; at++)
        waits[at] = waits[at + 1];
}

/* Compare keys as the order of the actor does. */
static int compare_keys(const known *one, const known *other)
{
    int by_key = one->letter.key < other->letter.key ? -1 : one->letter.key > other->letter.key;

    return by_key * direction;
}

static bool is_sorted_before(const known *one, const known *other)
{
    if (one->aside || other->aside)
        return other->aside && !one->aside;
    return compare_keys(one, other) < 0;
}

/* Whether `other` must be handled before `one`. */
static bool goes_first(const known *other, const known *one)
{
    if (compare_keys(other, one) != 0)
        return compare_keys(other, one) < 0;
    return other->is_ask == one->is_ask && other < one;
}

/* Record in the model that a message was taken. If `key` is not UINT32_MAX, only messages with that
 * key could be. */
static void model_take(const letter *what, bool is_ask, uint32_t key)
{
    uint32_t at = model_find(what->number);
    const known *one = &waits[at];

    ck_assert(one->letter.key == what->key && one->is_ask == is_ask && !one->aside);
    for (uint32_t i = 0; i < count; i++) {
        if (i != at && !waits[i].aside && (key == UINT32_MAX || waits[i].letter.key == key))
            ck_assert_msg(!goes_first(&waits[i], one), "%u/%u was taken before %u/%u", what->key,
                          what->number, waits[i].letter.key, waits[i].letter.number);
    }
    model_remove(at);
    taken++;
}

/* Unstash in the model: the stashed messages come before all others, because they are the oldest
 * then. */
static void model_put_back(void)
{
    known sorted[WAITING];
    uint32_t length = 0;

    for (int aside = 1; aside >= 0; aside--) {
        for (uint32_t i = 0; i < count; i++) {
            if (waits[i].aside == (aside == 1))
                sorted[length++] = waits[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        waits[i] = sorted[i];
        waits[i].aside = false;
    }
}

/* Sort the waiting messages by the old comparison, before another one is used. Stashed messages
 * stay as they are, behind all others. */
static void model_sort(void)
{
    for (uint32_t i = 1; i < count && direction != 0; i++) {
        known one = waits[i];
        uint32_t at = i;
        for (; at > 0 && is_sorted_before(&one, &waits[at - 1]); at--)
            waits[at] = waits[at - 1];
        waits[at] = one;
    }
}

/* --- the actor -------------------------------------------------------------------------------- */

static const domus_type note_type = {.name = "note", .size = sizeof(letter)};
static const domus_type ask_type = {.name = "ask", .size = sizeof(letter)};
static const domus_type done_type = {.name = "done"};
static const domus_behaviour up, down, plain;

static int compare(const domus_type *one_type, const void *one, const domus_type *other_type,
                   const void *other)
{
    const letter *first = one;
    const letter *second = other;

    ck_assert(one_type == &note_type || one_type == &ask_type);
    ck_assert(other_type == &note_type || other_type == &ask_type);
    return first->key < second->key ? -1 : first->key > second->key;
}

static int compare_down(const domus_type *one_type, const void *one, const domus_type *other_type,
                        const void *other)
{
    return -compare(one_type, one, other_type, other);
}

/* Sometimes put a message to oneself, while a run goes on. */
static void send_something(domus_stack *stack)
{
    letter what = {below(40), numbers};

    if (below(4) != 0 || count + 1 >= WAITING)
        return;
    if (domus_notice(stack, actor, &note_type, &what) == 0) {
        numbers++;
        model_add(what, false);
    }
}

static int handle_note(domus_stack *stack, void *self, const void *payload)
{
    model_take(payload, false, UINT32_MAX);
    send_something(stack);
    return 0;
}

static int handle_ask(domus_stack *stack, void *self, const void *payload)
{
    if (below(8) == 0) { /* stash the message */
        uint32_t at = model_find(((const letter *)payload)->number);
        ck_assert_int_eq(domus_stash(stack), 0);
        known one = waits[at];
        model_remove(at);
        one.aside = true;
        waits[count++] = one;
        return 0;
    }
    model_take(payload, true, UINT32_MAX);
    send_something(stack);
    return domus_reply(stack, &done_type, NULL);
}

/* --- conversations of the actor, which begin by events ---------------------------------------- */

static bool has_wanted_key(const void *self, const void *frame, const domus_type *type,
                           const void *payload)
{
    return ((const letter *)payload)->key == key_wanted;
}

static const domus_pattern wanted = {NULL, has_wanted_key};

static int record_received(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0) {
        for (uint32_t i = 0; i < count; i++)
            ck_assert(waits[i].aside || waits[i].letter.key != key_wanted);
        return 0;
    }
    model_take(answer->payload, answer->type == &ask_type, key_wanted);
    return answer->type == &ask_type ? domus_reply(stack, &done_type, NULL) : 0;
}

static int receive_within(domus_stack *stack, void *within)
{
    return domus_receive_within(stack, &wanted, *(uint64_t *)within, record_received);
}

static int put_back(domus_stack *stack, void *context)
{
    domus_unstash(stack);
    model_put_back();
    return 0;
}

static int change_order(domus_stack *stack, void *to)
{
    ck_assert_int_eq(domus_become(stack, to), 0);
    model_sort();
    direction = to == &up ? 1 : to == &down ? -1 : 0;
    return 0;
}

#define ROWS                                                                                       \
    (const domus_on[])                                                                             \
    {                                                                                              \
        {&note_type, handle_note, 0}, {&ask_type, handle_ask, 0},                                  \
            {&domt_call_type, domt_on_call, 0},                                                    \
        {                                                                                          \
            NULL, NULL, 0                                                                          \
        }                                                                                          \
    }

static const domus_behaviour up = {.name = "up", .on = ROWS, .order = compare};
static const domus_behaviour down = {.name = "down", .on = ROWS, .order = compare_down};
static const domus_behaviour plain = {.name = "plain", .on = ROWS};

/* --- the walk --------------------------------------------------------------------------------- */

static domi_manager *home(void)
{
    return world.managers[0];
}

static void send_call(int (*function)(domus_stack *, void *), const void *context)
{
    domt_call call = {function, (void *)(uintptr_t)context};
    domi_envelope *envelope = domi_envelope_new(home(), sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &domt_call_type;
    envelope->sender = NULL;
    memcpy(envelope->payload, &call, sizeof call);
    ck_assert_int_eq(domi_mailbox_put(home(), actor, &envelope->node, DOMI_EVENT), 0);
}

static int count_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    answered++;
    ck_assert_int_eq(answer->error, 0);
    return 0;
}

static int ask_actor(domus_stack *stack, void *what)
{
    return domus_ask(stack, actor, &ask_type, what, count_answer);
}

/* Put a message by the home lane, by the inbox, or as an ask. It has arrived when this returns. */
static void put_message(void)
{
    letter what = {below(40), numbers};
    uint32_t way = below(4);

    if (count + 8 >= WAITING)
        return;
    numbers++;
    if (way < 2) {
        ck_assert_int_eq(domt_notice(world.managers[way], actor, &note_type, &what), 0);
    } else {
        asked++;
        domt_send(world.managers[1], asker, ask_actor, &what);
        (void)domt_iterate(world.managers[1]);
    }
    (void)domi_manager_take_arrivals(home());
    model_add(what, way >= 2);
}

static void run_messages(uint32_t messages)
{
    domi_manager_set_run_limit(home(), messages);
    (void)domt_run_state(home());
    (void)domt_iterate(world.managers[1]);
}

static void run_to_the_end(void)
{
    domi_manager_set_run_limit(home(), 64);
    domt_settle(&world);
}

static void do_random_step(void)
{
    static const uint64_t now = 0;
    static const uint64_t for_ever = DOMUS_FOR_EVER;
    const domus_behaviour *const behaviours[] = {&up, &down, &up, &down, &up, &plain};

    switch (below(64)) {
    case 0:
        send_call(put_back, NULL);
        run_messages(1 + below(12));
        break;
    case 1:
        key_wanted = below(40);
        send_call(receive_within, &now);
        run_to_the_end();
        break;
    case 2: /* messages are held back until one with this key comes */
        run_to_the_end();
        key_wanted = below(40);
        send_call(receive_within, &for_ever);
        (void)domt_run_state(home());
        for (uint32_t i = below(100); i != 0; i--) {
            put_message();
            (void)domt_run_state(home());
        }
        for (uint32_t i = 0; (actor.house->marks & DOMI_MARK_RECEIVING) != 0; i++) {
            put_message();
            (void)domt_run_state(home());
        }
        break;
    case 3:
        if (below(4) == 0) {
            send_call(change_order, behaviours[below(6)]);
            run_messages(1 + below(12));
        }
        break;
    case 4:
        if (below(8) == 0)
            run_to_the_end();
        break;
    default:
        if (below(5) < 3)
            put_message();
        else
            run_messages(1 + below(3));
    }
    domi_house_check_lists(home(), actor.house);
}

static void run_walk(uint64_t seed)
{
    domi_random_init(&chance, seed);
    count = numbers = taken = answered = asked = 0;
    direction = 1;
    domt_world_open_without_belts(&world, 2);
    actor = domt_spawn(domt_outside(&world), home(), &up, NULL);
    asker = domt_spawn(domt_outside(&world), world.managers[1], &domt_agent, NULL);
    domt_settle(&world);
    for (int i = 0; i < OPERATIONS / WALKS; i++)
        do_random_step();
    run_to_the_end();
    send_call(put_back, NULL);
    run_to_the_end();
    while (count != 0) { /* some asks may have been stashed again */
        send_call(put_back, NULL);
        run_to_the_end();
    }
    ck_assert_uint_eq(taken, numbers);
    ck_assert_uint_eq(answered, asked);
    ck_assert_uint_gt(taken, OPERATIONS / WALKS / 4);
    domt_end_clean(&world);
}

DOMT_TEST(walks_of_a_hundred_thousand_operations_agree_with_the_model)
{
    for (uint64_t seed = 1; seed <= WALKS; seed++)
        run_walk(seed);
}

DOMT_SUITE(120)
