/* Keeps the list of waits for bytes to leave: a circle, linked both ways. `flushes` is the last
 * promise, whose `next_flush` is the first. Mostly a new wait is for more bytes than the ones
 * before, so its place is searched from the end. A promise that ends for whatever reason leaves the
 * list by domi_flush_remove_wait(), without a walk, because there may be very many. */
#include "io/channels/flush.h"

#include "base/check.h"
#include "house/family/watch.h"

#include <errno.h>

void domi_channel_set_much_is_queued(domus_channel *channel, bool high)
{
    channel->high = high;
    domi_house_set_backlogged(channel->io->manager, channel->house, high);
}

/* Put `promise` into the channel's list of waits, behind those that wait for as many bytes or
 * fewer. */
static void link_flush_promise(domus_channel *channel, domi_promise *promise)
{
    domi_promise *last = channel->flushes;
    domi_promise *before = last;

    if (last == NULL) {
        promise->next_flush = promise;
        promise->wait.previous_flush = promise;
        channel->flushes = promise;
        return;
    }
    if (promise->wait.sent_bytes >= last->wait.sent_bytes) {
        channel->flushes = promise;
    } else { /* the promise is now the first of the channel's list, and the last one leads to it */
        do
            before = before->wait.previous_flush;
        while (before != last && before->wait.sent_bytes > promise->wait.sent_bytes);
    }
    promise->next_flush = before->next_flush;
    promise->wait.previous_flush = before;
    before->next_flush->wait.previous_flush = promise;
    before->next_flush = promise;
}

void domi_flush_begin_wait(domus_channel *channel, domi_promise *promise, uint64_t left_bytes)
{
    uint64_t queued = channel->queued_bytes;

    promise->sender = channel;
    promise->wait.sent_bytes =
        channel->sent_bytes + (queued > left_bytes ? queued - left_bytes : 0);
    link_flush_promise(channel, promise);
    if (channel->state >= DOMI_CHANNEL_CLOSING)
        domi_flush_fail_all_waits(channel, channel->error);
    else
        domi_flush_complete_waits(channel);
}

void domi_flush_complete_waits(domus_channel *channel)
{
    while (channel->flushes != NULL) {
        domi_promise *first = channel->flushes->next_flush;

        if (first->wait.sent_bytes > channel->sent_bytes && channel->queued_bytes != 0)
            return;
        domi_promise_fail(channel->io->manager, first, 0);
    }
}

void domi_flush_fail_all_waits(domus_channel *channel, int error)
{
    while (channel->flushes != NULL)
        domi_promise_fail(channel->io->manager, channel->flushes->next_flush,
                          error < 0 ? error : -EPIPE);
}

void domi_flush_remove_wait(domi_manager *manager, domi_promise *promise)
{
    domus_channel *channel = promise->sender;
    domi_promise *before = promise->wait.previous_flush;

    (void)manager;
    DOMI_CHECK(channel->flushes != NULL && before->next_flush == promise);
    before->next_flush = promise->next_flush;
    promise->next_flush->wait.previous_flush = before;
    if (before == promise)
        channel->flushes = NULL;
    else if (channel->flushes == promise)
        channel->flushes = before;
}
