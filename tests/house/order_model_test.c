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
static uint32_t count;    /* number of messages that wait, in `waits` */
static uint32_t numbers;  /* number of messages that were sent */
static uint32_t taken;    /* number of messages that the actor has handled or received */
static uint32_t answered; /* number of asks whose end the asker has got */
static uint32_t asked;    /* number of asks that the asker has made */
/* 1: the actor takes small keys first; -1: large keys; 0: it has no order */
static int direction = 1;
static uint32_t key_wanted; /* key that a receive looks for */

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)domi_random_below(&chance, bound);
}

/* --- the model -------------------------------------------------------------------------------- */

static void model_add(letter what, bool is_ask)
{
    ck_assert_uint_lt(count, WAITING);
    waits[count++] = (known){what, is_ask, false};
}

static uint32_t index_in_model(uint32_t number)
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

/* Returns whether the actor must handle `other` before `one`. */
static bool is_before_in_model(const known *other, const known *one)
{
    if (compare_keys(other, one) != 0)
        return compare_keys(other, one) < 0;
    return other->is_ask == one->is_ask && other < one;
}

/* Take a message out of the model, and check that its turn had come. If `key` is not UINT32_MAX,
 * only messages with that key might be taken. */
static void model_take_and_check_turn(const letter *what, bool is_ask, uint32_t key)
{
    uint32_t at = index_in_model(what->number);
    const known *one = &waits[at];

    ck_assert(one->letter.key == what->key && one->is_ask == is_ask && !one->aside);
    for (uint32_t i = 0; i < count; i++) {
        if (i != at && !waits[i].aside && (key == UINT32_MAX || waits[i].letter.key == key))
            ck_assert_msg(!is_before_in_model(&waits[i], one), "%u/%u was taken before %u/%u",
                          what->key, what->number, waits[i].letter.key, waits[i].letter.number);
    }
    model_remove(at);
    taken++;
}

/* Unstash in the model: the stashed messages come before all others, because they are the oldest
 * then. */
static void model_unstash(void)
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

/* Sort the model's waiting messages by the old comparison, before another one is used. Stashed
 * messages stay as they are, behind all others. */
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

static int compare_letters(const domus_type *one_type, const void *one,
                           const domus_type *other_type, const void *other)
{
    const letter *first = one;
    const letter *second = other;

    ck_assert(one_type == &note_type || one_type == &ask_type);
    ck_assert(other_type == &note_type || other_type == &ask_type);
    return first->key < second->key ? -1 : first->key > second->key;
}

static int compare_letters_downwards(const domus_type *one_type, const void *one,
                                     const domus_type *other_type, const void *other)
{
    return -compare_letters(one_type, one, other_type, other);
}

/* Sometimes let the actor send a message to itself during a run. */
static void send_to_itself_at_random(domus_stack *stack)
{
    letter what = {random_below(40), numbers};

    if (random_below(4) != 0 || count + 1 >= WAITING)
        return;
    if (domus_notice(stack, actor, &note_type, &what) == 0) {
        numbers++;
        model_add(what, false);
    }
}

static int handle_note_by_model(domus_stack *stack, void *self, const void *payload)
{
    model_take_and_check_turn(payload, false, UINT32_MAX);
    send_to_itself_at_random(stack);
    return 0;
}

static int reply_or_stash_ask_by_model(domus_stack *stack, void *self, const void *payload)
{
    if (random_below(8) == 0) { /* stash the ask, in the model and in the actor */
        uint32_t at = index_in_model(((const letter *)payload)->number);
        ck_assert_int_eq(domus_stash(stack), 0);
        known one = waits[at];
        model_remove(at);
        one.aside = true;
        waits[count++] = one;
        return 0;
    }
    model_take_and_check_turn(payload, true, UINT32_MAX);
    send_to_itself_at_random(stack);
    return domus_reply(stack, &done_type, NULL);
}

/* --- conversations of the actor, which begin by events ---------------------------------------- */

static bool has_payload_wanted_key(const void *self, const void *frame, const domus_type *type,
                                   const void *payload)
{
    return ((const letter *)payload)->key == key_wanted;
}

static const domus_pattern wanted = {NULL, has_payload_wanted_key};

static int take_received_from_model(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0) {
        for (uint32_t i = 0; i < count; i++)
            ck_assert(waits[i].aside || waits[i].letter.key != key_wanted);
        return 0;
    }
    model_take_and_check_turn(answer->payload, answer->type == &ask_type, key_wanted);
    return answer->type == &ask_type ? domus_reply(stack, &done_type, NULL) : 0;
}

static int receive_wanted_key_within(domus_stack *stack, void *within)
{
    return domus_receive_within(stack, &wanted, *(uint64_t *)within, take_received_from_model);
}

static int unstash_all(domus_stack *stack, void *context)
{
    domus_unstash(stack);
    model_unstash();
    return 0;
}

static int become_with_other_order(domus_stack *stack, void *to)
{
    ck_assert_int_eq(domus_become(stack, to), 0);
    model_sort();
    direction = to == &up ? 1 : to == &down ? -1 : 0;
    return 0;
}

#define ROWS                                                                                       \
    (const domus_on[])                                                                             \
    {                                                                                              \
        {&note_type, handle_note_by_model, 0}, {&ask_type, reply_or_stash_ask_by_model, 0},        \
            {&domt_call_type, domt_on_call_run_function, 0},                                       \
        {                                                                                          \
            NULL, NULL, 0                                                                          \
        }                                                                                          \
    }

static const domus_behaviour up = {.name = "up", .on = ROWS, .order = compare_letters};
static const domus_behaviour down = {
    .name = "down", .on = ROWS, .order = compare_letters_downwards};
static const domus_behaviour plain = {.name = "plain", .on = ROWS};

/* --- the walk --------------------------------------------------------------------------------- */

static domi_manager *home_manager(void)
{
    return world.managers[0];
}

static void send_call_as_event(int (*function)(domus_stack *, void *), const void *context)
{
    domt_call call = {function, (void *)(uintptr_t)context};
    domi_envelope *envelope = domi_envelope_new(home_manager(), sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &domt_call_type;
    envelope->sender = NULL;
    memcpy(envelope->payload, &call, sizeof call);
    ck_assert_int_eq(domi_mailbox_put(home_manager(), actor, &envelope->node, DOMI_EVENT), 0);
}

static int count_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    answered++;
    ck_assert_int_eq(answer->error, 0);
    return 0;
}

static int ask_actor_with_letter(domus_stack *stack, void *what)
{
    return domus_ask(stack, actor, &ask_type, what, count_answer);
}

/* Put a message by the home lane, by the inbox, or as an ask. It has arrived when this returns. */
static void put_random_message(void)
{
    letter what = {random_below(40), numbers};
    uint32_t way = random_below(4);

    if (count + 8 >= WAITING)
        return;
    numbers++;
    if (way < 2) {
        ck_assert_int_eq(domt_send_notice(world.managers[way], actor, &note_type, &what), 0);
    } else {
        asked++;
        domt_send_function_to_call(world.managers[1], asker, ask_actor_with_letter, &what);
        (void)domt_iterate_home(world.managers[1]);
    }
    (void)domi_manager_take_arrivals(home_manager());
    model_add(what, way >= 2);
}

static void run_actor_for_so_many_messages(uint32_t messages)
{
    domi_manager_set_messages_per_run(home_manager(), messages);
    (void)domt_run_state_queue(home_manager());
    (void)domt_iterate_home(world.managers[1]);
}

static void run_until_nothing_is_left(void)
{
    domi_manager_set_messages_per_run(home_manager(), 64);
    domt_settle_world(&world);
}

static void do_random_step(void)
{
    static const uint64_t now = 0;
    static const uint64_t for_ever = DOMUS_FOR_EVER;
    const domus_behaviour *const behaviours[] = {&up, &down, &up, &down, &up, &plain};

    switch (random_below(64)) {
    case 0:
        send_call_as_event(unstash_all, NULL);
        run_actor_for_so_many_messages(1 + random_below(12));
        break;
    case 1:
        key_wanted = random_below(40);
        send_call_as_event(receive_wanted_key_within, &now);
        run_until_nothing_is_left();
        break;
    case 2: /* the actor waits to receive this key, and other messages wait meanwhile */
        run_until_nothing_is_left();
        key_wanted = random_below(40);
        send_call_as_event(receive_wanted_key_within, &for_ever);
        (void)domt_run_state_queue(home_manager());
        for (uint32_t i = random_below(100); i != 0; i--) {
            put_random_message();
            (void)domt_run_state_queue(home_manager());
        }
        for (uint32_t i = 0; (actor.house->marks & DOMI_MARK_RECEIVING) != 0; i++) {
            put_random_message();
            (void)domt_run_state_queue(home_manager());
        }
        break;
    case 3:
        if (random_below(4) == 0) {
            send_call_as_event(become_with_other_order, behaviours[random_below(6)]);
            run_actor_for_so_many_messages(1 + random_below(12));
        }
        break;
    case 4:
        if (random_below(8) == 0)
            run_until_nothing_is_left();
        break;
    default:
        if (random_below(5) < 3)
            put_random_message();
        else
            run_actor_for_so_many_messages(1 + random_below(3));
    }
    domi_house_check_lists(home_manager(), actor.house);
}

static void run_random_walk(uint64_t seed)
{
    domi_random_init(&chance, seed);
    count = numbers = taken = answered = asked = 0;
    direction = 1;
    domt_world_open_without_belts(&world, 2);
    actor = domt_spawn(domt_outside_manager(&world), home_manager(), &up, NULL);
    asker = domt_spawn(domt_outside_manager(&world), world.managers[1], &domt_agent, NULL);
    domt_settle_world(&world);
    for (int i = 0; i < OPERATIONS / WALKS; i++)
        do_random_step();
    run_until_nothing_is_left();
    send_call_as_event(unstash_all, NULL);
    run_until_nothing_is_left();
    /* some asks may have been stashed again, so all is unstashed until nothing waits */
    while (count != 0) {
        send_call_as_event(unstash_all, NULL);
        run_until_nothing_is_left();
    }
    ck_assert_uint_eq(taken, numbers);
    ck_assert_uint_eq(answered, asked);
    ck_assert_uint_gt(taken, OPERATIONS / WALKS / 4);
    domt_end_clean_world(&world);
}

DOMT_TEST(walks_of_a_hundred_thousand_operations_agree_with_the_model)
{
    for (uint64_t seed = 1; seed <= WALKS; seed++)
        run_random_walk(seed);
}

DOMT_SUITE(120)
