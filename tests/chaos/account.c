/* An account, a grain; bank.h says how transfers are made, and why the sum of all balances is
 * constant.
 *
 * An account changes its entry by one *work* at a time: the work puts everything that waits
 * (deposits, the end of the open transfer, the next transfer) into one change. If the outcome of a
 * change is not known, the account reads the entry, whose life and version say who has written it.
 * While the entry has the same revision, the account repeats the same change, so that a late
 * request makes no other change. The account keeps asks meanwhile, so a work belongs to no
 * conversation of an asker, and no time-out of an asker ends it. A conversation of its own asks the
 * receiver to take the deposit of the open transfer, and repeats the ask until it is answered. */
#include "tests/chaos/store.h"
#include "tests/chaos/tally.h"

#include <domus/nats_kv.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define QUEUE        32u /* kept asks of one kind in an account; further asks fail with -EAGAIN */
#define DEPOSIT_NS   (1000 * CHAOS_MS)
#define PAUSE_NS     (30 * CHAOS_MS) /* pause before a step of a work that failed is repeated */
#define MOUNT_TRIES  4u
#define PASSIVATE_NS (20000 * CHAOS_MS)

struct waiting_deposit {
    domus_kept kept;
    struct chaos_deposit deposit;
};

struct waiting_transfer {
    domus_kept kept;
    struct chaos_transfer transfer;
};

struct account {
    uint32_t index;
    uint32_t
        tries; /* how often mount_account_by_reading_entry has tried to read and write the entry */
    uint64_t life;
    uint64_t fence;
    /* revision of the entry `now` in the store; 0: there is no entry yet */
    uint64_t revision;
    struct chaos_entry now;  /* the account's entry as the store has it */
    struct chaos_entry next; /* the account's entry as the work under way writes it */
    uint32_t deposits;       /* number of deposits that wait for an answer */
    uint32_t deposits_taken; /* how many of the waiting deposits `next` contains */
    uint32_t transfers;      /* number of transfers that wait for their beginning */
    bool transfer_taken;     /* whether `next` contains the first waiting transfer */
    bool is_working;
    bool is_paying;
    bool is_paid;   /* whether the receiver has got the open transfer of `now` */
    bool has_asker; /* whether `asker` waits for the end of the open transfer */
    domus_kept asker;
    struct waiting_deposit deposit[QUEUE];
    struct waiting_transfer transfer[QUEUE];
};

static const domus_type work_type = {.name = "work"};
static const domus_type pay_type = {.name = "pay"};

void chaos_account_make_key(uint32_t account, char key[CHAOS_KEY_SIZE])
{
    snprintf(key, CHAOS_KEY_SIZE, "%u", account);
}

static int write_next_entry_to_store(domus_stack *stack, const struct account *account,
                                     domus_resumed *then)
{
    return chaos_store_write_entry(stack, account->index, &account->next, account->revision, then);
}

/* Prepare `next`, the next change of the account's entry: a copy of `now` with the marks of this
 * life and the next version. */
static void prepare_next_entry(struct account *account)
{
    account->next = account->now;
    account->next.fence = account->fence;
    account->next.life = account->life;
    account->next.node = chaos_options.node;
    account->next.version = account->now.version + 1;
}

static bool is_entry_the_next_one(const struct account *account, const struct chaos_entry *entry)
{
    return entry->life == account->life && entry->version == account->next.version;
}

/* Decode an entry that was read from the store. Returns 0; -EAGAIN if it is older than the entry
 * that this life knows; -ESTALE if a later life has written it, so that this life has to end. */
static int decode_read_entry(struct account *account, const domus_answer *answer,
                             struct chaos_entry *entry, uint64_t *ret_revision)
{
    const domus_nats_kv_entry *read = answer->payload;

    *entry = (struct chaos_entry){.balance = CHAOS_BEGIN};
    *ret_revision = 0;
    if (answer->error == 0) {
        domus_slice value = domus_nats_kv_value(read);
        if (!chaos_entry_read_text(domus_slice_data(value), value.size, chaos_options.accounts,
                                   entry))
            return -EBADMSG;
        *ret_revision = read->revision;
    }
    if (*ret_revision < account->revision)
        return -EAGAIN;
    if (entry->fence == account->fence && entry->node != 0 && entry->node != chaos_options.node) {
        chaos_count_one_more(&chaos_tally->events[CHAOS_TWINS]);
        fprintf(stderr, "TWINS: account %u, fence %" PRIu64 ", nodes %u and %u\n", account->index,
                account->fence, entry->node, chaos_options.node);
    }
    return entry->fence > account->fence ? -ESTALE : 0;
}

static void set_entry_of_account(struct account *account, const struct chaos_entry *entry,
                                 uint64_t revision)
{
    if (account->now.number != entry->number || entry->open_amount == 0)
        account->is_paid = false;
    account->now = *entry;
    account->revision = revision;
}

/* ---- Works --------------------------------------------------------------------------------- */

static domus_resumed resume_with_written_change, repeat_or_accept_change_by_read_entry,
    resume_with_answer_of_receiver;

static int write_waiting_changes_to_store(domus_stack *stack, struct account *account);

/* Send a notice to this account itself; if its mailbox is full, send an event, which is never
 * refused. */
static void send_notice_to_itself(domus_stack *stack, const domus_type *type)
{
    if (domus_notice(stack, domus_self(stack), type, NULL) != 0)
        (void)domus_after(stack, CHAOS_MS, type, NULL, NULL);
}

static void begin_work_of_account(domus_stack *stack, struct account *account)
{
    if (account->is_working)
        return;
    account->is_working = true;
    send_notice_to_itself(stack, &work_type);
}

static void begin_payment_of_open_transfer(domus_stack *stack, struct account *account)
{
    if (account->is_paying)
        return;
    account->is_paying = true;
    send_notice_to_itself(stack, &pay_type);
}

static void remove_first_waiting_transfer(struct account *account)
{
    account->transfers--;
    memmove(account->transfer, account->transfer + 1,
            account->transfers * sizeof account->transfer[0]);
}

/* Put all deposits and the first transfer that wait into the account's next change. Returns whether
 * there was any. */
static bool fill_next_change_with_waiting(domus_stack *stack, struct account *account)
{
    struct chaos_entry *next = &account->next;

    prepare_next_entry(account);
    account->transfer_taken = false;
    for (uint32_t i = 0; i < account->deposits; i++) {
        const struct chaos_deposit *deposit = &account->deposit[i].deposit;
        if (deposit->number > next->seen[deposit->from]) {
            next->balance += deposit->amount;
            next->seen[deposit->from] = deposit->number;
        }
    }
    account->deposits_taken = account->deposits;
    if (account->is_paid)
        next->open_amount = 0;
    while (next->open_amount == 0 && account->transfers > 0 && !account->transfer_taken) {
        const struct waiting_transfer *first = &account->transfer[0];
        if (next->balance < (int64_t)first->transfer.amount) {
            (void)domus_kept_fail(stack, first->kept, -ENOSPC);
            remove_first_waiting_transfer(account);
            continue;
        }
        next->balance -= first->transfer.amount;
        next->number++;
        next->open_to = first->transfer.to;
        next->open_amount = first->transfer.amount;
        account->transfer_taken = true;
    }
    return account->deposits_taken > 0 || account->is_paid || account->transfer_taken;
}

static int write_waiting_changes_to_store(domus_stack *stack, struct account *account)
{
    if (!fill_next_change_with_waiting(stack, account)) {
        account->is_working = false;
        return 0;
    }
    return write_next_entry_to_store(stack, account, resume_with_written_change);
}

/* Apply a change that the store has made: answer the asks that are a part of it. */
static int apply_change_made_by_store(domus_stack *stack, struct account *account,
                                      uint64_t revision)
{
    set_entry_of_account(account, &account->next, revision);
    chaos_audit_log_change(account->index, &account->now, account->revision);
    for (uint32_t i = 0; i < account->deposits_taken; i++) {
        const struct chaos_done done = {account->deposit[i].deposit.number};
        (void)domus_kept_reply(stack, account->deposit[i].kept, &chaos_done_type, &done);
    }
    account->deposits -= account->deposits_taken;
    memmove(account->deposit, account->deposit + account->deposits_taken,
            account->deposits * sizeof account->deposit[0]);
    if (account->transfer_taken) {
        account->asker = account->transfer[0].kept;
        account->has_asker = true;
        account->is_paid = false;
        remove_first_waiting_transfer(account);
        begin_payment_of_open_transfer(stack, account);
    }
    return write_waiting_changes_to_store(stack, account);
}

static int read_entry_after_failed_write(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == -ECANCELED)
        return 0;
    return chaos_store_read_entry(stack, ((const struct account *)self)->index,
                                  repeat_or_accept_change_by_read_entry);
}

static int repeat_or_accept_change_by_read_entry(domus_stack *stack, void *self,
                                                 const domus_answer *answer)
{
    struct account *account = self;
    struct chaos_entry entry;
    uint64_t revision;

    if (answer->error == -ECANCELED)
        return 0; /* this life of the account ends, so its work ends, too */
    if (answer->error != 0 && answer->error != -ENOENT)
        return domus_sleep(stack, PAUSE_NS, read_entry_after_failed_write);
    int error = decode_read_entry(account, answer, &entry, &revision);
    if (error == -ESTALE) {
        chaos_count_one_more(&chaos_tally->events[CHAOS_FENCED]);
        return domus_stop(stack, domus_self(stack));
    }
    if (error != 0)
        return domus_sleep(stack, PAUSE_NS, read_entry_after_failed_write);
    chaos_count_one_more(&chaos_tally->events[CHAOS_RELOADS]);
    /* The same change is repeated, because the earlier request may still be executed. */
    if (revision == account->revision)
        return write_next_entry_to_store(stack, account, resume_with_written_change);
    if (is_entry_the_next_one(account, &entry))
        return apply_change_made_by_store(stack, account, revision);
    set_entry_of_account(account, &entry, revision);
    if (entry.open_amount != 0)
        begin_payment_of_open_transfer(stack, account);
    return write_waiting_changes_to_store(stack, account);
}

static int resume_with_written_change(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == 0)
        return apply_change_made_by_store(
            stack, self, ((const domus_nats_kv_revision *)answer->payload)->revision);
    if (answer->error == -ECANCELED)
        return 0;
    chaos_count_one_more(&chaos_tally->events[CHAOS_WRITE_ERRORS]);
    return chaos_store_read_entry(stack, ((const struct account *)self)->index,
                                  repeat_or_accept_change_by_read_entry);
}

static int handle_work_notice(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return write_waiting_changes_to_store(stack, self);
}

/* ---- The open transfer --------------------------------------------------------------------- */

static int ask_receiver_to_take_deposit(domus_stack *stack, struct account *account)
{
    const struct chaos_entry *now = &account->now;
    const struct chaos_deposit deposit = {account->index, now->open_amount, now->number};
    domus_grains grains;
    char key[CHAOS_KEY_SIZE];

    if (now->open_amount == 0 || account->is_paid) {
        account->is_paying = false;
        return 0;
    }
    chaos_account_make_key(now->open_to, key);
    int error = domus_grain_open(stack, &chaos_accounts, &grains);
    return error != 0 ? error
                      : domus_grain_ask_within(stack, grains, key, &chaos_deposit_type, &deposit,
                                               DEPOSIT_NS, resume_with_answer_of_receiver);
}

static int ask_receiver_after_pause(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error == -ECANCELED ? 0 : ask_receiver_to_take_deposit(stack, self);
}

static int resume_with_answer_of_receiver(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    struct account *account = self;

    if (answer->error == -ECANCELED)
        return 0;
    if (answer->error != 0) {
        chaos_count_one_more(&chaos_tally->events[CHAOS_PAY_ERRORS]);
        return domus_sleep(stack, PAUSE_NS, ask_receiver_after_pause);
    }
    const struct chaos_done *done = answer->payload;
    if (done->number == account->now.number && account->now.open_amount != 0) {
        account->is_paid = true;
        if (account->has_asker)
            (void)domus_kept_reply(stack, account->asker, &chaos_done_type, done);
        account->has_asker = false;
        begin_work_of_account(stack, account);
    }
    return ask_receiver_to_take_deposit(stack, account);
}

static int handle_pay_notice(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return ask_receiver_to_take_deposit(stack, self);
}

/* ---- Asks ---------------------------------------------------------------------------------- */

static int handle_ask_for_transfer(domus_stack *stack, void *self, const void *payload)
{
    struct account *account = self;
    struct waiting_transfer *last = &account->transfer[account->transfers];
    const struct chaos_transfer *transfer = payload;

    if (account->transfers == QUEUE)
        return -EAGAIN;
    if (transfer->to >= chaos_options.accounts || transfer->to == account->index ||
        transfer->amount == 0)
        return -EINVAL;
    last->transfer = *transfer;
    int error = domus_keep(stack, &last->kept);
    if (error != 0)
        return error;
    account->transfers++;
    begin_work_of_account(stack, account);
    return 0;
}

static int handle_ask_to_take_deposit(domus_stack *stack, void *self, const void *payload)
{
    struct account *account = self;
    struct waiting_deposit *last = &account->deposit[account->deposits];
    const struct chaos_deposit *deposit = payload;

    if (deposit->from >= chaos_options.accounts)
        return -EINVAL;
    if (deposit->number <= account->now.seen[deposit->from]) {
        const struct chaos_done done = {deposit->number};
        return domus_reply(stack, &chaos_done_type, &done);
    }
    if (account->deposits == QUEUE)
        return -EAGAIN;
    last->deposit = *deposit;
    int error = domus_keep(stack, &last->kept);
    if (error != 0)
        return error;
    account->deposits++;
    begin_work_of_account(stack, account);
    return 0;
}

static int handle_ask_for_node(domus_stack *stack, void *self, const void *payload)
{
    const struct account *account = self;
    const struct chaos_place place = {chaos_options.node, account->fence};

    (void)payload;
    return domus_reply(stack, &chaos_place_type, &place);
}

/* ---- The beginning of a life --------------------------------------------------------------- */

static domus_resumed resume_mount_with_read_entry, resume_mount_with_written_entry;

static int resume_mount_after_pause(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error
                              : chaos_store_read_entry(stack, ((const struct account *)self)->index,
                                                       resume_mount_with_read_entry);
}

static int repeat_mount_or_fail(domus_stack *stack, struct account *account, int error)
{
    if (error != -ESTALE && error != -ECANCELED && ++account->tries < MOUNT_TRIES)
        return domus_sleep(stack, PAUSE_NS, resume_mount_after_pause);
    chaos_count_one_more(
        &chaos_tally->events[error == -ESTALE ? CHAOS_FENCED : CHAOS_MOUNT_ERRORS]);
    return error;
}

static int resume_mount_with_written_entry(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    struct account *account = self;

    if (answer->error != 0)
        return repeat_mount_or_fail(stack, account, answer->error);
    set_entry_of_account(account, &account->next,
                         ((const domus_nats_kv_revision *)answer->payload)->revision);
    chaos_audit_log_change(account->index, &account->now, account->revision);
    if (account->now.open_amount != 0) {
        chaos_count_one_more(&chaos_tally->events[CHAOS_RESUMED]);
        begin_payment_of_open_transfer(stack, account);
    }
    return 0;
}

static int resume_mount_with_read_entry(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct account *account = self;
    struct chaos_entry entry;
    uint64_t revision;

    if (answer->error != 0 && answer->error != -ENOENT)
        return repeat_mount_or_fail(stack, account, answer->error);
    int error = decode_read_entry(account, answer, &entry, &revision);
    if (error != 0)
        return repeat_mount_or_fail(stack, account, error);
    set_entry_of_account(account, &entry, revision);
    prepare_next_entry(account);
    return write_next_entry_to_store(stack, account, resume_mount_with_written_entry);
}

static int mount_account_by_reading_entry(domus_stack *stack, void *self)
{
    struct account *account = self;

    account->index = (uint32_t)strtoul(domus_grain_key(stack), NULL, 10);
    account->fence = domus_grain_fence(stack);
    if (getrandom(&account->life, sizeof account->life, 0) != (ssize_t)sizeof account->life)
        return -EIO;
    if (account->index >= chaos_options.accounts)
        return -ENOENT;
    chaos_count_one_more(&chaos_tally->events[CHAOS_LIVES]);
    /* other asks wait until the account has read and written its entry */
    int error = domus_barrier(stack);
    return error != 0 ? error
                      : chaos_store_read_entry(stack, account->index, resume_mount_with_read_entry);
}

static const domus_behaviour account_behaviour = {
    .name = "account",
    .state_size = sizeof(struct account),
    .on = (const domus_on[]){{.type = &chaos_transfer_type, .handle = handle_ask_for_transfer},
                             {.type = &chaos_deposit_type, .handle = handle_ask_to_take_deposit},
                             {.type = &chaos_where_type, .handle = handle_ask_for_node},
                             {.type = &work_type, .handle = handle_work_notice},
                             {.type = &pay_type, .handle = handle_pay_notice},
                             {.type = NULL}},
    .on_mount = mount_account_by_reading_entry,
};

const domus_grain_kind chaos_accounts = {
    .name = "account",
    .behaviour = &account_behaviour,
    .options = {.placement = DOMUS_SPREAD, .passivate_after_ns = PASSIVATE_NS},
};
