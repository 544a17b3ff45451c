/* The log reports messages for which a behaviour has no row, and asks that a handler did not
 * answer: once for each behaviour and type, with a hint for the reader. */
#include "tests/runtime/running.h"
#include "tests/runtime/stalls.h"

#include <errno.h>

static const domus_type question = {.name = "question"};
/* like a type that a header defines in each file */
static const domus_type namesake_type = {.name = "question"};
static const domus_type unknown_type = {.name = "unknown"};
static const domus_type silent_type = {.name = "silent"};
static const domus_type heard_type = {.name = "heard"};
static const domus_type ask_type = {.name = "ask", .size = sizeof(domus_type *)};
static domus_address deaf_address;
static _Atomic uint64_t handled, resumed;
static _Atomic int last_error;

static int reply_to_any(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &question, NULL);
}

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

/* Handle a cancelled wait without an answer, which is no mistake: the asker has ended, and a
 * conversation that was cancelled answers nobody. */
static int handle_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ECANCELED);
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int wait_long(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return domus_sleep(stack, 10000 * DOMT_MS, handle_cancel);
}

static const domus_behaviour deaf = {
    .name = "deaf",
    .on = (const domus_on[]){{&question, reply_to_any, 0},
                             {&silent_type, ignore_message, 0},
                             {&heard_type, wait_long, 0},
                             {NULL, NULL, 0}},
};

static int record_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&handled, 1);
    return 0;
}

static int ask_deaf(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, deaf_address, *(const domus_type *const *)payload, NULL, record_error);
}

static const domus_behaviour asker = {
    .name = "asker", .on = (const domus_on[]){{&ask_type, ask_deaf, 0}, {NULL, NULL, 0}}};

DOMT_TEST(message_that_nobody_handles_or_answers_is_logged_once)
{
    static const struct {
        const domus_type *type;
        int error;        /* the error that the asker gets */
        const char *line; /* the line of the log; NULL: none */
    } asked[] = {
        {&question, 0, NULL},
        {&unknown_type, -EOPNOTSUPP,
         "it got a message of the type unknown, for which its behaviour has no row"},
        {&namesake_type, -EOPNOTSUPP, "it got a message of a type question that is not the one in"},
        {&silent_type, -ENOMSG, "handles the ask silent has ended without an answer"},
    };
    domus_config config = domt_config(1);
    domus_system *system = domt_start_logging(&config);
    unsigned told = 0;

    deaf_address = domt_spawn(system, 0, &deaf, NULL);
    domus_address address = domt_spawn(system, 0, &asker, NULL);
    atomic_store(&resumed, 0);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        for (uint64_t time = 1; time <= 2; time++) {
            atomic_store(&handled, 0);
            domt_notice(system, address, &ask_type, &asked[i].type);
            DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
            ck_assert_int_eq(atomic_load(&last_error), asked[i].error);
        }
        told += asked[i].line != NULL;
        ck_assert_uint_eq(domt_lines("", NULL), told);
        ck_assert_uint_eq(asked[i].line == NULL || domt_lines(asked[i].line, NULL) == 1, 1);
    }
    const domus_type *heard = &heard_type;
    domus_address leaving = domt_spawn(system, 0, &asker, NULL);
    atomic_store(&handled, 0);
    domt_notice(system, leaving, &ask_type, &heard);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
    ck_assert_int_eq(domus_outside_stop(system, leaving), 0);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
    domt_notice(system, address, &unknown_type, NULL); /* a notice without a row is a dead letter */
    domt_notice(system, address, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, domt_lines("it got a message of the type unknown", NULL) == 2);
    ck_assert_uint_eq(domt_profile(system, 0).failures, 0);
    domt_end(system);
    ck_assert_uint_eq(domt_lines("", NULL), told + 1);
    ck_assert_uint_eq(domt_lines("actor asker 0/", NULL), 1);
}

DOMT_SUITE(60)
