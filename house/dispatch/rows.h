/* The rows of a behaviour: the search for the function that handles a type of message.
 *
 * Types are compared by their addresses, in the order of the rows. Behaviours have few rows, and
 * the first ones are found first, so a table of another kind would cost more than this search. */
#ifndef DOMI_HOUSE_DISPATCH_ROWS_H
#define DOMI_HOUSE_DISPATCH_ROWS_H

#include <domus/actor.h>

#include <stddef.h>

/* Returns the row of a behaviour for messages of `type`; NULL: there is none. */
static inline const domus_on *domi_row_for_type(const domus_behaviour *behaviour,
                                                const domus_type *type)
{
    const domus_on *on = behaviour->on;

    if (on == NULL)
        return NULL;
    /* A message has a type and the row at the end has none, so the type is compared before the end
     * is tested. */
    for (; on->type != type; on++) {
        if (on->type == NULL)
            return NULL;
    }
    return on;
}

/* Returns the row of a behaviour for messages that no other row names: the last row, if it has a
 * handler; else NULL. */
static inline const domus_on *domi_row_for_other_types(const domus_behaviour *behaviour)
{
    const domus_on *on = behaviour->on;

    while (on != NULL && on->type != NULL)
        on++;
    return on != NULL && on->handle != NULL ? on : NULL;
}

#endif
