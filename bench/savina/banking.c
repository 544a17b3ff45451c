/* banking: transfers between 1,000 accounts, of which at most 1,000 are under way.
 *
 * The source of a transfer debits itself, asks the destination to credit, and raises a barrier, so
 * that it begins no other transfer before the answer. Transfers go to accounts with a higher number
 * only, so accounts never wait for each other in a circle. */
#include "bench/savina/rows.h"

#define ACCOUNTS      1000u
#define SOURCES       900u
#define BALANCE       INT64_C(1000000)
#define AMOUNTS       1000u
#define TRANSFERS_OUT 1000u

struct transfer {
    domus_address destination;
    int64_t amount;
};

static const domus_type transfer_type = {.name = "transfer", .size = sizeof(struct transfer)};
static const domus_type credit_type = {.name = "credit", .size = sizeof(int64_t)};
static const domus_type balance_type = {.name = "balance"};
static const domus_type amount_type = {.name = "amount", .size = sizeof(int64_t)};
static const domus_type done_type = {.name = "done"};

/* --- accounts: their state is their balance --------------------------------------------------- */

static int reply_that_transfer_is_done(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    if (answer->error != 0)
        return answer->error;
    return domus_reply(stack, &done_type, NULL);
}

static int debit_and_ask_destination_to_credit(domus_stack *stack, void *balance,
                                               const void *transfer_)
{
    const struct transfer *transfer = transfer_;

    *(int64_t *)balance -= transfer->amount;
    stage_must_succeed(domus_barrier(stack), "barrier");
    return domus_ask(stack, transfer->destination, &credit_type, &transfer->amount,
                     reply_that_transfer_is_done);
}

static int credit_account(domus_stack *stack, void *balance, const void *amount)
{
    *(int64_t *)balance += *(const int64_t *)amount;
    return domus_reply(stack, &done_type, NULL);
}

static int reply_with_balance(domus_stack *stack, void *balance, const void *nothing)
{
    (void)nothing;
    return domus_reply(stack, &amount_type, balance);
}

static const domus_behaviour account = {
    .name = "account",
    .state_size = sizeof(int64_t),
    .on =
        (const domus_on[]){{.type = &transfer_type, .handle = debit_and_ask_destination_to_credit},
                           {.type = &credit_type, .handle = credit_account},
                           {.type = &balance_type, .handle = reply_with_balance},
                           {.type = NULL}},
};

/* --- the teller ------------------------------------------------------------------------------- */

struct teller {
    domus_address accounts[ACCOUNTS];
    uint64_t left; /* number of transfers that the teller has not begun yet */
    uint32_t seed;
};

static void begin_next_transfer(domus_stack *stack, struct teller *self)
{
    uint32_t source = stage_draw_random_number(&self->seed) % SOURCES;
    uint32_t destination =
        source + 1 + stage_draw_random_number(&self->seed) % (ACCOUNTS - 1 - source);
    struct transfer transfer = {
        .destination = self->accounts[destination],
        .amount = stage_draw_random_number(&self->seed) % AMOUNTS,
    };

    self->left--;
    stage_must_succeed(
        domus_ask_add(stack, self->accounts[source], &transfer_type, &transfer, 0, 0), "transfer");
}

static int add_balance_of_account(domus_stack *stack, void *self, const domus_answer *answer)
{
    int64_t sum = 0;

    (void)self;
    for (; answer != NULL; answer = answer->next) {
        stage_must_succeed(answer->error, "balance");
        sum += *(const int64_t *)answer->payload;
    }
    return stage_end_root_with_result(stack, (uint64_t)sum);
}

static int count_finished_transfer(domus_stack *stack, void *self_, const domus_answer *answer)
{
    struct teller *self = self_;

    stage_must_succeed(answer->error, "transfer");
    if (self->left != 0)
        begin_next_transfer(stack, self);
    if (domus_pending(stack) != 0)
        return domus_wait_first(stack, count_finished_transfer);
    for (uint32_t i = 0; i < ACCOUNTS; i++)
        stage_must_succeed(domus_ask_add(stack, self->accounts[i], &balance_type, NULL, 0, i),
                           "balance");
    return domus_wait_all(stack, add_balance_of_account);
}

static int start_teller_and_accounts(domus_stack *stack, void *self_, const void *transfers)
{
    struct teller *self = self_;

    self->left = *(const uint64_t *)transfers;
    self->seed = 1;
    for (uint32_t i = 0; i < ACCOUNTS; i++)
        self->accounts[i] = stage_spawn_child_of_root(stack, &account, &(int64_t){BALANCE});
    while (self->left != 0 && domus_pending(stack) < TRANSFERS_OUT)
        begin_next_transfer(stack, self);
    return domus_wait_first(stack, count_finished_transfer);
}

static const domus_behaviour teller = {
    .name = "teller",
    .state_size = sizeof(struct teller),
    .on =
        (const domus_on[]){{.type = &go_type, .handle = start_teller_and_accounts}, {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_banking = {.name = "banking", .root = &teller};
