/* The actors of one thread or pool that a dump describes: those of a behaviour, from one on, as
 * many as are wanted and fit.
 *
 * Once one actor did not fit, all that follow are left out, too, so that the dump is not a
 * selection of small ones. Thread: the one that describes the actors. */
#ifndef DOMI_RUNTIME_CONTROL_DUMP_PAGE_H
#define DOMI_RUNTIME_CONTROL_DUMP_PAGE_H

#include "house/message/house.h"
#include "house/message/types.h"

#include <domus/dump.h>

#include <stdio.h>
#include <string.h>

#define DOMI_DUMP_NAME_SIZE 64 /* size in bytes of a behaviour's name, with its NUL */

typedef struct domi_dump_page {
    char behaviour[DOMI_DUMP_NAME_SIZE]; /* name of the behaviour; "": all behaviours */
    uint32_t from, count;                /* fields `from` and `count` of domus_dump_filter */
    uint32_t houses;                     /* number of houses of that behaviour that were met */
    uint32_t described;                  /* number of these houses that the text has */
    uint32_t left_out;                   /* number of these houses that did not fit */
} domi_dump_page;

/* Begin a page. `filter` may be NULL, and is copied: a thread that is stuck reads the page when its
 * dump is given up. */
static inline void domi_dump_page_init(domi_dump_page *page, const domus_dump_filter *filter)
{
    *page = (domi_dump_page){.houses = 0};
    if (filter == NULL)
        return;
    page->from = filter->from;
    page->count = filter->count;
    if (filter->behaviour != NULL)
        snprintf(page->behaviour, sizeof page->behaviour, "%s", filter->behaviour);
}

/* Count a house whose actor lives. Returns whether it is to be described: then
 * domi_dump_record_result() follows. */
static inline bool domi_dump_count_house(domi_dump_page *page, const domi_house *house)
{
    if (page->behaviour[0] != '\0' && strncmp(domi_behaviour_name(domi_house_behaviour(house)),
                                              page->behaviour, sizeof page->behaviour - 1) != 0)
        return false;
    page->houses++;
    if (page->houses <= page->from || (page->count != 0 && page->described == page->count))
        return false;
    if (page->left_out == 0)
        return true;
    page->left_out++;
    return false;
}

/* Note whether a house that was wanted has been described, or did not fit. */
static inline void domi_dump_record_result(domi_dump_page *page, bool is_described)
{
    page->described += is_described;
    page->left_out += !is_described;
}

#endif
