/* A picker (picker.h) whose messages have an order: the tens of a number decide, a smaller one
 * comes first, and messages of the same ten are equal. Calls come before all of them. */
#ifndef DOMT_HOUSE_ORDERED_H
#define DOMT_HOUSE_ORDERED_H

#include "tests/house/picker.h"

/* Behaviours of a picker with an order; domt_ordered_open_world() fills them. */
extern domus_behaviour domt_by_tens;      /* takes smaller tens first */
extern domus_behaviour domt_by_tens_down; /* takes larger tens first */

/* Open the world of a picker that has an order. */
void domt_ordered_open_world(uint32_t mailbox_max);

/* Let the world settle; let only the picker's home settle; or send each of these numbers to the
 * picker in a notice. */
void domt_ordered_settle_picker(void);
domi_manager *domt_ordered_home_of_picker(void);
void domt_ordered_send_notes(const int64_t *numbers, size_t count);
#define DOMT_ORDERED_TELL(...)                                                                     \
    domt_ordered_send_notes((const int64_t[]){__VA_ARGS__},                                        \
                            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Check that the picker has handled exactly these messages since the last call of these functions;
 * domt_ordered_settle_and_expect() lets the world settle before. */
void domt_ordered_expect_handled(const char *expected);
void domt_ordered_settle_and_expect(const char *expected);

/* Let one run of any house handle at most so many messages. */
void domt_ordered_limit_messages_of_run(uint32_t messages);

/* Let the picker's home take its arrivals, and run its state actors once. */
void domt_ordered_run_picker(void);

/* Let the picker sort all messages that wait for it: it handles only 8 calls that do nothing. */
void domt_ordered_sort_mail(void);

#endif
