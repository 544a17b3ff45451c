/* Runs a function of a test in a child process, and tells how the child ended: for checks that
 * abort the process, and for effects that must not reach the process of the test. */
#ifndef DOMT_DEATH_H
#define DOMT_DEATH_H

#define DOMT_SAID_MAX 16384

/* Run body(context) in a child process, and wait for its end. Returns the child's status as
 * wait(2) gives it, which is 0 if `body` returns. `ret_said` gets the text that the child wrote
 * to stderr. */
int domt_run_in_child(void (*body)(void *context), void *context, char ret_said[DOMT_SAID_MAX]);

/* Check that body(context), run in a child process, aborts, and that it writes `text` to stderr
 * before. */
void domt_check_child_aborts(void (*body)(void *context), void *context, const char *text);

#endif
