/* The page of a dump: which actors of a thread or pool the dump describes. It names a behaviour,
 * the first actor that is wanted, and how many are.
 *
 * Once an actor did not fit into the text, all that follow are left out, too, so that the dump
 * is not a selection of small actors. Thread: the one that describes the actors. */
#ifndef DOMI_RUNTIME_CONTROL_DUMP_PAGE_H
#define DOMI_RUNTIME_CONTROL_DUMP_PAGE_H

#include "house/message/house.h"
#include "house/message/types.h"

#include <domus/dump.h>

#include <stdio.h>
#include <string.h>

#define DOMI_DUMP_NAME_SIZE 64 /* size in bytes of the behaviour's name in a page, with its NUL */

typedef struct domi_dump_page {
    char behaviour[DOMI_DUMP_NAME_SIZE]; /* name of the behaviour whose actors the page has; "": all
                                            behaviours */
    /* first actor that is wanted, and how many are: the fields of domus_dump_filter */
    uint32_t from, count;
    uint32_t houses;    /* number of houses of the wanted behaviour that the walk has met */
    uint32_t described; /* number of wanted houses that are described in the text */
    uint32_t left_out;  /* number of wanted houses that did not fit into the text */
} domi_dump_page;

/* Begin a page of a dump. `filter` may be NULL. It is copied, because a stuck thread still reads
 * the page when the caller has given up its dump. */
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

/* Count a house whose actor lives. Returns whether the page wants it described: then
 * domi_dump_record_if_house_was_described() follows. */
static inline bool domi_dump_count_house_in_page(domi_dump_page *page, const domi_house *house)
{
    if (page->behaviour[0] != '\0' && strncmp(domi_behaviour_name(domi_house_get_behaviour(house)),
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

/* Record in the page whether a wanted house was described, or did not fit into the text. */
static inline void domi_dump_record_if_house_was_described(domi_dump_page *page, bool is_described)
{
    page->described += is_described;
    page->left_out += !is_described;
}

#endif
