/* The log reports messages for which a behaviour has no row, and asks that a handler did not
 * answer: once for each behaviour and type, with a hint for the user. */
#include "tests/runtime/running.h"
#include "tests/runtime/stalls.h"

#include <errno.h>

static const domus_type question = {.name = "question"};
/* another type of the same name, as if a header defined it in each file */
static const domus_type namesake_type = {.name = "question"};
static const domus_type unknown_type = {.name = "unknown"};
static const domus_type silent_type = {.name = "silent"};
static const domus_type heard_type = {.name = "heard"};
static const domus_type ask_type = {.name = "ask", .size = sizeof(domus_type *)};
static domus_address deaf_address;
static _Atomic uint64_t handled, resumed;
static _Atomic int last_error;

static int reply_to_any_ask(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &question, NULL);
}

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

/* End a cancelled conversation without an answer, which is no mistake: the asker has ended, and a
 * cancelled conversation answers nobody. */
static int end_cancelled_without_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ECANCELED);
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int sleep_for_ten_seconds(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return domus_sleep(stack, 10000 * DOMT_MS, end_cancelled_without_answer);
}

static const domus_behaviour deaf = {
    .name = "deaf",
    .on = (const domus_on[]){{&question, reply_to_any_ask, 0},
                             {&silent_type, ignore_message, 0},
                             {&heard_type, sleep_for_ten_seconds, 0},
                             {NULL, NULL, 0}},
};

static int record_error_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&handled, 1);
    return 0;
}

static int ask_deaf_actor(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, deaf_address, *(const domus_type *const *)payload, NULL,
                     record_error_of_ask);
}

static const domus_behaviour asker = {
    .name = "asker", .on = (const domus_on[]){{&ask_type, ask_deaf_actor, 0}, {NULL, NULL, 0}}};

DOMT_TEST(message_without_handler_or_answer_is_logged_once)
{
    static const struct {
        const domus_type *type;
        int error;        /* error that the asker of a message of this type gets */
        const char *line; /* line that must be in the log; NULL: none */
    } asked[] = {
        {&question, 0, NULL},
        {&unknown_type, -EOPNOTSUPP,
         "it got a message of the type unknown, for which its behaviour has no row"},
        {&namesake_type, -EOPNOTSUPP, "it got a message of a type question that is not the one in"},
        {&silent_type, -ENOMSG, "handles the ask silent has ended without an answer"},
    };
    domus_config config = domt_config_of_threads(1);
    domus_system *system = domt_start_logging_system(&config);
    unsigned told = 0;

    deaf_address = domt_spawn(system, 0, &deaf, NULL);
    domus_address address = domt_spawn(system, 0, &asker, NULL);
    atomic_store(&resumed, 0);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        for (uint64_t time = 1; time <= 2; time++) {
            atomic_store(&handled, 0);
            domt_send_notice(system, address, &ask_type, &asked[i].type);
            DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
            ck_assert_int_eq(atomic_load(&last_error), asked[i].error);
        }
        told += asked[i].line != NULL;
        ck_assert_uint_eq(domt_count_log_lines("", NULL), told);
        ck_assert_uint_eq(asked[i].line == NULL || domt_count_log_lines(asked[i].line, NULL) == 1,
                          1);
    }
    const domus_type *heard = &heard_type;
    domus_address leaving = domt_spawn(system, 0, &asker, NULL);
    atomic_store(&handled, 0);
    domt_send_notice(system, leaving, &ask_type, &heard);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
    ck_assert_int_eq(domus_outside_stop(system, leaving), 0);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
    /* this notice becomes a dead letter, because the behaviour has no row for it */
    domt_send_notice(system, address, &unknown_type, NULL);
    domt_send_notice(system, address, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, domt_count_log_lines("it got a message of the type unknown", NULL) == 2);
    ck_assert_uint_eq(domt_profile_of_thread(system, 0).failures, 0);
    domt_end_system(system);
    ck_assert_uint_eq(domt_count_log_lines("", NULL), told + 1);
    ck_assert_uint_eq(domt_count_log_lines("actor asker 0/", NULL), 1);
}

DOMT_SUITE(60)
