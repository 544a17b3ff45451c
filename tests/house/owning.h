/* Payloads that own memory, and actors that do with them what a test says.
 *
 * Each payload owns a text of its own, from malloc, and is counted when it is made, when its type
 * releases it, and when a test that took it frees it. So a payload that is released twice or never
 * fails the test, and AddressSanitizer finds reads of a text that was freed. */
#ifndef DOMT_OWNING_H
#define DOMT_OWNING_H

#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define DOMT_OWNING_ACTORS 3
#define DOMT_TEXT_BYTES    6000u /* bytes of each text, which repeats a word */

/* The first bytes of each payload of the types below: the text that the payload owns. */
typedef struct domt_owner {
    char *text;
} domt_owner;

/* types with payloads of three sizes: within the smallest envelopes; in larger ones; allocated */
extern const domus_type domt_small, domt_middle, domt_large;
extern const domus_type *const domt_sizes[3];

typedef struct domt_owning {
    domt_world world;
    domus_address actors[DOMT_OWNING_ACTORS]; /* actor 0 on home 0, the others on home 1 */
    unsigned made, released, freed;

    /* Functions that an actor calls with each payload that it handles, and with each answer; each
     * test sets them. */
    int (*handle)(domus_stack *stack, const domt_owner *payload);
    int (*hear)(domus_stack *stack, const domus_answer *answer);
    unsigned handled, heard;
    /* the payload that `handle` was given, for a later look at its text; the test does not own
     * it */
    const domt_owner *kept;
    char *text;
    domus_kept ask;
} domt_owning;

extern domt_owning domt_owned;

void domt_owning_open_world(void);

/* End the world, and check that each payload was released or freed and nothing is left in use. */
void domt_owning_close_world(void);

/* Make a payload with this text, large enough for each type; it is valid until the next call. */
void *domt_owning_make_payload(const char *text);

/* Free the text of a payload that a test has taken. */
void domt_free_text(char *text);

/* Let actor `by` run `function` with `context` in a handler, and settle. */
void domt_owning_run_in_actor(uint32_t by, int (*function)(domus_stack *, void *),
                              const void *context);

/* Stop an actor by the thread of its home, and settle. */
void domt_owning_stop_actor(domus_address actor);

/* Send a payload or ask with it, from actor 0 to actor `to`, and settle. */
void domt_owning_send_notice(uint32_t to, const domus_type *type, const char *text);
void domt_owning_send_ask(uint32_t to, const domus_type *type, const char *text);

/* Send a payload or ask with it, from within a handler. The ask resumes in
 * domt_owning_count_and_check_answer(); after an added ask the caller's wait names the function. */
int domt_owning_notice_in_handler(domus_stack *stack, uint32_t to, const domus_type *type,
                                  const char *text);
int domt_owning_ask_in_handler(domus_stack *stack, uint32_t to, const domus_type *type,
                               const char *text, uint64_t timeout_ns);
int domt_owning_add_ask_in_handler(domus_stack *stack, uint32_t to, const domus_type *type,
                                   const char *text, uint64_t tag);

/* The resumed function of asks: it calls `hear`. */
int domt_owning_count_and_check_answer(domus_stack *stack, void *self, const domus_answer *answer);

/* Returns the text that the payload of an answer owns. */
static inline char *domt_text_of_answer(const domus_answer *answer)
{
    return ((const domt_owner *)answer->payload)->text;
}

#endif
