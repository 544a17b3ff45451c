/* Payloads that own memory; tests/house/owning.h tells more. */
#include "tests/house/owning.h"
#include "tests/house/steps.h"

#include "house/family/life.h"
#include "tests/support/suite.h"

domt_owning domt_owned;

static void release_text_and_count(void *payload)
{
    domt_owner *owner = payload;

    if (owner->text == NULL) /* a message object that was freed before its payload was filled */
        return;
    ck_assert_int_ne(owner->text[0], '#');
    memset(owner->text, '#', DOMT_TEXT_BYTES);
    free(owner->text);
    domt_owned.released++;
}

const domus_type domt_small = {"small", sizeof(domt_owner), release_text_and_count};
const domus_type domt_middle = {"middle", 700, release_text_and_count};
const domus_type domt_large = {"large", 5000, release_text_and_count};
const domus_type *const domt_sizes[3] = {&domt_small, &domt_middle, &domt_large};

static int handle_payload(domus_stack *stack, void *self, const void *payload)
{
    domt_owned.handled++;
    return domt_owned.handle != NULL ? domt_owned.handle(stack, payload) : 0;
}

static const domus_behaviour behaviour = {
    .name = "owning",
    .on = (const domus_on[]){{&domt_small, handle_payload, 0},
                             {&domt_middle, handle_payload, 32},
                             {&domt_large, handle_payload, 0},
                             {&domt_call_type, domt_on_call_run_function, 0},
                             {0}}};

void domt_owning_open_world(void)
{
    domt_owned = (domt_owning){0};
    domt_world_open(&domt_owned.world, 2);
    for (uint32_t i = 0; i < DOMT_OWNING_ACTORS; i++)
        domt_owned.actors[i] = domt_spawn(domt_outside_manager(&domt_owned.world),
                                          domt_owned.world.managers[i != 0], &behaviour, NULL);
    domt_settle_world(&domt_owned.world);
}

void domt_owning_close_world(void)
{
    domt_settle_world(&domt_owned.world);
    ck_assert_uint_eq(domt_owned.made, domt_owned.released + domt_owned.freed);
    domt_end_clean_world(&domt_owned.world);
    ck_assert_uint_eq(domt_owned.made, domt_owned.released + domt_owned.freed);
}

void *domt_owning_make_payload(const char *text)
{
    static union {
        domt_owner owner;
        char bytes[5000];
    } payload;
    size_t length = strlen(text);

    payload.owner.text = malloc(DOMT_TEXT_BYTES);
    for (size_t i = 0; i < DOMT_TEXT_BYTES; i++)
        payload.owner.text[i] = text[i % (length + 1)];
    domt_owned.made++;
    return &payload;
}

void domt_free_text(char *text)
{
    free(text);
    domt_owned.freed++;
}

int domt_owning_count_and_check_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_owned.heard++;
    return domt_owned.hear != NULL ? domt_owned.hear(stack, answer) : 0;
}

int domt_owning_notice_in_handler(domus_stack *stack, uint32_t to, const domus_type *type,
                                  const char *text)
{
    return domus_notice(stack, domt_owned.actors[to], type, domt_owning_make_payload(text));
}

int domt_owning_ask_in_handler(domus_stack *stack, uint32_t to, const domus_type *type,
                               const char *text, uint64_t timeout_ns)
{
    return domus_ask_within(stack, domt_owned.actors[to], type, domt_owning_make_payload(text),
                            timeout_ns, domt_owning_count_and_check_answer);
}

int domt_owning_add_ask_in_handler(domus_stack *stack, uint32_t to, const domus_type *type,
                                   const char *text, uint64_t tag)
{
    return domus_ask_add(stack, domt_owned.actors[to], type, domt_owning_make_payload(text), 0,
                         tag);
}

typedef struct order {
    uint32_t to;
    const domus_type *type;
    const char *text;
} order;

static int send_text_as_ordered(domus_stack *stack, void *now_)
{
    const order *now = now_;

    return domt_owning_notice_in_handler(stack, now->to, now->type, now->text);
}

static int ask_with_text_as_ordered(domus_stack *stack, void *now_)
{
    const order *now = now_;

    return domt_owning_ask_in_handler(stack, now->to, now->type, now->text, 0);
}

void domt_owning_run_in_actor(uint32_t by, int (*function)(domus_stack *, void *),
                              const void *context)
{
    domt_run_as_actor(&domt_owned.world, domt_owned.actors[by], function,
                      (void *)(uintptr_t)context);
}

void domt_owning_stop_actor(domus_address actor)
{
    domt_stop_actor_and_settle(&domt_owned.world, actor.house->home, actor);
}

void domt_owning_send_notice(uint32_t to, const domus_type *type, const char *text)
{
    order now = {to, type, text};

    domt_owning_run_in_actor(0, send_text_as_ordered, &now);
}

void domt_owning_send_ask(uint32_t to, const domus_type *type, const char *text)
{
    order now = {to, type, text};

    domt_owning_run_in_actor(0, ask_with_text_as_ordered, &now);
}
