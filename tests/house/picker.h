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
    domus_address asker;  /* an agent on home 1 */
    unsigned releases;    /* payloads that nobody handled and that were released */
    unsigned looks;       /* calls of the predicate of domt_sevens */
    char text[4096];
    char answers[256];
} domt_picked;

extern domt_picked domt_pick;

/* Types of notices, and of an ask; the payload of each is a number of 8 bytes, with a release. */
extern const domus_type domt_pick_note;
extern const domus_type domt_pick_urgent;
extern const domus_type domt_pick_question;
extern const domus_type domt_pick_number; /* the type of answers to questions; it has no release */

extern const domus_pattern domt_any;
extern const domus_pattern domt_sevens; /* matches notes with the number 7 */
extern const domus_pattern domt_questions;
extern const domus_pattern domt_urgents;

extern const domus_behaviour domt_picking; /* state_size 8; calls have a frame of 16 */

/* Open the world; a 0 stands for the default. */
void domt_pick_open(uint32_t mailbox_max, uint32_t conversations_max);

/* End the world, and check that nothing is left of any conversation or message. */
void domt_pick_close(void);

/* Put a message into the picker's mailbox at home, and do not let the picker work yet. A call
 * begins a conversation there, by a notice or by an event. */
void domt_tell(const domus_type *type, int64_t number);
void domt_tell_notes(int64_t first, int64_t last);
void domt_begin(int (*function)(domus_stack *, void *), const void *context);
void domt_begin_by_event(int (*function)(domus_stack *, void *), const void *context);

/* Let the asker's question come to the picker, which does not work yet; a time-out of 0 is none. */
void domt_ask_picker(int64_t number, uint64_t timeout_ns);

/* Let the world settle, or time pass; or stop the picker from outside. */
void domt_pick_settle(void);
void domt_pick_pass(uint64_t ns);
void domt_pick_stop(void);

/* Let the world settle, and check the text that the picker wrote so far, or the answers that the
 * asker got. */
void domt_pick_wrote(const char *text);
void domt_pick_heard(const char *answers);

/* Write a number between two texts, or the result of a receive; returns true if a message was
 * received. */
void domt_pick_write(const char *before, int64_t number, const char *after);
bool domt_write(const domus_answer *answer);
/* writes the answer, then ends */
int domt_took(domus_stack *stack, void *self, const domus_answer *answer);

/* A conversation that receives once, by the pattern that is its context; and one that receives by a
 * pattern, within a time, and is resumed by a function of the test. */
typedef struct domt_reception {
    const domus_pattern *pattern;
    uint64_t within_ns;
    domus_resumed *then;
} domt_reception;

int domt_receive_one(domus_stack *stack, void *pattern);
int domt_receive_as(domus_stack *stack, void *reception);

#endif
