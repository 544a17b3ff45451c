/* The picker: an actor that receives, with a world around it and an asker on another home.
 *
 * The picker writes down what it does as a text. `3` means that note 3 was handled, `u3` an urgent
 * note, `q3` a question (which is answered with its number). A message that a receive took stands
 * in parentheses. `-` is a receive that found nothing in its time, and `x125` one that failed with
 * that errno. The answers that the asker gets are written as a text, too: `r3`, `x-5`. */
#ifndef DOMT_HOUSE_PICKER_H
#define DOMT_HOUSE_PICKER_H

#include "tests/support/house_world.h"

#include <domus/receive.h>

typedef struct domt_picked {
    domt_world world;
    domus_address picker; /* an actor on home 0 */
    domus_address asker;  /* an agent on home 1, which asks the picker */
    unsigned releases;    /* payloads that the library has released */
    unsigned looks;       /* calls of the predicate of the pattern domt_sevens */
    char text[4096];
    char answers[256];
} domt_picked;

extern domt_picked domt_pick;

/* Types of notices and, domt_pick_question, of an ask; the payload of each is a number of 8 bytes,
 * with a release. */
extern const domus_type domt_pick_note;
extern const domus_type domt_pick_urgent;
extern const domus_type domt_pick_question;
extern const domus_type domt_pick_number; /* the type of answers to questions; it has no release */

extern const domus_pattern domt_any;
extern const domus_pattern domt_sevens; /* a pattern of notes with the number 7 */
extern const domus_pattern domt_questions;
extern const domus_pattern domt_urgents;

/* the picker's behaviour: a state of 8 bytes, calls with a frame of 16 bytes */
extern const domus_behaviour domt_picking;

/* Open the world of the picker; the bounds of its mailbox and conversations: 0 means the
 * default. */
void domt_pick_open_world(uint32_t mailbox_max, uint32_t conversations_max);

/* End the world, and check that nothing is left of any conversation or message. */
void domt_pick_close_world(void);

/* Put a message into the picker's mailbox as its home does, without a step of the picker.
 * domt_send_call_to_picker() begins a conversation there by a notice, so asks that wait come before
 * it if the picker has no order; domt_send_call_to_picker_as_event() begins one by an event, from
 * which asks can be looked at that a receive lets wait. */
void domt_send_notice_to_picker(const domus_type *type, int64_t number);
void domt_send_notes_to_picker(int64_t first, int64_t last);
void domt_send_call_to_picker(int (*function)(domus_stack *, void *), const void *context);
void domt_send_call_to_picker_as_event(int (*function)(domus_stack *, void *), const void *context);

/* Let the asker ask the picker, whose home takes the ask into its mailbox, without a step of the
 * picker. A time-out of 0 is none. */
void domt_ask_picker(int64_t number, uint64_t timeout_ns);

/* Let the world of the picker settle, or so many ms of its time pass; or stop the picker from
 * outside. */
void domt_pick_settle_world(void);
void domt_pick_pass_ns(uint64_t ns);
void domt_pick_stop_picker(void);

/* Let the world settle, and check the text that the picker has written so far, or the text of the
 * answers that the asker has got. */
void domt_pick_expect_text(const char *text);
void domt_pick_expect_answers(const char *answers);

/* Write a number between two texts, and a space behind them, to the picker's text; or write the
 * result of a receive, which returns true if a message was received. */
void domt_pick_write_number(const char *before, int64_t number, const char *after);
bool domt_write_received(const domus_answer *answer);
/* a resumed function that writes the answer and ends the conversation */
int domt_write_received_and_end(domus_stack *stack, void *self, const domus_answer *answer);

/* Functions for domt_send_call_to_picker(): receive once by the pattern `context`; or receive by a
 * pattern within a time, and resume in a function that the test gives. */
typedef struct domt_reception {
    const domus_pattern *pattern;
    uint64_t within_ns;
    domus_resumed *then;
} domt_reception;

int domt_receive_by_pattern(domus_stack *stack, void *pattern);
int domt_receive_as_ordered(domus_stack *stack, void *reception);

#endif
