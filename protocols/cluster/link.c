/* The two directions of a link: batches that are sent and kept, and batches that are received
 * (link.h). */
#include "protocols/cluster/link.h"

#include <errno.h>
#include <stdlib.h>

#define KEPT_FEW 16u /* batches for which a link's array of kept batches has places at first */
/* least time in ns without a confirmation after which all kept batches of a link are sent again */
#define RESEND_MIN_NS UINT64_C(100000000)
/* greatest time in ns without a confirmation until kept batches are sent again; it doubles each
 * time */
#define RESEND_MAX_NS     UINT64_C(1600000000)
#define RTTS_UNTIL_RESEND 4u
/* batches of the other side that may be accepted until a confirmation must be sent */
#define OWED_MAX 8u

void domi_link_init(domi_link *link, uint64_t here, uint64_t there, uint16_t gateway)
{
    *link = (domi_link){
        .here = here,
        .there = there,
        .gateway = gateway,
        .session = 1,
        .next = {.size_max = DOMI_BATCH_MAX},
    };
}

static domi_link_batch *kept_batch_with_number(const domi_link *link, uint64_t number)
{
    return &link->kept[number & (link->kept_room - 1)];
}

/* Free the kept batches up to `number`, because they are confirmed or given up. Returns how many
 * messages they had. */
static uint64_t free_kept_batches_up_to(domi_link *link, uint64_t number)
{
    uint64_t messages = 0;

    while (link->confirmed < number) {
        domi_link_batch *batch = kept_batch_with_number(link, ++link->confirmed);
        link->queued_bytes -= batch->bytes.size;
        messages += batch->messages;
        domus_slice_free(batch->bytes);
    }
    return messages;
}

void domi_link_fini(domi_link *link)
{
    (void)free_kept_batches_up_to(link, link->last);
    free(link->kept);
    domus_append_drop(&link->next);
}

/* --- sending batches -------------------------------------------------------------------------- */

/* Give up the batch that is being built, which had `bytes`, and count its messages as lost. */
static void give_up_built_batch(domi_link *link, uint32_t bytes)
{
    link->queued_bytes -= bytes;
    link->torn_messages += link->next_messages;
    link->is_torn = bytes != 0;
    link->next_messages = 0;
    link->next.size_max = DOMI_BATCH_MAX;
}

int domi_link_add_envelope(domi_link *link, const domi_wire_envelope *envelope)
{
    uint32_t bytes = DOMI_ENVELOPE_BYTES + envelope->rest_size;
    uint32_t before = link->next.size;

    if (link->is_broken)
        return -EHOSTDOWN;
    if (link->is_torn)
        return -ENOMEM;
    if (bytes > DOMI_BATCH_MAX - DOMI_BATCH_FOOT)
        return -EMSGSIZE;
    if (bytes > DOMI_BATCH_MAX - DOMI_BATCH_FOOT - before)
        return -ENOBUFS;
    int error = domi_envelope_append(&link->next, envelope);
    /* all messages of the batch are lost, because they cannot be separated any more */
    if (error != 0) {
        domus_append_drop(&link->next);
        give_up_built_batch(link, before);
        return error;
    }
    link->next_messages++;
    link->queued_bytes += bytes;
    return 0;
}

/* Make sure that the array of kept batches has room for one more. Returns false without memory. */
static bool make_room_for_kept_batch(domi_link *link)
{
    uint64_t count = link->last - link->confirmed;

    if (count < link->kept_room)
        return true;
    uint32_t room = link->kept_room != 0 ? 2 * link->kept_room : KEPT_FEW;
    domi_link_batch *larger = malloc(room * sizeof *larger);
    if (larger == NULL)
        return false;
    for (uint64_t number = link->confirmed + 1; number <= link->last; number++)
        larger[number & (room - 1)] = *kept_batch_with_number(link, number);
    free(link->kept);
    link->kept = larger;
    link->kept_room = room;
    return true;
}

/* Make the foot of a batch that is sent now: it confirms all batches of the other side that have
 * come. */
static domi_batch_foot make_foot_of_batch(domi_link *link, uint64_t number, bool probes)
{
    domi_batch_foot foot = {
        .from = link->here,
        .to = link->there,
        .gateway = link->gateway,
        .session = link->session,
        .number = number,
        .last = number != 0 ? number : link->last,
        .confirmed_session = link->their_session,
        .confirmed = link->their_last,
    };

    if (link->is_broken || link->resets) {
        foot.flags |= DOMI_BATCH_RESET;
        foot.confirmed_session = link->is_broken ? link->over_session : link->reset_session;
    } else if (link->misses) {
        foot.flags |= DOMI_BATCH_MISSING;
    }
    if (probes)
        foot.flags |= DOMI_BATCH_PROBE;
    return foot;
}

/* Note that the other side was sent what it was owed, because a foot was sent. A foot that says
 * that a session is over confirms nothing. */
static void clear_owed_confirmation_of_link(domi_link *link)
{
    if (link->is_broken || link->resets) {
        link->owes = link->resets = false;
        return;
    }
    link->owed = 0;
    link->owes = link->misses = false;
}

static uint64_t delay_before_resend(const domi_link *link)
{
    uint64_t after_ns = RTTS_UNTIL_RESEND * link->rtt_ns;

    if (after_ns < RESEND_MIN_NS)
        after_ns = RESEND_MIN_NS;
    for (uint32_t i = 0; i < link->resends && after_ns < RESEND_MAX_NS; i++)
        after_ns *= 2;
    return after_ns < RESEND_MAX_NS ? after_ns : RESEND_MAX_NS;
}

/* Finish the batch that is being built, so that it can be sent, and keep it until it is
 * confirmed. */
static int finish_built_batch(domi_link *link, uint64_t now_ns, bool probes, domus_slice *ret_batch)
{
    unsigned char bytes[DOMI_BATCH_FOOT];
    domus_slice batch = {NULL, 0, 0}, kept;
    const domi_batch_foot foot = make_foot_of_batch(link, link->last + 1, probes);

    if (!make_room_for_kept_batch(link))
        return -ENOMEM;
    domi_batch_foot_write(&foot, bytes);
    uint32_t built = link->next.size;
    (void)domus_append(&link->next, bytes, sizeof bytes);
    int error = domus_append_end(&link->next, &batch);
    if (error == 0)
        error = domus_slice_keep(batch, &kept);
    if (error != 0) {
        domus_slice_free(batch);
        give_up_built_batch(link, built);
        return error;
    }
    uint32_t messages = link->next_messages;
    link->next.size_max = DOMI_BATCH_MAX;
    link->next_messages = 0;
    link->last++;
    link->queued_bytes += DOMI_BATCH_FOOT;
    *kept_batch_with_number(link, link->last) =
        (domi_link_batch){.bytes = kept, .sent_ns = now_ns, .messages = messages};
    if (link->waits_ns == 0) {
        link->waits_ns = now_ns;
        link->resend_ns = now_ns + delay_before_resend(link);
    }
    clear_owed_confirmation_of_link(link);
    *ret_batch = batch;
    return 1;
}

int domi_link_get_next_batch(domi_link *link, uint64_t now_ns, bool probes, domus_slice *ret_batch)
{
    unsigned char bytes[DOMI_BATCH_FOOT];

    if (link->next.size != 0)
        return finish_built_batch(link, now_ns, probes, ret_batch);
    if (!probes && !link->owes && !link->misses && !link->resets && link->owed < OWED_MAX)
        return 0;
    const domi_batch_foot foot = make_foot_of_batch(link, 0, probes);
    domi_batch_foot_write(&foot, bytes);
    int error = domus_slice_copy(bytes, sizeof bytes, ret_batch);
    if (error != 0)
        return error;
    clear_owed_confirmation_of_link(link);
    return 1;
}

int domi_link_get_batch_to_resend(domi_link *link, uint64_t now_ns, bool all, uint64_t *cursor,
                                  domus_slice *ret_batch)
{
    if (*cursor == 0) {
        if (link->last == link->confirmed ||
            (!all && (link->resend_ns == 0 || link->resend_ns > now_ns)))
            return 0;
        link->resends++;
        link->resend_ns = now_ns + delay_before_resend(link);
        *cursor = link->confirmed;
    }
    if (*cursor < link->confirmed || *cursor >= link->last)
        return 0;
    domi_link_batch *batch = kept_batch_with_number(link, *cursor + 1);
    int error = domus_slice_keep(batch->bytes, ret_batch);
    if (error != 0)
        return error;
    batch->resent = true;
    (*cursor)++;
    return 1;
}

/* --- receiving batches ------------------------------------------------------------------------ */

/* Handle what a foot confirms of this side's batches. Returns whether that is anything new. */
static bool free_batches_confirmed_by_foot(domi_link *link, const domi_batch_foot *foot,
                                           uint64_t now_ns)
{
    if (foot->confirmed_session != link->session || foot->confirmed > link->last ||
        (foot->flags & DOMI_BATCH_RESET) != 0)
        return false;
    if ((foot->flags & DOMI_BATCH_MISSING) != 0 && foot->confirmed >= link->confirmed &&
        foot->confirmed < link->last && link->resends == 0)
        link->resend_ns = now_ns;
    if (foot->confirmed <= link->confirmed)
        return false;
    const domi_link_batch *newest = kept_batch_with_number(link, foot->confirmed);
    if (!newest->resent)
        link->rtt_ns = now_ns > newest->sent_ns ? now_ns - newest->sent_ns : 1;
    (void)free_kept_batches_up_to(link, foot->confirmed);
    link->resends = 0;
    bool waits = link->last != link->confirmed;
    link->waits_ns = waits ? now_ns : 0;
    if (!waits)
        link->resend_ns = 0;
    else if ((foot->flags & DOMI_BATCH_MISSING) == 0)
        link->resend_ns = now_ns + delay_before_resend(link);
    else
        link->resend_ns = now_ns;
    return true;
}

domi_link_news domi_link_update_by_received_foot(domi_link *link, const domi_batch_foot *foot,
                                                 uint64_t now_ns)
{
    domi_link_news news = {.takes = false};

    if (foot->session <= link->over_session) {
        link->resets = true;
        link->reset_session = foot->session;
        return news;
    }
    if (foot->session < link->their_session)
        /* the batch belongs to an old session: it was still under way when that session ended */
        return news;
    link->is_broken = false;
    /* A batch with the flag DOMI_BATCH_RESET may have envelopes, too, if it answers a late batch of
     * an old session. When it is sent again, it has the flag again. */
    if ((foot->flags & DOMI_BATCH_RESET) != 0) {
        /* a confirmation is sent, so that the other side learns this side's session */
        link->owes = true;
        news.is_over = foot->confirmed_session == link->session;
    }
    if (foot->session > link->their_session) {
        news.renewed = link->their_session != 0;
        link->their_session = foot->session;
        link->their_last = 0;
        link->owed = 0;
    }
    news.confirms = free_batches_confirmed_by_foot(link, foot, now_ns);
    if ((foot->flags & DOMI_BATCH_PROBE) != 0)
        link->owes = true;
    if (foot->number == link->their_last + 1) {
        link->their_last++;
        link->owed++;
        news.takes = true;
    } else if (foot->number != 0 && foot->number <= link->their_last) {
        /* the peer has sent the batch again, because its confirmation was lost or late */
        link->owes = true;
    } else if (foot->last > link->their_last) {
        link->misses = true;
    }
    return news;
}

uint64_t domi_link_end_session(domi_link *link, bool is_told)
{
    uint64_t lost =
        free_kept_batches_up_to(link, link->last) + link->next_messages + link->torn_messages;

    link->is_torn = false;
    link->torn_messages = 0;
    link->queued_bytes = 0;
    domus_append_drop(&link->next);
    link->next.size_max = DOMI_BATCH_MAX;
    link->next_messages = 0;
    link->session++;
    link->last = link->confirmed = 0;
    link->waits_ns = link->resend_ns = 0;
    link->resends = 0;
    if (is_told)
        return lost;
    link->over_session = link->their_session;
    link->is_broken = link->their_session != 0;
    link->owed = 0;
    link->owes = link->misses = false;
    return lost;
}
