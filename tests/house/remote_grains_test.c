/* Grains that are spread over nodes (domus/remote.h): messages to them go to gateways, which pass
 * them on to the grains here, until a thread has opened the part. */
#include "house/directory/grain.h"
#include "tests/house/remote_world.h"

#include <domus/supervise.h>

#include <stdio.h>
#include <string.h>

/* --- the kind ----------------------------------------------------------------------------------
 */

typedef struct odd {
    unsigned char bytes[13];
} odd;

typedef struct large {
    unsigned char bytes[3001];
} large;

static const domus_type odd_type = {.name = "odd", .size = sizeof(odd)};
static const domus_type large_type = {.name = "large", .size = sizeof(large)};

static struct {
    unsigned notices, asks, lives, ended;
    uint64_t value, fence;
    domus_address sender;
    char key[64];
    bool is_whole;
} life;

static int on_mount_record_life(domus_stack *stack, void *self)
{
    life.lives++;
    life.fence = domus_grain_fence(stack);
    (void)snprintf(life.key, sizeof life.key, "%s", domus_grain_key(stack));
    return 0;
}

static void on_stop_count_end_of_life(domus_stack *stack, void *self)
{
    life.ended++;
}

static int record_word_and_reply(domus_stack *stack, void *self, const void *payload)
{
    memcpy(&life.value, payload, sizeof life.value);
    life.sender = domus_sender(stack);
    if (domus_reply(stack, &domt_plain, payload) == 0)
        life.asks++;
    else
        life.notices++;
    return 0;
}

/* Returns true if each byte of `bytes` is the low byte of its index. */
static bool are_bytes_their_indices(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (unsigned char)i)
            return false;
    }
    return true;
}

static int record_whether_odd_payload_is_whole(domus_stack *stack, void *self, const void *payload)
{
    life.is_whole = are_bytes_their_indices(payload, sizeof(odd));
    return 0;
}

static int record_whether_large_is_whole_and_reply(domus_stack *stack, void *self,
                                                   const void *payload)
{
    life.is_whole = are_bytes_their_indices(payload, sizeof(large));
    (void)domus_reply(stack, &domt_plain, &life.value);
    return 0;
}

static const domus_behaviour behaviour = {
    .name = "grain",
    .on_mount = on_mount_record_life,
    .on_stop = on_stop_count_end_of_life,
    .on = (const domus_on[]){{&domt_word, record_word_and_reply, 0},
                             {&odd_type, record_whether_odd_payload_is_whole, 0},
                             {&large_type, record_whether_large_is_whole_and_reply, 0},
                             {0}}};
static const domus_grain_kind kind = {.name = "spread", .behaviour = &behaviour};

static domi_grains grains;
static domus_grains spread;

static int place_grains(domus_stack *stack, void *expected)
{
    ck_assert_int_eq(domus_remote_grains_place(stack, spread), *(const int *)expected);
    return 0;
}

static void open_world(void)
{
    static const uint64_t secret[2] = {1, 2};
    int no_error = 0, not_permitted = -EPERM;

    memset(&life, 0, sizeof life);
    domt_remote_open_world(NULL);
    domi_grains_init(&grains, 4, 100, secret);
    for (uint32_t i = 0; i <= 2; i++)
        domt_remote.managers[i]->directory.grains = &grains;
    ck_assert_int_eq(domi_grain_open_kind(domt_remote.managers[0], &kind, &spread.kind), 0);
    domt_run_as_agent(0, place_grains, &not_permitted);
    domt_run_as_gateway(0, place_grains, &no_error);
    /* the gateway of the other home places the same kind */
    domt_run_as_gateway(1, place_grains, &no_error);
}

static void close_world(void)
{
    domt_world_end(&domt_remote);
    domi_routers_fini(&domt_remote_routers);
    domi_grains_fini(&grains);
    domi_remotes_fini(&domt_remotes);
}

/* --- what is done as somebody ------------------------------------------------------------------
 */

typedef struct doing {
    const char *key;
    const domus_type *type;
    const void *payload;
    uint64_t value;
    uint64_t timeout_ns;
    uint32_t part;
    int expected;
    int error; /* error of the answer; 1: none came yet */
    uint64_t answer;
    domus_kept kept;
    domus_conversation conversation;
} doing;

static doing now;

static int notify_grain(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_grain_notice(stack, spread, now.key, now.type, now.payload),
                     now.expected);
    return 0;
}

static int record_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    now.error = answer->error;
    if (answer->payload != NULL)
        memcpy(&now.answer, answer->payload, sizeof now.answer);
    return 0;
}

static int ask_grain(domus_stack *stack, void *unused)
{
    now.error = 1;
    ck_assert_int_eq(domus_conversation_of(stack, &now.conversation), 0);
    return domus_grain_ask_within(stack, spread, now.key, now.type, now.payload, now.timeout_ns,
                                  record_answer);
}

static int set_fence_of_part(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_remote_part_set(stack, now.part, now.value), now.expected);
    return 0;
}

static int open_part(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_remote_part_open(stack, now.part), now.expected);
    return 0;
}

static int close_part(domus_stack *stack, void *unused)
{
    domus_remote_part_close(stack, now.part);
    return 0;
}

static int pass_kept_ask_to_grain(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_remote_grain_pass_kept(stack, now.kept), now.expected);
    return 0;
}

static void set_key_and_payload_of_next_send(const char *key, uint64_t *value)
{
    now = (doing){.key = key, .type = &domt_word, .payload = value};
    now.part = (uint32_t)domus_remote_part_of(spread, key);
}

/* Tell this system that it has the part to which the key belongs, with a fence. */
static void give_part_to_this_system(const char *key, uint64_t fence)
{
    set_key_and_payload_of_next_send(key, &(uint64_t){0});
    now.value = fence;
    domt_run_as_agent(0, set_fence_of_part, NULL);
}

/* --- tests -------------------------------------------------------------------------------------
 */

DOMT_TEST(messages_to_grains_come_to_the_gateway_of_the_sender)
{
    uint64_t value = 42;

    open_world();
    set_key_and_payload_of_next_send("17", &value);
    domt_run_as_agent(1, notify_grain, NULL);
    ck_assert_uint_eq(domt_carried_by[1].notices, 1);
    ck_assert_uint_eq(domt_carried_by[0].notices, 0);
    ck_assert_uint_eq(domt_carried_by[1].target.node, DOMUS_REMOTE_GRAINS);
    ck_assert_uint_eq(domt_carried_by[1].value, 42);
    ck_assert_ptr_eq(domt_carried_by[1].type, &domt_word);
    ck_assert(domus_address_equals(domt_carried_by[1].sender, domt_agents[1]));
    now.timeout_ns = DOMT_MS;
    domt_run_as_agent(0, ask_grain, NULL);
    ck_assert_uint_eq(domt_carried_by[0].asks, 1);
    ck_assert_int_eq(now.error, 1);
    ck_assert_uint_eq(life.lives, 0);
    now.expected = -EINVAL;
    now.key = "no key";
    domt_run_as_agent(1, notify_grain, NULL);
    now.key = "";
    domt_run_as_agent(1, notify_grain, NULL);
    close_world();
}

DOMT_TEST(a_kept_ask_is_passed_on_if_the_part_has_a_fence)
{
    uint64_t value = 7;

    open_world();
    set_key_and_payload_of_next_send("17", &value);
    domt_run_as_agent(1, ask_grain, NULL);
    now.kept = domt_carried_by[1].kept[0];
    now.expected = -EHOSTDOWN;
    domt_run_as_gateway(1, pass_kept_ask_to_grain, NULL);
    ck_assert_uint_eq(life.lives, 0);
    now.expected = 0;
    now.value = 99;
    domt_run_as_agent(0, set_fence_of_part, NULL);
    domt_run_as_gateway(1, pass_kept_ask_to_grain, NULL);
    ck_assert_uint_eq(life.asks, 1);
    ck_assert_uint_eq(life.fence, 99);
    ck_assert_str_eq(life.key, "17");
    ck_assert(domus_address_equals(life.sender, domt_agents[1]));
    ck_assert_int_eq(now.error, 0);
    ck_assert_uint_eq(now.answer, 7);
    now.expected = -ENOENT;
    domt_run_as_gateway(1, pass_kept_ask_to_grain, NULL);
    close_world();
}

DOMT_TEST(an_open_part_needs_no_gateway)
{
    open_world();
    give_part_to_this_system("17", 3);
    set_key_and_payload_of_next_send("17", &(uint64_t){5});
    domt_run_as_gateway(0, open_part, NULL);
    domt_run_as_agent(0, notify_grain, NULL);
    ck_assert_uint_eq(domt_carried_by[0].notices, 0);
    ck_assert_uint_eq(life.notices, 1);
    /* the thread of home 1 has not opened the part, so its message goes to a gateway */
    domt_run_as_agent(1, notify_grain, NULL);
    ck_assert_uint_eq(domt_carried_by[1].notices, 1);
    domt_run_as_gateway(0, close_part, NULL);
    domt_run_as_agent(0, notify_grain, NULL);
    ck_assert_uint_eq(domt_carried_by[0].notices, 1);
    ck_assert_uint_eq(life.notices, 1);
    now.expected = -EPERM;
    domt_run_as_agent(0, open_part, NULL);
    now.expected = -EINVAL;
    now.part = DOMUS_REMOTE_PARTS;
    domt_run_as_gateway(0, open_part, NULL);
    domt_run_as_agent(0, set_fence_of_part, NULL);
    close_world();
}

static int notify_grain_and_refuse_open(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_grain_notice(stack, spread, now.key, now.type, now.payload), 0);
    ck_assert_int_eq(domus_remote_part_open(stack, now.part), -EAGAIN);
    return 0;
}

DOMT_TEST(a_part_is_not_opened_while_mail_waits_for_the_gateway)
{
    open_world();
    set_key_and_payload_of_next_send("17", &(uint64_t){5});
    domt_run_as_gateway(0, notify_grain_and_refuse_open, NULL);
    domt_run_as_gateway(0, open_part, NULL);
    close_world();
}

DOMT_TEST(payloads_of_any_size_stay_whole)
{
    odd small;
    large big;

    open_world();
    give_part_to_this_system("a", 1);
    set_key_and_payload_of_next_send("a", NULL);
    for (size_t i = 0; i < sizeof big.bytes; i++)
        big.bytes[i] = (unsigned char)i;
    memcpy(small.bytes, big.bytes, sizeof small.bytes);
    now.type = &large_type;
    now.payload = &big;
    domt_run_as_agent(0, ask_grain, NULL);
    now.kept = domt_carried_by[0].kept[0];
    domt_run_as_gateway(0, pass_kept_ask_to_grain, NULL);
    ck_assert(life.is_whole);
    ck_assert_int_eq(now.error, 0);
    life.is_whole = false;
    domt_run_as_gateway(0, open_part, NULL);
    now.type = &odd_type;
    now.payload = &small;
    domt_run_as_agent(0, notify_grain, NULL);
    ck_assert(life.is_whole);
    close_world();
}

/* --- what other nodes send ---------------------------------------------------------------------
 */

static int send_to_grain_as_remote_actor(domus_stack *stack, void *far_)
{
    domus_address far = *(const domus_address *)far_;
    const domus_address nobody = {NULL, 0};
    domus_grains found, none = {NULL};

    ck_assert_int_eq(domus_remote_grains_find(stack, "other", &found), -ENOENT);
    ck_assert_int_eq(domus_remote_grains_find(stack, "spread", &found), 0);
    ck_assert_ptr_eq(found.kind, spread.kind);
    ck_assert_int_eq(domus_remote_grain_notice(stack, far, found, now.key, now.type, now.payload),
                     now.expected);
    ck_assert_int_eq(domus_remote_grain_notice(stack, nobody, none, now.key, now.type, now.payload),
                     -EINVAL);
    ck_assert_int_eq(domus_remote_grain_ask(stack, domt_askers[0], far, found, now.key, now.type,
                                            now.payload, 0, 8, NULL),
                     0);
    return 0;
}

DOMT_TEST(other_nodes_reach_a_grain_whose_part_is_here)
{
    uint64_t value = 21;

    open_world();
    domus_address far = domt_remote_address(1, 0);
    set_key_and_payload_of_next_send("b", &value);
    now.expected = -EHOSTDOWN;
    domt_run_as_gateway(0, send_to_grain_as_remote_actor, &far);
    ck_assert_int_eq(domt_carried_by[0].answer_error, -EHOSTDOWN);
    give_part_to_this_system("b", 4);
    set_key_and_payload_of_next_send("b", &value);
    domt_run_as_gateway(0, send_to_grain_as_remote_actor, &far);
    ck_assert_uint_eq(life.notices, 1);
    ck_assert_uint_eq(life.asks, 1);
    ck_assert_uint_eq(life.value, 21);
    ck_assert(domus_address_equals(life.sender, far));
    ck_assert_int_eq(domt_carried_by[0].answer_error, 0);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 21);
    ck_assert_uint_eq(domt_carried_by[0].answer_tag, 8);
    close_world();
}

/* --- parts that go -----------------------------------------------------------------------------
 */

typedef struct stopping {
    bool after_mail;
    bool others; /* true: stop the grains of all parts but this one */
    uint32_t left;
} stopping;

static int stop_grains_of_parts(domus_stack *stack, void *stopping_)
{
    stopping *way = stopping_;

    domus_remote_parts parts;

    memset(&parts, way->others ? 0xff : 0, sizeof parts);
    parts.bits[now.part / 64] ^= UINT64_C(1) << now.part % 64;
    way->left = domus_remote_part_living(stack, now.part);
    domus_remote_parts_stop(stack, &parts, way->after_mail);
    return 0;
}

DOMT_TEST(the_grains_of_a_part_are_stopped_and_counted)
{
    uint64_t value = 1;

    open_world();
    for (uint32_t round = 0; round < 2; round++) {
        stopping way = {.after_mail = round == 0, .others = true, .left = 9};
        give_part_to_this_system("c", 10 + round);
        set_key_and_payload_of_next_send("c", &value);
        domt_run_as_gateway(0, open_part, NULL);
        domt_run_as_agent(0, notify_grain, NULL);
        ck_assert_uint_eq(life.lives, round + 1);
        ck_assert_uint_eq(life.fence, 10 + round);
        domt_run_as_agent(0, stop_grains_of_parts, &way);
        ck_assert_uint_eq(life.ended, round);
        way.others = false;
        domt_run_as_agent(0, stop_grains_of_parts, &way);
        ck_assert_uint_eq(way.left, 1);
        ck_assert_uint_eq(life.ended, round + 1);
        domt_run_as_agent(0, stop_grains_of_parts, &way);
        ck_assert_uint_eq(way.left, 0);
        give_part_to_this_system("c", 0);
    }
    set_key_and_payload_of_next_send("c", &value);
    now.expected = -EHOSTDOWN; /* no life is made in a part that was given up */
    domt_run_as_agent(0, notify_grain, NULL);
    ck_assert_uint_eq(life.lives, 2);
    close_world();
}

/* Send the grain two notices, and stop it before it has handled them. */
static int notify_grain_twice_and_stop_it(domus_stack *stack, void *stopping_)
{
    (void)notify_grain(stack, NULL);
    (void)notify_grain(stack, NULL);
    return stop_grains_of_parts(stack, stopping_);
}

DOMT_TEST(a_grain_is_stopped_behind_its_mail_or_before)
{
    uint64_t value = 1;

    open_world();
    give_part_to_this_system("c", 10);
    set_key_and_payload_of_next_send("c", &value);
    domt_run_as_gateway(0, open_part, NULL);
    domt_run_as_agent(0, notify_grain, NULL);
    domt_run_as_agent(0, notify_grain_twice_and_stop_it, &(stopping){.after_mail = true});
    ck_assert_uint_eq(life.notices, 3);
    ck_assert_uint_eq(life.ended, 1);
    ck_assert_uint_eq(life.lives, 1);
    domt_run_as_agent(0, notify_grain, NULL);
    domt_run_as_agent(0, notify_grain_twice_and_stop_it, &(stopping){.after_mail = false});
    /* the last two notices have come to the next life */
    ck_assert_uint_eq(life.notices, 6);
    ck_assert_uint_eq(life.ended, 2);
    ck_assert_uint_eq(life.lives, 3);
    close_world();
}

static int try_name_of_grains_as_address(domus_stack *stack, void *unused)
{
    const domus_remote_name name = {.node = DOMUS_REMOTE_GRAINS, .number = 1, .lease = 1};
    domus_address address;
    domus_remote_grain grain;

    ck_assert_int_eq(domus_remote_address(stack, &name, &address), -EINVAL);
    ck_assert_int_eq(domus_remote_node_open(stack, DOMUS_REMOTE_GRAINS, 0), -EINVAL);
    /* the message that is handled now is a call, which was sent to no grain */
    ck_assert_int_ne(domus_remote_grain_of(stack, &grain), 0);
    return 0;
}

DOMT_TEST(name_that_stands_for_grains_is_refused_as_an_address)
{
    open_world();
    domt_run_as_gateway(0, try_name_of_grains_as_address, NULL);
    ck_assert_int_eq(domus_remote_part_of((domus_grains){NULL}, "a"), -EINVAL);
    ck_assert_int_eq(domus_remote_part_of(spread, ""), -EINVAL);
    /* A key belongs to the same part on every machine, for ever. */
    ck_assert_int_eq(domus_remote_part_of(spread, "17"), 113);
    close_world();
}

DOMT_SUITE(10)
