/* A picker (picker.h) whose messages have an order: the tens of a number decide, a smaller one
 * comes first, and messages of the same ten are equal. Calls come before all of them. */
#ifndef DOMT_HOUSE_ORDERED_H
#define DOMT_HOUSE_ORDERED_H

#include "tests/house/picker.h"

/* Behaviours with an order; domt_ordered_open() fills them. */
extern domus_behaviour domt_by_tens;      /* smaller tens first */
extern domus_behaviour domt_by_tens_down; /* larger tens first */

/* Open the world of a picker that has an order. */
void domt_ordered_open(uint32_t mailbox_max);

/* Let the world settle; let only the picker's home settle; or send the picker these numbers, each
 * in a notice. */
void domt_ordered_settle(void);
domi_manager *domt_ordered_home(void);
void domt_ordered_tell(const int64_t *numbers, size_t count);
#define DOMT_ORDERED_TELL(...)                                                                     \
    domt_ordered_tell((const int64_t[]){__VA_ARGS__},                                              \
                      sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Check that the picker has handled exactly these messages since the last call; the second function
 * settles before. */
void domt_ordered_handled(const char *expected);
void domt_ordered_settled(const char *expected);

/* Let a run of any house handle at most so many messages. */
void domt_ordered_run_limit(uint32_t messages);

/* Run the picker's thread once. Arrivals are taken before. */
void domt_ordered_run(void);

/* Let all messages of the picker be sorted, although only 8 calls that do nothing are handled. */
void domt_ordered_sort(void);

#endif
