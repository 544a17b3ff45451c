/* The text of /actors, actor by actor.
 *
 * That text is for people, and may change in any version, so whatever is not found in it counts as
 * nothing. The text itself is at hand as it is. */
#ifndef DOMUS_TOOL_DUMP_H
#define DOMUS_TOOL_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_NAME 64
#define DUMP_NOTE 160

/* An actor. All texts are printable ASCII. */
typedef struct actor {
    char id[32]; /* such as 0/35.2 */
    char behaviour[DUMP_NAME];
    char name[DUMP_NAME]; /* with its quotes, or the grain; "": it has none */
    char state[24];       /* such as WAITING */
    char marks[DUMP_NOTE];
    char waits_for[DUMP_NOTE]; /* what it has waited for the longest; "": for nothing */
    uint64_t mail, conversations;
    uint64_t since_ms; /* for how long it has waited for that */
} actor;

/* Read the next actor of a text (NUL-terminated). `at` moves behind it, and `ret_text` and
 * `ret_size` get its part of the text. Returns whether there was one. */
bool dump_next(const char **at, actor *ret_actor, const char **ret_text, size_t *ret_size);

/* Find the next line that is of a thread that does not answer. Returns it, without a line end in
 * `ret_size` bytes; NULL. `at` moves behind it. */
const char *dump_next_stuck(const char **at, size_t *ret_size);

/* Returns whether actors are missing because the text would have become too long. */
bool dump_is_cut(const char *text);

#endif
