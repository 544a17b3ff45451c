/* Programs of other projects as judges of the example web: commands of the shell in a scratch
 * directory, and nginx as a child there. */
#ifndef DOMT_JUDGES_H
#define DOMT_JUDGES_H

#include "tests/support/tree.h"
#include "tests/system/site.h"

/* Whether these programs, divided by spaces, are installed; it says which one is not. */
bool domt_judges_are_there(const char *programs);

/* Check that a command of the shell succeeds within 30 s. In it $T is the directory, $IN a file of
 * a million bytes there, $URL the site, and $N asks nginx by its socket: "curl $N http://x/". */
void domt_judge(const domt_tree *tree, const domt_site *site, const char *command);

/* Make the directory with $IN, and with files that nginx may write to. */
void domt_judges_begin(domt_tree *tree);

/* Start nginx with `servers` as the part "http" of its configuration, in which @T@ is the directory
 * and @P@ the port of the site, and wait until it listens at $T/nginx. Kill it. */
void domt_nginx_start(const domt_tree *tree, const domt_site *site, const char *servers);
void domt_nginx_kill(void);

#endif
