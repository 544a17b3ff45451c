/* Commands of the user that run beside this program: the service and its load.
 *
 * The shell runs each as a process group of its own, so Ctrl-C reaches only this program, and all
 * processes that a command has started can be ended together. This program adopts processes whose
 * parents have ended, so that it can wait for a whole group. The output is read all the time, and
 * its end is kept. */
#ifndef DOMUS_TOOL_TUNE_PROCESS_H
#define DOMUS_TOOL_TUNE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TUNE_OUTPUT_MAX  65536 /* most bytes of each output stream that are kept */
#define TUNE_MEMBERS_MAX 256   /* most processes of a group whose CPU time is counted */

/* The last bytes that a process has printed on one of its output streams. */
typedef struct tune_stream {
    int fd; /* descriptor of the stream's pipe; -1: the stream has ended */
    size_t size;
    char text[TUNE_OUTPUT_MAX];
} tune_stream;

typedef struct tune_process {
    pid_t pid; /* pid of the group's leader and of the group; 0: the process was not begun */
    bool has_ended;
    int status; /* status of the group's leader from waitpid(), if it has ended */
    tune_stream out, err;
} tune_process;

/* The CPU time of each process of a group: its own, and that of ended children for which it has
 * waited, which is counted in ticks of the kernel's clock. */
typedef struct tune_cpu {
    size_t count;
    pid_t pids[TUNE_MEMBERS_MAX];
    double seconds[TUNE_MEMBERS_MAX], of_children[TUNE_MEMBERS_MAX];
} tune_cpu;

/* Let this program adopt processes that its children leave, and survive when nobody reads its
 * output. Must be called once. */
void tune_become_adopter_of_orphans(void);

/* Begin a process that runs `command` by the shell, with further words, which the shell does not
 * interpret; NULL ends them. Returns 0 or a negative errno. After 0,
 * tune_process_terminate_or_kill_group() must follow. */
int tune_process_start_command_with_pipes(tune_process *process, const char *command,
                                          char *const *words);

/* Read the output of two processes, for at most `ms` or until something comes. Either process may
 * be NULL. */
void tune_process_wait_and_read_outputs(tune_process *one, tune_process *other, int ms);

/* Returns whether the leader of the process group has ended. */
bool tune_process_has_command_ended(tune_process *process);

/* Ask the whole process group to end, kill what is left after `ms`, and wait for it. Returns
 * whether it has ended without being killed. */
bool tune_process_terminate_or_kill_group(tune_process *process, long ms);

/* End all processes that this program has adopted, which have left their group: ask them to end,
 * kill those that are left after `ms`, and wait. Children from before
 * tune_become_adopter_of_orphans() stay. */
void tune_terminate_or_kill_adopted_processes(long ms);

void tune_process_read_cpu_times_of_group(const tune_process *process, tune_cpu *ret_cpu);

/* Returns the CPU time of a process group between two looks, in seconds, including children that
 * have ended. */
double tune_cpu_time_of_group_between_looks(const tune_cpu *before, const tune_cpu *after);

/* Returns the time in ms of a clock that nobody sets. */
int64_t tune_now_ms(void);

#endif
