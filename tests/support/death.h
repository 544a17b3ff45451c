/* A child process of a test, and how it ends: for checks that end the process, and for effects that
 * must stay within a process of their own. */
#ifndef DOMT_DEATH_H
#define DOMT_DEATH_H

#define DOMT_SAID_MAX 16384

/* Run body(context) in a child, and wait for its end. Returns its status as wait(2) gives it, which
 * is 0 if `body` returns. `ret_said` gets the text that the child writes to stderr. */
int domt_run_in_child(void (*body)(void *context), void *context, char ret_said[DOMT_SAID_MAX]);

/* Check that body(context) aborts in a child process, and writes `text` to stderr before. */
void domt_dies(void (*body)(void *context), void *context, const char *text);

#endif
