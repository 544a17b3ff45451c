/* A picker (picker.h) whose mail has an order: the tens of a number decide, a smaller one comes
 * first, and messages of the same ten are equal. Calls come before all of them. */
#ifndef DOMT_HOUSE_ORDERED_H
#define DOMT_HOUSE_ORDERED_H

#include "tests/house/picker.h"

/* The behaviours of such an actor; filled by domt_ordered_open(). */
extern domus_behaviour domt_by_tens;      /* smaller tens first */
extern domus_behaviour domt_by_tens_down; /* larger tens first */

/* Open the world of the picker, which is one with an order. */
void domt_ordered_open(uint32_t mailbox_max);

/* Let the world settle; its home; tell the picker these numbers, each in a notice. */
void domt_ordered_settle(void);
domi_manager *domt_ordered_home(void);
void domt_ordered_tell(const int64_t *numbers, size_t count);
#define DOMT_ORDERED_TELL(...)                                                                     \
    domt_ordered_tell((const int64_t[]){__VA_ARGS__},                                              \
                      sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Hold that the picker has handled these since the last call; the second one settles before. */
void domt_ordered_handled(const char *expected);
void domt_ordered_settled(const char *expected);

/* Let a run of any house handle at most so many messages. */
void domt_ordered_run_limit(uint32_t messages);

/* A run of the picker's thread. Arrivals are taken before it. */
void domt_ordered_run(void);

/* Let all mail of the picker be sorted, although none of it is handled but 8 calls that do
 * nothing. */
void domt_ordered_sort(void);

#endif
