/* Parts that both servers of `bench publish` on domus share: the program around them, and the group
 * of all members. */
#ifndef DOMUS_BENCH_PUBLISH_SERVE_H
#define DOMUS_BENCH_PUBLISH_SERVE_H

#include <domus/domus.h>

/* Open the group of all connections, and let the running actor join it. Returns 0, or an error of
 * domus_group_open() or domus_group_join(). */
int publish_open_and_join_group(domus_stack *stack, domus_group *ret_group);

/* Serve the listener of config/domus.yaml with actors of `owner` until a signal ends the program.
 * Returns the status of main(). */
int publish_run_server_with_owner(int argc, char **argv, const domus_behaviour *owner);

#endif
