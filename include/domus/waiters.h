/* Waiters: asks that an actor keeps (domus_keep()) until there is something for all of them, such
 * as those of pages that wait for the next event. Their number is bounded, and so is that of one
 * owner; places of those that are gone (a connection that closed, a deadline that passed) are found
 * when they are needed.
 *
 *     struct board {
 *         domus_waiters pages;
 *         domus_waiter places[1000];
 *     };
 *     ... on_mount: self->pages = (domus_waiters){.places = self->places, .places_max = 1000,
 *                                                 .share_max = 100};
 *     ... an ask:   return domus_waiters_keep(stack, &self->pages, owner);
 *     ... news:     domus_waiters_reply(stack, &self->pages, &news_type, &news);
 *
 * Thread-safety: only from within a handler of the actor that has the list, with its stack. */
#ifndef DOMUS_WAITERS_H
#define DOMUS_WAITERS_H

#include <domus/conversation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place of a list of waiters: an ask that is kept, and its owner. */
typedef struct domus_waiter {
    domus_kept kept;
    uint64_t owner;
} domus_waiter;

/* A list of waiters. The actor sets all fields but the last, once, and reads them as it likes. */
typedef struct domus_waiters {
    domus_waiter *places; /* places of the list for `places_max` asks, in memory of the actor */
    uint32_t places_max;  /* number of places of the list; a further ask is refused */
    uint32_t share_max;   /* most places that one owner has at a time; 0: places_max */
    /* number of asks in the list, with those that nobody waits for and that were not found yet */
    uint32_t count;
} domus_waiters;

/* Keep the ask that is handled, for `owner`: any number by which the program tells those apart who
 * share the places, such as domus_http_client_number(). 0: the ask is nobody's, and no share
 * bounds it. The call looks through the list, and if there is no place for this ask, it looks which
 * asks of the list are still wanted.
 *
 * Returns 0; -ENOBUFS when all places, or all of this owner, have asks that somebody waits for; or
 * as domus_keep(). With an error the ask is not kept, so a handler may return what this returns. */
DOMUS_API int domus_waiters_keep(domus_stack *stack, domus_waiters *waiters, uint64_t owner);

/* Answer all asks of a list, from the oldest on, and empty the list. Each gets a copy of the
 * payload, so the type has no `release`. Returns the number of asks that were answered: those that
 * were gone are not counted. 0 for a type with a `release`, or one that is too large, and nothing
 * is answered. */
DOMUS_API uint32_t domus_waiters_reply(domus_stack *stack, domus_waiters *waiters,
                                       const domus_type *type, const void *payload);

#ifdef __cplusplus
}
#endif

#endif
