/* The six states of a house, and the moves between them that are allowed (M5).
 *
 *   CREATED --> MOUNTING --> WAITING --> READY --> SCHEDULED --> RUNNING
 *      ^           |            ^          ^                     |  |  |
 *      |           | end        |          +------ mail left ----+  |  |
 *      |           v            +----------------- empty -----------+  |
 *      +-----------+------------------------------ gone ---------------+
 *
 * move                   function                                      thread
 * CREATED   -> MOUNTING  domi_house_queue_for_mount (birth.c)          home: spawn here, or sorting
 * MOUNTING  -> WAITING   domi_house_mount_actor (life.c)               home, after on_mount
 * WAITING   -> READY     domi_house_make_ready (mailbox.h)             home
 * READY     -> SCHEDULED domi_house_run_and_settle (dispatch.c)        the runner: home, or a thief
 * SCHEDULED -> RUNNING   domi_house_run_and_settle (dispatch.c)        the runner
 * RUNNING   -> READY     settle_house_after_run (dispatch.c, settle.c) home
 * RUNNING   -> WAITING   settle_house_after_run (dispatch.c, settle.c) home
 * RUNNING   -> CREATED   free_house (life.c)                           home
 * MOUNTING  -> CREATED   free_house (life.c)                           home, when the system ends
 *
 * A free slot is CREATED, too, so the birth of the next actor there begins without a move.
 * "Stopping" and "in a barrier" are marks beside the state. */
#include "house/message/house.h"

#include "base/check.h"

#include <stdio.h>

static const char *const names[DOMI_STATES] = {
    [DOMI_CREATED] = "CREATED", [DOMI_MOUNTING] = "MOUNTING",   [DOMI_WAITING] = "WAITING",
    [DOMI_READY] = "READY",     [DOMI_SCHEDULED] = "SCHEDULED", [DOMI_RUNNING] = "RUNNING",
};

const char *domi_house_name_of_state(domi_state state)
{
    return (unsigned)state < DOMI_STATES ? names[state] : "?";
}

_Noreturn void domi_house_fail_forbidden_move(const domi_house *house, domi_state to)
{
    char text[96];

    snprintf(text, sizeof text, "a house moves from %s to %s",
             domi_house_name_of_state(house->state), domi_house_name_of_state(to));
    domi_check_failed(text, __FILE__, __LINE__, __func__);
}
