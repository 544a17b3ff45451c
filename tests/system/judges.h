/* Programs of other projects that test the example web: shell commands in a scratch directory, and
 * nginx as a child in that directory. */
#ifndef DOMT_JUDGES_H
#define DOMT_JUDGES_H

#include "tests/support/tree.h"
#include "tests/system/site.h"

/* Returns whether these programs, separated by spaces, are installed; prints the name of a missing
 * one. */
bool domt_are_judges_installed(const char *programs);

/* Check that a shell command succeeds within 30 s. In the command $T is the directory, $IN a file
 * of a million bytes there, $URL the site, and $N makes curl use nginx's socket: "curl $N
 * http://x/". */
void domt_run_judge_command(const domt_tree *tree, const domt_site *site, const char *command);

/* Make the scratch directory with $IN, and with files that nginx may write to. */
void domt_make_directory_for_judges(domt_tree *tree);

/* Start nginx with `servers` as the part "http" of its configuration, in which @T@ is the directory
 * and @P@ the port of the site, and wait until it listens at $T/nginx; or kill nginx. */
void domt_nginx_start(const domt_tree *tree, const domt_site *site, const char *servers);
void domt_nginx_kill(void);

#endif
