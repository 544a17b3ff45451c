/* An actor that receives; tests/house/picker.h tells more. */
#include "tests/house/picker.h"
#include "tests/house/steps.h"

#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

domt_picked domt_pick;

static void count_release(void *payload)
{
    domt_pick.releases++;
}

const domus_type domt_pick_note = {.name = "note", .size = 8, .release = count_release};
const domus_type domt_pick_urgent = {.name = "urgent", .size = 8, .release = count_release};
const domus_type domt_pick_question = {.name = "question", .size = 8, .release = count_release};
const domus_type domt_pick_number = {.name = "number", .size = 8};

__attribute__((format(printf, 3, 4))) static void append_text(char *where, size_t room,
                                                              const char *format, ...)
{
    size_t length = strlen(where);
    va_list arguments;

    va_start(arguments, format);
    int written = vsnprintf(where + length, room - length, format, arguments);
    va_end(arguments);
    ck_assert_int_lt(written, (int)(room - length));
}

void domt_pick_write_number(const char *before, int64_t number, const char *after)
{
    append_text(domt_pick.text, sizeof domt_pick.text, "%s%lld%s ", before, (long long)number,
                after);
}

static int take_payload_and_write(domus_stack *stack, const char *what, const void *number)
{
    (void)domus_take(stack);
    domt_pick_write_number(what, *(const int64_t *)number, "");
    return 0;
}

static int write_note(domus_stack *stack, void *self, const void *number)
{
    return take_payload_and_write(stack, "", number);
}

static int write_urgent_note(domus_stack *stack, void *self, const void *number)
{
    return take_payload_and_write(stack, "u", number);
}

static int write_question_and_reply(domus_stack *stack, void *self, const void *number)
{
    (void)take_payload_and_write(stack, "q", number);
    return domus_reply(stack, &domt_pick_number, number);
}

const domus_behaviour domt_picking = {
    .name = "picking",
    .state_size = 8,
    .on = (const domus_on[]){{&domt_pick_note, write_note, 0},
                             {&domt_pick_urgent, write_urgent_note, 0},
                             {&domt_pick_question, write_question_and_reply, 0},
                             {&domt_call_type, domt_on_call_run_function, 16},
                             {0}}};

static bool is_number_7(const void *self, const void *frame, const domus_type *type,
                        const void *payload)
{
    domt_pick.looks++;
    return *(const int64_t *)payload == 7;
}

const domus_pattern domt_any = {NULL, NULL};
const domus_pattern domt_sevens = {(const domus_type *const[]){&domt_pick_note, NULL}, is_number_7};
const domus_pattern domt_questions = {(const domus_type *const[]){&domt_pick_question, NULL}, NULL};
const domus_pattern domt_urgents = {(const domus_type *const[]){&domt_pick_urgent, NULL}, NULL};

void domt_pick_open_world(uint32_t mailbox_max, uint32_t conversations_max)
{
    domt_world *world = &domt_pick.world;

    domt_pick = (domt_picked){0};
    domt_world_init(world, 2);
    if (mailbox_max != 0)
        world->config.scheduler.mailbox_max = mailbox_max;
    if (conversations_max != 0)
        world->config.scheduler.conversations_max = conversations_max;
    ck_assert_int_eq(domt_world_start(world), 0);
    domt_pick.picker =
        domt_spawn(domt_outside_manager(world), world->managers[0], &domt_picking, NULL);
    domt_pick.asker =
        domt_spawn(domt_outside_manager(world), world->managers[1], &domt_agent, NULL);
    domt_settle_world(world);
}

void domt_pick_close_world(void)
{
    const domi_house *house = domt_pick.picker.house;

    ck_assert_uint_eq(house->asks, 0);
    ck_assert_uint_eq(domi_house_count_parked_conversations(house), 0);
    ck_assert_uint_eq(house->mail, 0);
    ck_assert_uint_eq(house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_FRESH), 0);
    ck_assert_uint_eq(house->home->timing.deadlines.count, 0);
    domt_end_clean_world(&domt_pick.world);
}

void domt_pick_settle_world(void)
{
    domt_settle_world(&domt_pick.world);
}

void domt_pick_pass_ns(uint64_t ns)
{
    domt_pass_time(&domt_pick.world, ns);
}

void domt_pick_stop_picker(void)
{
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_outside_manager(&domt_pick.world), domt_pick.picker), 0);
    domt_pick_settle_world();
}

void domt_pick_expect_text(const char *text)
{
    domt_pick_settle_world();
    ck_assert_str_eq(domt_pick.text, text);
}

void domt_pick_expect_answers(const char *answers)
{
    domt_pick_settle_world();
    ck_assert_str_eq(domt_pick.answers, answers);
}

void domt_send_notice_to_picker(const domus_type *type, int64_t number)
{
    ck_assert_int_eq(domt_send_notice(domt_pick.world.managers[0], domt_pick.picker, type, &number),
                     0);
}

void domt_send_notes_to_picker(int64_t first, int64_t last)
{
    for (; first <= last; first++)
        domt_send_notice_to_picker(&domt_pick_note, first);
}

void domt_send_call_to_picker(int (*function)(domus_stack *, void *), const void *context)
{
    domt_send_function_to_call(domt_pick.world.managers[0], domt_pick.picker, function,
                               (void *)(uintptr_t)context);
}

void domt_send_call_to_picker_as_event(int (*function)(domus_stack *, void *), const void *context)
{
    domi_manager *home = domt_pick.world.managers[0];
    domt_call call = {function, (void *)(uintptr_t)context};
    domi_envelope *envelope = domi_envelope_new(home, sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &domt_call_type;
    envelope->sender = NULL;
    memcpy(envelope->payload, &call, sizeof call);
    ck_assert_int_eq(domi_mailbox_put(home, domt_pick.picker, &envelope->node, DOMI_EVENT), 0);
}

static int write_answer_of_asker(domus_stack *stack, void *self, const domus_answer *answer)
{
    bool failed = answer->error != 0;

    append_text(domt_pick.answers, sizeof domt_pick.answers, "%c%lld ", failed ? 'x' : 'r',
                (long long)(failed ? answer->error : *(const int64_t *)answer->payload));
    return 0;
}

typedef struct inquiry {
    int64_t number;
    uint64_t timeout_ns;
} inquiry;

static int ask_picker_within(domus_stack *stack, void *context)
{
    const inquiry *now = context;

    return domus_ask_within(stack, domt_pick.picker, &domt_pick_question, &now->number,
                            now->timeout_ns, write_answer_of_asker);
}

void domt_ask_picker(int64_t number, uint64_t timeout_ns)
{
    inquiry now = {number, timeout_ns};

    domt_send_function_to_call(domt_pick.world.managers[1], domt_pick.asker, ask_picker_within,
                               &now);
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    (void)domi_manager_take_arrivals(domt_pick.world.managers[0]);
}

bool domt_write_received(const domus_answer *answer)
{
    if (answer->error == -ETIMEDOUT)
        append_text(domt_pick.text, sizeof domt_pick.text, "- ");
    else if (answer->error != 0)
        domt_pick_write_number("x", -answer->error, "");
    else
        domt_pick_write_number(answer->type == &domt_pick_question ? "(q"
                               : answer->type == &domt_pick_urgent ? "(u"
                                                                   : "(",
                               *(const int64_t *)answer->payload, ")");
    return answer->error == 0;
}

int domt_write_received_and_end(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    (void)domt_write_received(answer);
    return 0;
}

int domt_receive_by_pattern(domus_stack *stack, void *pattern)
{
    return domus_receive(stack, pattern, domt_write_received_and_end);
}

int domt_receive_as_ordered(domus_stack *stack, void *reception)
{
    const domt_reception *now = reception;

    return domus_receive_within(stack, now->pattern, now->within_ns, now->then);
}
