/* Reads the text of /actors, actor by actor.
 *
 * That text is written for people, and may change in any version, so anything that is not found
 * counts as missing. The text of each actor is also returned unchanged. */
#ifndef DOMUS_TOOL_DUMP_H
#define DOMUS_TOOL_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_NAME 64
#define DUMP_NOTE 160

/* An actor of the dump. All texts are printable ASCII. */
typedef struct actor {
    char id[32]; /* id of the actor in the dump, such as 0/35.2 */
    char behaviour[DUMP_NAME];
    char name[DUMP_NAME]; /* name of the actor with quotes, or its grain; "": it has none */
    char state[24];       /* state of the actor, such as WAITING */
    char marks[DUMP_NOTE];
    /* the thing for which the actor has waited longest; "": it waits for nothing */
    char waits_for[DUMP_NOTE];
    uint64_t mail, conversations;
    uint64_t since_ms; /* ms for which the actor has waited for that */
} actor;

/* Read the next actor of a dump's text that ends with a zero. `at` is moved behind it, and
 * `ret_text` and `ret_size` get its part of the text. Returns whether there was one. */
bool dump_read_next_actor(const char **at, actor *ret_actor, const char **ret_text,
                          size_t *ret_size);

/* Find the next line of a dump about a thread that does not answer. Returns the line, `ret_size`
 * bytes without its end; NULL if there is none. `at` is moved behind it. */
const char *dump_find_next_stuck_thread(const char **at, size_t *ret_size);

/* Returns whether actors are missing in a dump because the text would have been too long. */
bool dump_does_text_say_actors_were_left_out(const char *text);

#endif
