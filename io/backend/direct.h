/* The sends that an io_uring backend makes without its ring.
 *
 * A send of the ring leaves with an enter, and its completion has to be taken. A thread that was
 * woken by one or two requests would make an enter for its answers alone, before the enter in which
 * it sleeps. So the first sends after an enter are tried at once, by send(2), as long as no other
 * operation has to be submitted. Sends to a full socket, and all further sends, are left to the
 * ring, where many of them share one enter. Completions wait here until the owner shows them. Owner
 * thread. */
#ifndef DOMI_IO_BACKEND_DIRECT_H
#define DOMI_IO_BACKEND_DIRECT_H

#include "io/backend/completion_queue.h"
#include "io/backend/output.h"

typedef struct domi_direct {
    /* completions of the direct sends; the queue has room for as many as may be made, so it never
     * grows */
    domi_completion_queue queue;
    uint32_t made; /* number of direct sends since their completions were last shown */
} domi_direct;

/* Make the queue for the completions of direct sends. Returns false if there is no memory. */
bool domi_direct_sends_init(domi_direct *direct);
void domi_direct_sends_fini(domi_direct *direct);

/* Try to send without the ring. Returns whether the send has completed; otherwise nothing was sent,
 * and the ring has to send. */
bool domi_direct_sends_try_send(domi_direct *direct, int fd, const domi_output *output,
                                uint64_t user_data);

/* Show the completions of all direct sends so far, so that they may be reaped
 * (completion_queue.h). */
static inline void domi_direct_sends_show_completions(domi_direct *direct)
{
    direct->queue.shown = direct->queue.tail;
    direct->made = 0;
}

/* True if completions of direct sends are shown, or wait to be shown. */
static inline bool domi_direct_sends_has_completions(const domi_direct *direct)
{
    return direct->queue.head != direct->queue.tail;
}

#endif
