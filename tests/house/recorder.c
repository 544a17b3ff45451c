/* An actor that writes down what it handles; tests/house/recorder.h tells more. */
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

const domus_type domt_note = {.name = "note", .size = sizeof(int64_t)};
const domus_type domt_question = {.name = "question", .size = sizeof(int64_t)};
const domus_type domt_answer = {.name = "answer", .size = sizeof(int64_t)};
const domus_type domt_inquire = {.name = "inquire", .size = sizeof(domt_inquiry)};
const domus_type domt_tick = {.name = "tick", .size = sizeof(int64_t)};

static void write_entry_to_log(void *self, char what, int64_t number)
{
    domt_log *log = ((domt_recorder *)self)->log;

    ck_assert_uint_lt(log->count, DOMT_LOG_MAX);
    log->entries[log->count++] = (domt_entry){what, number};
}

static int on_note_log_letter_n(domus_stack *stack, void *self, const void *number)
{
    write_entry_to_log(self, 'n', *(const int64_t *)number);
    return 0;
}

static int on_question_log_letter_a_and_reply(domus_stack *stack, void *self, const void *number)
{
    const domt_recorder *recorder = self;

    write_entry_to_log(self, 'a', *(const int64_t *)number);
    if (recorder->fail != 0)
        return (int)recorder->fail;
    return domus_reply(stack, &domt_answer, number);
}

static int log_answer_as_letter_r_or_x(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        write_entry_to_log(self, 'x', answer->error);
    else
        write_entry_to_log(self, 'r', *(const int64_t *)answer->payload);
    return 0;
}

static int on_inquiry_ask(domus_stack *stack, void *self, const void *inquiry_)
{
    const domt_inquiry *inquiry = inquiry_;

    return domus_ask(stack, inquiry->to, &domt_question, &inquiry->number,
                     log_answer_as_letter_r_or_x);
}

static int on_tick_log_letter_e(domus_stack *stack, void *self, const void *number)
{
    write_entry_to_log(self, 'e', *(const int64_t *)number);
    return 0;
}

static int on_mount_count_in_log(domus_stack *stack, void *self)
{
    ((domt_recorder *)self)->log->mounts++;
    return 0;
}

static void on_stop_count_in_log(domus_stack *stack, void *self)
{
    ((domt_recorder *)self)->log->stops++;
}

const domus_behaviour domt_recording = {
    .name = "recorder",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domt_recorder),
    .on = (const domus_on[]){{&domt_note, on_note_log_letter_n, 0},
                             {&domt_question, on_question_log_letter_a_and_reply, 0},
                             {&domt_inquire, on_inquiry_ask, 0},
                             {&domt_tick, on_tick_log_letter_e, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}},
    .on_mount = on_mount_count_in_log,
    .on_stop = on_stop_count_in_log,
};

domus_address domt_spawn_recorder(domt_world *world, uint32_t home, domt_log *log)
{
    domt_recorder recorder = {.log = log};
    domus_address address =
        domt_spawn(domt_outside_manager(world), world->managers[home], &domt_recording, &recorder);

    domt_settle_world(world);
    return address;
}

domus_address domt_spawn_failing_recorder(domt_world *world, uint32_t home, domt_log *log)
{
    domus_address address = domt_spawn_recorder(world, home, log);

    ((domt_recorder *)address.house->self)->fail = -EIO;
    return address;
}

void domt_send_note(domi_manager *from, domus_address to, int64_t number)
{
    ck_assert_int_eq(domt_send_notice(from, to, &domt_note, &number), 0);
}

void domt_let_recorder_ask(domi_manager *from, domus_address asker, domus_address to,
                           int64_t number)
{
    domt_inquiry inquiry = {to, number};

    ck_assert_int_eq(domt_send_notice(from, asker, &domt_inquire, &inquiry), 0);
}

uint32_t domt_log_count_letter(const domt_log *log, char what)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < log->count; i++)
        count += log->entries[i].what == what;
    return count;
}

int64_t domt_log_sum_of_letter(const domt_log *log, char what)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < log->count; i++)
        sum += log->entries[i].what == what ? log->entries[i].number : 0;
    return sum;
}

const char *domt_log_letters_from_entry(const domt_log *log, uint32_t first)
{
    static char text[DOMT_LOG_MAX + 1];
    uint32_t length = 0;

    for (uint32_t i = first; i < log->count; i++)
        text[length++] = log->entries[i].what;
    text[length] = '\0';
    return text;
}
