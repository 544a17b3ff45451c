/* The cluster of a program (domus/front.h), which belongs to the process, as domus_main() does: its
 * settings are checked before anything is started, and its system is a node while it runs.
 *
 * Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_CLUSTER_H
#define DOMI_CONFIG_MAIN_CLUSTER_H

#include <domus/main.h>

#include <stdbool.h>

/* Print to stderr what is wrong with the section `cluster`, when the fronts are open
 * (main_front.h). Returns whether it is right. */
bool domi_main_cluster_check(const domus_program *program, const domus_config *config);

/* Make the system a node, if the program is in a cluster. Returns 0; a negative errno, and `error`
 * says why. */
int domi_main_cluster_open(const domus_program *program, domus_system *system, char *error,
                           size_t error_size);

/* Tell the other nodes that this one ends. */
void domi_main_cluster_leave(const domus_program *program);

/* Free the cluster, whose system has stopped. If the system is stuck, nothing is freed, because a
 * thread may still use the cluster. */
void domi_main_cluster_close(const domus_program *program, bool is_stuck);

#endif
