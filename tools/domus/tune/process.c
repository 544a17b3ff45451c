/* Runs commands of the user beside this program (process.h). */
#include "tools/domus/tune/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 40
#define STEP_MS   5
#define KILLED_MS 5000 /* ms in which the kernel has to end processes that were killed */

static const char shell[] = "/bin/sh";

int64_t tune_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- reading the status of processes ---------------------------------------------------------- */

/* The status of a process, as the kernel reports it. */
typedef struct process_status {
    pid_t pid, parent, group;
    /* CPU time of those children of the process for which it has waited, in seconds */
    double of_children;
} process_status;

/* Read the status of a process from /proc. Returns whether the process exists. */
static bool read_status_of_process(const char *pid, process_status *ret_status)
{
    char path[64], text[1024];
    long parent, group;
    unsigned long user, system;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[size > 0 ? size : 0] = '\0';
    /* the process's name ends at the last parenthesis, because it may contain others */
    const char *behind = strrchr(text, ')');
    if (behind == NULL ||
        sscanf(behind, ") %*c %ld %ld %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %lu %lu", &parent,
               /* NOLINT(cert-err34-c): the kernel wrote these numbers */
               &group, &user, &system) != 4)
        return false;
    *ret_status =
        (process_status){.pid = (pid_t)strtol(pid, NULL, 10),
                         .parent = (pid_t)parent,
                         .group = (pid_t)group,
                         .of_children = (double)(user + system) / (double)sysconf(_SC_CLK_TCK)};
    return true;
}

/* Get the next process that /proc lists. Returns whether there is one. */
static bool get_next_process_of_proc(DIR *directory, process_status *ret_status)
{
    struct dirent *entry;

    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_status_of_process(entry->d_name, ret_status))
            return true;
    }
    return false;
}

/* Children that this program had already when it began, such as those of a shell that has executed
 * it. */
static pid_t strangers[TUNE_MEMBERS_MAX];
static size_t strangers_count;

static bool is_child_that_existed_before_search(pid_t pid)
{
    for (size_t i = 0; i < strangers_count; i++) {
        if (strangers[i] == pid)
            return true;
    }
    return false;
}

static void remember_children_that_exist_already(void)
{
    DIR *directory = opendir("/proc");
    process_status one;

    while (directory != NULL && strangers_count < TUNE_MEMBERS_MAX &&
           get_next_process_of_proc(directory, &one)) {
        if (one.parent == getpid())
            strangers[strangers_count++] = one.pid;
    }
    if (directory != NULL)
        (void)closedir(directory);
}

void tune_become_adopter_of_orphans(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    remember_children_that_exist_already();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1UL);
    /* without a reader of its output, this program must still end the service */
    (void)sigaction(SIGPIPE, &ignore, NULL);
}

/* --- beginning a process ---------------------------------------------------------------------- */

/* Do the part of tune_process_start_command_with_pipes() that runs in the new process. */
static _Noreturn void execute_command_in_child(const char *script, char *const *words,
                                               const int *pipes)
{
    char *all[WORDS_MAX + 5] = {(char *)(uintptr_t)shell, (char[]){"-c"}, (char *)(uintptr_t)script,
                                (char[]){"sh"}};
    size_t count = 4;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (; words != NULL && *words != NULL && count < WORDS_MAX + 4; words++)
        all[count++] = *words;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM);
    (void)sigaction(SIGPIPE, &usual, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(pipes[1], STDOUT_FILENO) >= 0 &&
        dup2(pipes[3], STDERR_FILENO) >= 0)
        (void)execv(shell, all);
    _exit(127);
}

static void close_descriptors_of_pipes(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
}

int tune_process_start_command_with_pipes(tune_process *process, const char *command,
                                          char *const *words)
{
    int pipes[4] = {-1, -1, -1, -1}, error = 0;
    char *script = NULL;

    process->pid = 0;
    process->has_ended = false;
    process->out.size = process->err.size = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0 || pipe2(pipes + 2, O_CLOEXEC) != 0 ||
        asprintf(&script, words != NULL ? "%s \"$@\"" : "%s", command) < 0) {
        error = -errno;
        goto close_pipes;
    }
    (void)fflush(NULL);
    process->pid = fork();
    if (process->pid == 0)
        execute_command_in_child(script, words, pipes);
    error = process->pid < 0 ? -errno : 0;
    free(script);
    if (error != 0)
        goto close_pipes;
    /* the child sets its group, too, because either process may be first */
    (void)setpgid(process->pid, process->pid);
    close_descriptors_of_pipes((int[]){pipes[1], pipes[3]}, 2);
    (void)fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(pipes[2], F_SETFL, O_NONBLOCK);
    process->out.fd = pipes[0];
    process->err.fd = pipes[2];
    return 0;

close_pipes:
    process->pid = 0;
    close_descriptors_of_pipes(pipes, 4);
    return error;
}

/* --- output of processes ---------------------------------------------------------------------- */

/* Remove the first half of the output of a process that is kept. */
static void remove_first_half_of_output(tune_stream *stream)
{
    stream->size /= 2;
    memmove(stream->text, stream->text + sizeof stream->text / 2, stream->size);
}

/* Read the bytes of a process's stream that have come, at most 16 pieces, so that an endless stream
 * does not keep others from being read. */
static void read_bytes_of_stream(tune_stream *stream)
{
    for (int i = 0; i < 16 && stream->fd >= 0; i++) {
        if (stream->size == sizeof stream->text)
            remove_first_half_of_output(stream);
        ssize_t got =
            read(stream->fd, stream->text + stream->size, sizeof stream->text - stream->size);
        if (got > 0) {
            stream->size += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            (void)close(stream->fd);
            stream->fd = -1;
        } else {
            return;
        }
    }
}

void tune_process_wait_and_read_outputs(tune_process *one, tune_process *other, int ms)
{
    tune_stream *streams[4] = {&one->out, &one->err, NULL, NULL};
    struct pollfd polled[4];

    if (other != NULL) {
        streams[2] = &other->out;
        streams[3] = &other->err;
    }
    /* streams that have ended are ignored, because poll() ignores negative descriptors */
    for (int i = 0; i < 4; i++)
        polled[i] =
            (struct pollfd){.fd = streams[i] != NULL ? streams[i]->fd : -1, .events = POLLIN};
    (void)poll(polled, 4, ms);
    for (int i = 0; i < 4; i++) {
        if (streams[i] != NULL && polled[i].revents != 0)
            read_bytes_of_stream(streams[i]);
    }
}

/* --- ending processes ------------------------------------------------------------------------- */

bool tune_process_has_command_ended(tune_process *process)
{
    if (!process->has_ended && waitpid(process->pid, &process->status, WNOHANG) == process->pid) {
        process->has_ended = true;
        read_bytes_of_stream(&process->out);
        read_bytes_of_stream(&process->err);
    }
    return process->has_ended;
}

/* Wait for all processes of the group of a command, for at most `ms`. Returns whether all have
 * ended. */
static bool wait_for_processes_of_group(tune_process *process, long ms)
{
    int64_t end = tune_now_ms() + ms;

    for (;;) {
        int status;
        pid_t pid = waitpid(-process->pid, &status, WNOHANG);
        if (pid < 0 && errno == ECHILD)
            return true;
        if (pid == process->pid) {
            process->has_ended = true;
            process->status = status;
        }
        if (pid == 0) {
            if (tune_now_ms() >= end)
                return false;
            tune_process_wait_and_read_outputs(process, NULL, STEP_MS);
        }
    }
}

bool tune_process_terminate_or_kill_group(tune_process *process, long ms)
{
    bool has_ended = true;

    if (process->pid == 0)
        return true;
    (void)kill(-process->pid, SIGTERM);
    if (!wait_for_processes_of_group(process, ms)) {
        has_ended = false;
        (void)kill(-process->pid, SIGKILL);
        (void)wait_for_processes_of_group(process, KILLED_MS);
    }
    close_descriptors_of_pipes((int[]){process->out.fd, process->err.fd}, 2);
    process->out.fd = process->err.fd = -1;
    process->pid = 0;
    return has_ended;
}

/* Send a signal to all adopted processes, and wait for those that have ended. Returns whether any
 * are left. */
static bool signal_and_reap_adopted_processes(int number)
{
    DIR *directory = opendir("/proc");
    bool is_any = false;
    process_status one;

    while (directory != NULL && get_next_process_of_proc(directory, &one)) {
        if (one.parent != getpid() || is_child_that_existed_before_search(one.pid))
            continue;
        is_any = true;
        (void)kill(one.pid, number);
        (void)waitpid(one.pid, NULL, WNOHANG);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return is_any;
}

/* Children of adopted processes are adopted in turn, so this continues until none is left. */
void tune_terminate_or_kill_adopted_processes(long ms)
{
    const struct timespec pause = {.tv_nsec = STEP_MS * 1000000L};
    int64_t end = tune_now_ms() + ms;

    if (!signal_and_reap_adopted_processes(SIGTERM))
        return;
    while (tune_now_ms() < end && signal_and_reap_adopted_processes(0))
        (void)nanosleep(&pause, NULL);
    end = tune_now_ms() + KILLED_MS;
    while (signal_and_reap_adopted_processes(SIGKILL) && tune_now_ms() < end)
        (void)nanosleep(&pause, NULL);
}

/* --- CPU time --------------------------------------------------------------------------------- */

/* Returns the CPU time of all threads of a process, including those that have ended, in seconds. */
static double get_cpu_time_of_process(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

void tune_process_read_cpu_times_of_group(const tune_process *process, tune_cpu *ret_cpu)
{
    DIR *directory = opendir("/proc");
    process_status one;

    ret_cpu->count = 0;
    while (directory != NULL && ret_cpu->count < TUNE_MEMBERS_MAX &&
           get_next_process_of_proc(directory, &one)) {
        if (one.group != process->pid)
            continue;
        ret_cpu->pids[ret_cpu->count] = one.pid;
        ret_cpu->of_children[ret_cpu->count] = one.of_children;
        ret_cpu->seconds[ret_cpu->count++] = get_cpu_time_of_process(one.pid);
    }
    if (directory != NULL)
        (void)closedir(directory);
}

/* Returns the index of a process in a look at CPU times; the number of processes if it is not
 * there. */
static size_t find_process_in_look(const tune_cpu *look, pid_t pid)
{
    size_t i = 0;

    while (i < look->count && look->pids[i] != pid)
        i++;
    return i;
}

/* The whole time of a process that has ended between the looks was added to its parent's, so its
 * earlier part is subtracted; if nobody has waited for it, its time is lost. */
double tune_cpu_time_of_group_between_looks(const tune_cpu *before, const tune_cpu *after)
{
    double own = 0, of_children = 0;

    for (size_t i = 0; i < after->count; i++) {
        size_t j = find_process_in_look(before, after->pids[i]);
        bool was_there = j < before->count;
        own += after->seconds[i] - (was_there ? before->seconds[j] : 0);
        of_children += after->of_children[i] - (was_there ? before->of_children[j] : 0);
    }
    for (size_t j = 0; j < before->count; j++) {
        if (find_process_in_look(after, before->pids[j]) == after->count)
            of_children -= before->seconds[j] + before->of_children[j];
    }
    return own + (of_children > 0 ? of_children : 0);
}
