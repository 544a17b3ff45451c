/* Begins transfers between accounts at a fixed rate, whether earlier ones have ended or not, so
 * that an outage costs as many transfers as would have begun in it; and counts their outcomes. */
#include "tests/chaos/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define TICK_NS (10 * CHAOS_MS)
/* most transfers that begin in one tick: a node that was stopped does not catch up on all that it
 * has missed */
#define AT_ONCE_MAX 100u
#define AMOUNT_MAX  20u

struct chaos_tally *chaos_tally;

struct teller {
    uint64_t chance;
    uint64_t next_ns; /* when the teller's next transfer begins */
    domus_grains accounts;
};

struct transferring {
    uint32_t window;
    uint32_t from;
    uint32_t to;
    uint64_t began_ns;
};

static const domus_type tick_type = {.name = "tick"};
static const domus_type begin_type = {.name = "begin"};

int chaos_tally_map_file(void)
{
    char path[256];

    snprintf(path, sizeof path, "%s/tally.%u", chaos_options.folder, chaos_options.node);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, sizeof *chaos_tally) != 0)
        return -errno;
    void *mapped = mmap(NULL, sizeof *chaos_tally, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    chaos_tally = mapped;
    return close(fd);
}

static uint32_t draw_number_below(struct teller *teller, uint32_t below)
{
    teller->chance ^= teller->chance << 13; /* xorshift64 makes the teller's next random number */
    teller->chance ^= teller->chance >> 7;
    teller->chance ^= teller->chance << 17;
    return (uint32_t)(teller->chance >> 32) % below;
}

static void count_outcome_of_transfer(const struct transferring *transferring,
                                      enum chaos_outcome outcome)
{
    chaos_count_one_more(&chaos_tally->windows[transferring->window][outcome]);
    chaos_count_one_more(&chaos_tally->accounts[transferring->from][outcome]);
}

static enum chaos_outcome outcome_of_error(int error)
{
    switch (error) {
    case 0:
        return CHAOS_OK;
    case -ENOSPC:
        return CHAOS_REFUSED;
    case -EAGAIN:
    case -ENOBUFS:
    case -EBUSY:
    case -EINVAL:
    case -ENOMEM:
        return CHAOS_FAILED;
    default:
        return CHAOS_UNKNOWN;
    }
}

static int resume_with_answer_of_transfer(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    const struct transferring *transferring = domus_frame(stack);

    (void)self;
    count_outcome_of_transfer(transferring, outcome_of_error(answer->error));
    if (answer->error != 0) {
        if ((uint32_t)-answer->error < CHAOS_ERRORS)
            chaos_count_one_more(&chaos_tally->errors[-answer->error]);
        return 0;
    }
    const struct chaos_done *done = answer->payload;
    uint64_t *acked = &chaos_tally->acked[transferring->from][transferring->to];
    if (done->number > *acked)
        *acked = done->number;
    uint64_t took_us = (chaos_now_ns() - transferring->began_ns) / 1000;
    uint32_t power = 0;
    while (took_us > 1 && power < CHAOS_TIMES - 1)
        took_us >>= 1, power++;
    chaos_count_one_more(&chaos_tally->times[power]);
    return 0;
}

static int handle_begin_of_transfer(domus_stack *stack, void *self, const void *payload)
{
    struct teller *teller = self;
    struct transferring *transferring = domus_frame(stack);
    struct chaos_transfer transfer = {.amount = 1 + draw_number_below(teller, AMOUNT_MAX)};
    char key[CHAOS_KEY_SIZE];

    (void)payload;
    transferring->began_ns = chaos_now_ns();
    transferring->window =
        (uint32_t)((transferring->began_ns - chaos_options.epoch_ns) / CHAOS_WINDOW_NS);
    if (transferring->window >= CHAOS_WINDOWS)
        return 0;
    transferring->from = draw_number_below(teller, chaos_options.accounts);
    transfer.to = (transferring->from + 1 + draw_number_below(teller, chaos_options.accounts - 1)) %
                  chaos_options.accounts;
    transferring->to = transfer.to;
    chaos_account_make_key(transferring->from, key);
    count_outcome_of_transfer(transferring, CHAOS_ASKED);
    int error = domus_grain_ask_within(stack, teller->accounts, key, &chaos_transfer_type,
                                       &transfer, CHAOS_ASK_NS, resume_with_answer_of_transfer);
    if (error < 0)
        return resume_with_answer_of_transfer(stack, self, &(domus_answer){.error = error});
    return error;
}

static int handle_tick_by_beginning_transfers(domus_stack *stack, void *self, const void *payload)
{
    struct teller *teller = self;
    uint64_t now = chaos_now_ns();
    uint64_t period_ns = UINT64_C(1000000000) / chaos_options.rate;

    (void)payload;
    if (teller->next_ns + AT_ONCE_MAX * period_ns < now)
        teller->next_ns = now;
    for (; teller->next_ns <= now; teller->next_ns += period_ns)
        (void)domus_notice(stack, domus_self(stack), &begin_type, NULL);
    return 0;
}

static int mount_teller_with_timer(domus_stack *stack, void *self)
{
    struct teller *teller = self;

    teller->chance = chaos_now_ns() * 2 + 1;
    if (chaos_options.rate == 0)
        return 0;
    int error = domus_grain_open(stack, &chaos_accounts, &teller->accounts);
    return error != 0 ? error : domus_every(stack, TICK_NS, &tick_type, NULL, NULL);
}

const domus_behaviour chaos_teller = {
    .name = "teller",
    .state_size = sizeof(struct teller),
    .on = (const domus_on[]){{.type = &tick_type, .handle = handle_tick_by_beginning_transfers},
                             {.type = &begin_type,
                              .handle = handle_begin_of_transfer,
                              .frame_size = sizeof(struct transferring)},
                             {.type = NULL}},
    .on_mount = mount_teller_with_timer,
};
