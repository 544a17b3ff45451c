/* Commands of the user that run beside this program: the service and its load.
 *
 * Each is run by the shell as a process group of its own, so Ctrl-C reaches this program alone, and
 * all that a command has started can be ended together. This program adopts processes whose parents
 * have ended, so that it can wait for all of a group. Their output is read all the time, and the
 * end of it is kept. */
#ifndef DOMUS_TOOL_TUNE_PROCESS_H
#define DOMUS_TOOL_TUNE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TUNE_OUTPUT_MAX  65536 /* bytes of each stream that are kept */
#define TUNE_MEMBERS_MAX 256   /* processes of a group whose CPU time is counted */

/* The last bytes that were printed on a stream. */
typedef struct tune_stream {
    int fd; /* -1: it has ended */
    size_t size;
    char text[TUNE_OUTPUT_MAX];
} tune_stream;

typedef struct tune_process {
    pid_t pid; /* the pid of the leader and of its group; 0: not begun */
    bool has_ended;
    int status; /* of the leader, as of waitpid(), if it has ended */
    tune_stream out, err;
} tune_process;

/* The CPU time of each process of a group: its own, and that of its children that have ended and
 * that it has waited for, which comes in ticks of the kernel's clock. */
typedef struct tune_cpu {
    size_t count;
    pid_t pids[TUNE_MEMBERS_MAX];
    double seconds[TUNE_MEMBERS_MAX], of_children[TUNE_MEMBERS_MAX];
} tune_cpu;

/* Let this program adopt what its children leave, and live on when nobody reads what it prints.
 * Call it once. */
void tune_process_prepare(void);

/* Begin `command` with more words behind it, which the shell does not look at; NULL ends them.
 * Returns 0 or a negative errno. With 0, tune_process_end() has to follow. */
int tune_process_begin(tune_process *process, const char *command, char *const *words);

/* Read what processes have printed, for `ms` at most or until something comes; NULL: none. */
void tune_process_wait(tune_process *one, tune_process *other, int ms);

/* Returns whether the leader has ended. */
bool tune_process_has_ended(tune_process *process);

/* Ask the whole group to end, kill what is left behind `ms`, and wait for it. Returns whether it
 * has ended without being killed. */
bool tune_process_end(tune_process *process, long ms);

/* End all processes that this program has adopted, which have left their group: ask them to, kill
 * what is left behind `ms`, and wait. Its children from before tune_process_prepare() stay. */
void tune_process_end_adopted(long ms);

void tune_process_cpu(const tune_process *process, tune_cpu *ret_cpu);

/* Returns the CPU time between two looks, in seconds, also of children that have ended. */
double tune_cpu_between(const tune_cpu *before, const tune_cpu *after);

/* Returns the time of a clock that runs evenly, in ms. */
int64_t tune_now_ms(void);

#endif
