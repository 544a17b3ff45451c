/* Shortages: spells in which something that strangers can use up has run out.
 *
 * A spell is logged once when it begins and once when it is over, with a number, and never for each
 * connection. It is over when nothing has run out for its quiet time. The quiet time is 1 s at
 * first; it doubles, up to 64 s, with each spell that begins less than 64 s after the end of the
 * one before. So a stranger who makes something run out again and again cannot fill the log: this
 * gives about two lines a minute for each listener and kind.
 *
 * This file decides when a spell begins and ends; spells.h counts and logs it. Owner thread. */
#ifndef DOMI_IO_RESOURCES_SHORTAGE_H
#define DOMI_IO_RESOURCES_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct domi_shortage {
    uint64_t begun_ns; /* time at which the present spell of the shortage began; 0: there is none */
    uint64_t last_ns;  /* time at which the shortage was last recorded */
    /* time at which the last spell of the shortage was over; 0: there was none */
    uint64_t ended_ns;
    uint64_t quiet_ns; /* quiet time after which the present spell is over, in nanoseconds */
    uint64_t times;    /* number of times that the shortage was recorded since its spell began */
} domi_shortage;

/* Record that something has run out (again). Returns whether a spell of this shortage begins
 * now. */
bool domi_shortage_record(domi_shortage *shortage, uint64_t now_ns);

/* End the present spell of the shortage, if it has been quiet for long enough. `ret_lasted_ns` gets
 * the time from its start until the shortage was last recorded. Returns whether it ended. */
bool domi_shortage_end_quiet_spell(domi_shortage *shortage, uint64_t now_ns,
                                   uint64_t *ret_lasted_ns);

#endif
