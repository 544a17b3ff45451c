/* A crowd of actors sends at random, over the seeds of the test kit: some thousand asks, notices,
 * spawns, stops, timers, sleeps, time-outs, kept asks and barriers on three threads, in an order
 * that the seed picks.
 *
 * Each payload that is put is handled or released exactly once. Every wait resumes exactly once.
 * Each actor that was mounted is stopped. Order holds for each sender, receiver and kind, and no
 * actor in a barrier is disturbed. DOMUS_SEED=n runs seed n alone. */
#include "base/random.h"
#include "tests/support/kits.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/testkit.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SEEDS DOMT_SCALE(1000, 50)

#define TALKS 5000u /* messages that actors send in one seed */
#define CROWD 24u   /* number of actors at the beginning */
/* number of the actors that only answer; they have the lowest numbers */
#define LEAVES 3u
/* Actors up to this number are never stopped, so that the messages do not end too soon. */
#define ETERNAL   LEAVES
#define LIVES_MAX 224u
#define PRODS_MAX 10000
#define MS        UINT64_C(1000000)

enum { NOTICE, ASK, KINDS };

/* The state and the counts of the run of one seed. */
static struct {
    domi_random random;
    domus_address crowd[LIVES_MAX];
    uint32_t lives;
    uint32_t talks;
    uint32_t put[KINDS];
    uint32_t handled[KINDS];
    uint32_t released[KINDS];
    uint32_t replied, replies_came, replies_released;
    uint32_t waits, resumed;
    uint32_t armed, fired, timers_lost;
    uint32_t mounted, stopped;
    uint32_t overtaken; /* number of messages that came out of order, or to a wrong life */
    uint32_t disturbed; /* number of asks and notices that were handled in a barrier */
    uint32_t strangers; /* number of answers that belong to another ask than the one that waited */
    /* serial number of the newest message of each sender to each receiver */
    uint16_t sent[LIVES_MAX][LIVES_MAX][KINDS];
    uint16_t seen[LIVES_MAX][LIVES_MAX][KINDS];
} books;

typedef struct talk {
    uint16_t from; /* numbers of two lives: of the sender of the message, and of its receiver */
    uint16_t to;
    uint16_t number;
    uint16_t kind;
} talk;

typedef struct talker {
    uint16_t life;
    bool in_barrier;
    uint32_t timers;
    domus_kept kept; /* an ask that the actor has kept, to answer it at a tick */
} talker;

/* The frame of a conversation: what it remembers while it waits. */
typedef struct memory {
    talk question; /* if `asked` is true: the question that the conversation has asked */
    bool asked;
    bool answers; /* the conversation handles an ask of another actor */
    bool barrier;
} memory;

static void release_talk(void *payload)
{
    books.released[((const talk *)payload)->kind]++;
}

static void release_reply(void *payload)
{
    books.replies_released++;
}

static const domus_type notice_type = {
    .name = "notice", .size = sizeof(talk), .release = release_talk};
static const domus_type ask_type = {.name = "ask", .size = sizeof(talk), .release = release_talk};
static const domus_type reply_type = {
    .name = "reply", .size = sizeof(talk), .release = release_reply};
static const domus_type tick_type = {.name = "tick"};

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)domi_random_below(&books.random, n);
}

static const domus_behaviour talking, leaf;

static int spawn_talker(domus_stack *stack, const domus_behaviour *behaviour)
{
    talker state = {.life = (uint16_t)books.lives};

    if (books.lives == LIVES_MAX)
        return -ENOSPC;
    int error = domus_spawn(stack, behaviour, &state, &books.crowd[books.lives]);
    books.lives += error == 0;
    return error;
}

static talk make_talk(const talker *self, uint32_t to, uint16_t kind)
{
    return (talk){.from = self->life,
                  .to = (uint16_t)to,
                  .number = ++books.sent[self->life][to][kind],
                  .kind = kind};
}

static void arm_random_timer(domus_stack *stack, talker *self)
{
    bool ok = domus_after(stack, random_below(20) * MS, &tick_type, NULL, NULL) == 0;

    self->timers += ok;
    books.armed += ok;
}

/* Let the actor call a verb that needs no answer. */
static void call_random_verb(domus_stack *stack, talker *self)
{
    uint32_t to = random_below(books.lives);
    uint32_t dice = random_below(100);

    if (books.talks == 0)
        return;
    books.talks--;
    if (dice < 70) {
        talk what = make_talk(self, to, NOTICE);
        books.put[NOTICE] += domus_notice(stack, books.crowd[to], &notice_type, &what) == 0;
    } else if (dice < 88) {
        arm_random_timer(stack, self);
    } else if (dice < 93) {
        (void)spawn_talker(stack, &talking);
    } else if (to > ETERNAL && dice < 97) {
        (void)domus_stop(stack, books.crowd[to]);
    }
}

/* End a conversation in one of the ways that there are, by chance. */
static int finish_conversation(domus_stack *stack, talker *self, const memory *mind)
{
    uint32_t dice = random_below(10);

    if (mind->barrier)
        self->in_barrier = false;
    if (!mind->answers || dice == 0)
        return 0; /* the handler of an ask returns without an answer */
    if (dice == 1)
        return -ECANCELED;
    if (dice == 2 && self->kept.stack == NULL && domus_keep(stack, &self->kept) == 0) {
        arm_random_timer(stack, self);
        return 0;
    }
    talk reply = {.from = self->life};
    int error = domus_reply(stack, &reply_type, &reply);
    books.replied += error == 0;
    return error;
}

static void reply_to_kept(domus_stack *stack, talker *self)
{
    talk reply = {.from = self->life};

    if (self->kept.stack != NULL)
        books.replied += domus_kept_reply(stack, self->kept, &reply_type, &reply) == 0;
    self->kept.stack = NULL;
}

static int handle_answer_at_random(domus_stack *stack, void *self_, const domus_answer *answer)
{
    talker *self = self_;
    const memory *mind = domus_frame(stack);

    books.resumed++;
    if (answer->error == 0 && mind->asked) {
        (void)domus_take(stack);
        books.replies_came++;
        books.strangers += ((const talk *)answer->payload)->from != mind->question.to;
    }
    call_random_verb(stack, self);
    return finish_conversation(stack, self, mind);
}

/* Ask an actor. In a barrier ask only a leaf, an actor that answers at once, because an ask to
 * another actor might wait for ever. */
static int ask_at_random(domus_stack *stack, talker *self, memory *mind)
{
    uint64_t timeout_ns = random_below(4) == 0 ? (1 + random_below(9)) * MS : 0;
    uint32_t to = random_below(books.lives);

    if (random_below(8) == 0 && domus_barrier(stack) == 0) {
        self->in_barrier = mind->barrier = true;
        to = random_below(LEAVES);
    }
    mind->asked = true;
    mind->question = make_talk(self, to, ASK);
    return domus_ask_within(stack, books.crowd[to], &ask_type, &mind->question, timeout_ns,
                            handle_answer_at_random);
}

static int handle_talk_at_random(domus_stack *stack, talker *self, const talk *what)
{
    memory *mind = domus_frame(stack);

    (void)domus_take(stack);
    books.handled[what->kind]++;
    books.disturbed += self->in_barrier;
    uint16_t *seen = &books.seen[what->from][what->to][what->kind];
    books.overtaken += what->to != self->life || what->number <= *seen;
    *seen = what->number;
    mind->answers = what->kind == ASK;
    call_random_verb(stack, self);
    call_random_verb(stack, self);
    uint32_t dice = random_below(10);
    if (books.talks == 0 || dice > 4)
        return finish_conversation(stack, self, mind);
    books.talks--;
    int result = dice == 0 ? domus_sleep(stack, random_below(9) * MS, handle_answer_at_random)
                           : ask_at_random(stack, self, mind);
    books.put[ASK] += result == DOMUS_PARKED && mind->asked;
    books.waits += result == DOMUS_PARKED;
    return result;
}

static int handle_talk(domus_stack *stack, void *self, const void *payload)
{
    return handle_talk_at_random(stack, self, payload);
}

static int count_tick_and_call_random_verbs(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;

    books.fired++;
    self->timers--;
    reply_to_kept(stack, self);
    call_random_verb(stack, self);
    call_random_verb(stack, self);
    return 0;
}

static int finish_talk_of_leaf(domus_stack *stack, void *self, const void *payload)
{
    const talk *what = payload;
    memory mind = {.answers = what->kind == ASK};

    (void)domus_take(stack);
    books.handled[what->kind]++;
    return finish_conversation(stack, self, &mind);
}

static int reply_to_kept_on_tick(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;

    books.fired++;
    self->timers--;
    reply_to_kept(stack, self);
    return 0;
}

static int on_mount_count_talker(domus_stack *stack, void *self)
{
    books.mounted++;
    return 0;
}

static void on_stop_count_talker(domus_stack *stack, void *self)
{
    books.stopped++;
    books.timers_lost += ((const talker *)self)->timers;
}

static const domus_behaviour talking = {
    .name = "talking",
    .state_size = sizeof(talker),
    .on = (const domus_on[]){{&notice_type, handle_talk, sizeof(memory)},
                             {&ask_type, handle_talk, sizeof(memory)},
                             {&tick_type, count_tick_and_call_random_verbs, 0},
                             {0}},
    .on_mount = on_mount_count_talker,
    .on_stop = on_stop_count_talker};

static const domus_behaviour leaf = {.name = "leaf",
                                     .state_size = sizeof(talker),
                                     .on =
                                         (const domus_on[]){{&notice_type, finish_talk_of_leaf, 0},
                                                            {&ask_type, finish_talk_of_leaf, 0},
                                                            {&tick_type, reply_to_kept_on_tick, 0},
                                                            {0}},
                                     .on_mount = on_mount_count_talker,
                                     .on_stop = on_stop_count_talker};

/* --- a seed ---------------------------------------------------------------------------------- */

/* Returns the text of the first rule that does not hold, or NULL. */
static const char *find_broken_rule(void)
{
    const struct {
        bool holds;
        const char *what;
    } rules[] = {
        {books.talks == 0, "the crowd fell silent"},
        {books.put[NOTICE] == books.handled[NOTICE] + books.released[NOTICE], "notices"},
        {books.put[ASK] == books.handled[ASK] + books.released[ASK], "asks"},
        {books.waits == books.resumed, "conversations"},
        {books.replied == books.replies_came + books.replies_released, "replies"},
        {books.armed == books.fired + books.timers_lost, "timers"},
        {books.mounted == books.stopped && books.stopped <= books.lives, "lives"},
        {books.overtaken == 0, "order"},
        {books.disturbed == 0, "barriers"},
        {books.strangers == 0, "answers"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!rules[i].holds)
            return rules[i].what;
    }
    return NULL;
}

static domus_testkit *make_kit_for_seed(uint64_t seed)
{
    domus_config config;

    domus_config_init(&config);
    config.system.threads = 3;
    config.scheduler.mailbox_max = 16;
    config.scheduler.belt_slots = 64;
    config.scheduler.messages_per_run_max = 16;
    /* seeds that lend houses to other threads wherever they can: three of four */
    if (seed % 4 != 0) {
        config.scheduler.steal.floor = 1;
        config.scheduler.steal.aggression = 1 + seed % 4;
    }
    return domt_kit_new(&config, seed);
}

/* Send an actor its first message, as if the actor had sent it to itself. */
static void send_first_message(domus_system *system, uint32_t life)
{
    talk what = {.from = (uint16_t)life, .to = (uint16_t)life, .kind = NOTICE};

    what.number = ++books.sent[life][life][NOTICE];
    books.put[NOTICE] += domus_outside_notice(system, books.crowd[life], &notice_type, &what) == 0;
}

/* Spawn the first actors, spread over the threads or all on one; then the other threads run them on
 * loans. */
static void spawn_crowd(domus_system *system, bool spread)
{
    const domus_spawn_options options = {.placement = spread ? DOMUS_SPREAD : DOMUS_ON_THREAD};

    for (uint32_t i = 0; i < CROWD; i++) {
        talker state = {.life = (uint16_t)i};
        ck_assert_int_eq(domus_outside_spawn_with(system, i < LEAVES ? &leaf : &talking, &state,
                                                  &options, &books.crowd[i]),
                         0);
    }
    books.lives = CROWD;
    for (uint32_t i = LEAVES; i < CROWD; i++)
        send_first_message(system, i);
}

static uint64_t loans; /* number of loans in all seeds together */

/* Run one seed; `context` gets the text of the rule that does not hold. */
static int run_seed_and_check_rules(uint64_t seed, void *context)
{
    const char **ret_what = context;
    domus_testkit *kit = make_kit_for_seed(seed);

    memset(&books, 0, sizeof books);
    domi_random_init(&books.random, seed);
    books.talks = TALKS;
    spawn_crowd(domus_testkit_system(kit), seed % 2 == 0);
    for (int prods = 0; prods < PRODS_MAX && books.talks != 0; prods++) {
        ck_assert_msg(domus_testkit_advance(kit, 50 * MS) == 0, "%s", domus_testkit_error(kit));
        send_first_message(domus_testkit_system(kit), ETERNAL);
    }
    ck_assert_msg(domus_testkit_advance(kit, 50 * MS) == 0, "%s", domus_testkit_error(kit));
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    for (uint32_t i = 0; i < 3; i++) {
        domus_profile profile;
        ck_assert_int_eq(domus_system_profile(domus_testkit_system(kit), i, &profile), 0);
        loans += profile.steals;
    }
    *ret_what = find_broken_rule();
    domus_testkit_free(kit);
    return *ret_what == NULL ? 0 : -EPROTO;
}

DOMT_TEST(counts_of_messages_in_a_crowd_hold_for_each_seed)
{
    const char *what = NULL;
    uint64_t seed = 0;
    char replay[DOMUS_TESTKIT_TEXT_MAX];
    int result = domus_testkit_sweep(1, SEEDS, run_seed_and_check_rules, &what, &seed);

    ck_assert_msg(result == 0, "%s: %s", what, domus_testkit_replay(seed, replay, sizeof replay));
    ck_assert_msg(loans > SEEDS * 20, "%" PRIu64 " loans", loans);
}

DOMT_SUITE(60)
