/* Two agents that ask each other: a question is a function that the asked agent runs in its
 * handler. */
#ifndef DOMT_HOUSE_TALK_H
#define DOMT_HOUSE_TALK_H

#include "tests/support/house_world.h"

typedef struct domt_talking {
    domt_world world;
    domus_address asker; /* an actor on home 0 */
    domus_address other; /* an actor on home 1, unless a test changes it */
    domus_address third; /* an actor that some tests use */
    unsigned releases;   /* payloads of domt_text that the library has released */

    /* The last answer that the asker got, and the number of answers that it got. */
    unsigned resumed;
    int error;
    const domus_type *type;
    char text[9];
    domus_address sender;
} domt_talking;

extern domt_talking domt_talk;
extern const domus_type domt_text; /* a type of 8 bytes, with a release */

void domt_talk_open_world(void);

/* End the world, and check that nothing is left of any conversation. */
void domt_talk_close_world(void);

/* Let the other agent handle a question of the asker by `function`, and settle. */
void domt_talk_ask_by_function(int (*function)(domus_stack *, void *));

/* Check that the asker has got so many answers, and that the last one has this error. */
void domt_talk_expect_answers(unsigned resumed, int error);

/* Spawn an agent on a home, and settle. */
domus_address domt_talk_spawn_agent(uint32_t home);

/* Ask the other agent `call`, from a handler of the asker; the ask resumes in
 * domt_talk_record_answer(). */
int domt_talk_ask_other_agent(domus_stack *stack, void *call);
int domt_talk_record_answer(domus_stack *stack, void *self, const domus_answer *answer);

/* Functions with which an agent handles a question. */
int domt_reply_hello(domus_stack *stack, void *context);
int domt_end_without_answer(domus_stack *stack, void *context);
int domt_fail_with_eio(domus_stack *stack, void *context);

#endif
