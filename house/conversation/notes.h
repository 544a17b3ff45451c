/* Notes: work that the home of a lent house has to do for it, on home's wheels and in home's ring.
 *
 * Wheels and ring belong to home. A thief that runs a lent house notes in its own manager what the
 * house arms or gives up, and home carries the notes out when the house is back. Each note is the
 * embedded node of its timer, promise or descriptor watch, so a note costs no memory and cannot
 * fail. An object that is still on a wheel is not freed before its note was carried out. If a timer
 * fires while its house is away, home postpones it by a tick. */
#ifndef DOMI_HOUSE_CONVERSATION_NOTES_H
#define DOMI_HOUSE_CONVERSATION_NOTES_H

#include "house/message/manager.h"

/* True if `house` is lent: the thread of `manager` runs it and is not its home. */
static inline bool domi_house_is_run_by_thief(const domi_manager *manager, const domi_house *house)
{
    return DOMI_UNLIKELY(house->home != manager);
}

/* True if a thief has the house, or may take it at any moment. Only home asks this. */
static inline bool domi_house_may_be_with_thief(const domi_house *house)
{
    return DOMI_UNLIKELY(domi_house_is_exposed(house));
}

/* Add a note for a timer, a promise or a watch on a descriptor; `node` is its embedded node and is
 * in no other list. */
void domi_note_leave_for_home(domi_manager *manager, domi_node *node);

/* Remove the note of `node` from the thief's notes, because a mailbox needs the node. */
void domi_note_remove_note_of_node(domi_manager *manager, const domi_node *node);

/* The notes that a thief has collected during one run of one house. */
typedef struct domi_notes {
    domi_node *tail; /* the thief's notes, a circular list; NULL: empty */
    /* number of timers that the lent house made minus those it freed, which may wrap; home adds it
     * to its own count */
    uint32_t timers;
} domi_notes;

/* Returns the number of home's timers. Relaxed: a thief reads it only to compare it with the
 * limit. */
static inline uint32_t domi_timers_count_of_home(const domi_manager *home)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&home->timing.timers,
                                memory_order_relaxed);
}

/* Add `by` to the number of home's timers. The sum wraps, so UINT32_MAX subtracts 1. */
static inline void domi_timers_add_to_count_of_home(domi_manager *home, uint32_t by)
{
    atomic_store_explicit(&home->timing.timers, domi_timers_count_of_home(home) + by,
                          memory_order_relaxed);
}

domi_notes domi_notes_take_those_of_thiefs_run(domi_manager *manager);

/* Carry out all notes that a thief's run of a house has left, when the house is back. Home only. */
void domi_notes_carry_out_all_of_thief(domi_manager *home, domi_notes notes);

#endif
