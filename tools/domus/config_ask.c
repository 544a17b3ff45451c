/* Runs a program, bounded in time and bytes, and reads its answer (config_parts.h).
 *
 * A file that is named by mistake may be any program. So the child ends with this process, or when
 * its time is over, and its answer must have the form of --tell, whatever its exit status is. */
#include "tools/domus/config_parts.h"

#include "tools/domus/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#define LIMIT_MS   30000
#define LOOK_MS    10
#define OUTPUT_MAX (16u << 20) /* most bytes that are read of one output of the child */
#define NAME_SHOWN 256
/* exit status by which the child says that it could not execute the program */
#define NOT_RUN 127

enum { OUT, ERR, ENDS };

/* One of the two outputs (stdout and stderr) of the child. */
typedef struct ask_output {
    int fd;     /* reading end of the output's pipe; -1: the output has ended */
    char *text; /* the text of the output so far, with a zero at its end */
    size_t size;
} ask_output;

typedef struct child {
    const char *path;
    pid_t pid;
    ask_output outputs[ENDS];
    int status;          /* wait status of the child, as waitpid() has told it */
    const char *trouble; /* reason why the child has given no answer; NULL: there is one */
} child;

/* --- finding the program ---------------------------------------------------------------------- */

/* Find the program domus-keys, beside this program or where it was installed. Returns whether it
 * exists. */
static bool find_program_domus_keys(char path[PATH_MAX])
{
    static const char *const ways[] = {"", DOMUS_TOOL_KEYS_WAY};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length <= 0)
        return false;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        bool is_whole = ways[i][0] == '/';
        int size = snprintf(path, PATH_MAX, "%s%s%s/domus-keys", is_whole ? "" : self,
                            is_whole || ways[i][0] == '\0' ? "" : "/", ways[i]);
        if (size < PATH_MAX && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Make the arguments of the child's command line. Returns NULL without memory. */
static const char **make_arguments_of_child(const config_question *question, const char *path)
{
    const char **all = calloc(2 * (question->file_count + question->set_count) + 4, sizeof *all);
    size_t count = 0;

    if (all == NULL)
        return NULL;
    all[count++] = path;
    for (size_t i = 0; i < question->file_count; i++) {
        all[count++] = "--config";
        all[count++] = question->files[i];
    }
    for (size_t i = 0; i < question->set_count; i++) {
        all[count++] = "--set";
        all[count++] = question->sets[i];
    }
    all[count++] = "--tell";
    all[count] = question->tell;
    return all;
}

/* --- running the program ---------------------------------------------------------------------- */

/* Execute the program in the child, in a process group of its own, so that all processes which it
 * starts can be ended with it. Its input is empty, so it cannot wait for input. The path is not
 * searched in $PATH. */
static void execute_program_in_child(const char *path, const char **arguments, const int ends[ENDS],
                                     pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(ends[OUT], STDOUT_FILENO) < 0 || dup2(ends[ERR], STDERR_FILENO) < 0)
        _exit(NOT_RUN);
    /* execv() does not change the arguments; their type in its declaration is historical */
    (void)execv(path, (char *const *)(uintptr_t)arguments);
    (void)fprintf(stderr, "%s\n", strerror(errno));
    _exit(NOT_RUN);
}

static void close_pipe(const int pair[2])
{
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* Start the child that runs the program. Returns false on failure. */
static bool start_child_process(child *one, const char **arguments)
{
    pid_t parent = getpid();
    int out[2], err[2];

    if (pipe2(out, O_CLOEXEC) != 0)
        return false;
    if (pipe2(err, O_CLOEXEC) != 0) {
        close_pipe(out);
        return false;
    }
    one->pid = fork();
    if (one->pid == 0)
        execute_program_in_child(one->path, arguments, (const int[ENDS]){out[1], err[1]}, parent);
    if (one->pid < 0) {
        close_pipe(out);
        close_pipe(err);
        return false;
    }
    /* the child sets its group, too, because either process may be first */
    (void)setpgid(one->pid, one->pid);
    (void)close(out[1]);
    (void)close(err[1]);
    one->outputs[OUT].fd = out[0];
    one->outputs[ERR].fd = err[0];
    return true;
}

/* Append bytes to the text of an output. Returns the reason why that is not possible, or NULL. */
static const char *append_bytes_to_output(ask_output *output, const char *bytes, size_t size)
{
    if (output->size + size > OUTPUT_MAX)
        return "it says too much";
    char *larger = realloc(output->text, output->size + size + 1);
    if (larger == NULL)
        return "no memory";
    memcpy(larger + output->size, bytes, size);
    output->text = larger;
    output->size += size;
    larger[output->size] = '\0';
    return NULL;
}

static void close_ended_output(ask_output *output)
{
    (void)close(output->fd);
    output->fd = -1;
}

/* Read the bytes of an output of the child that have come. */
static void read_bytes_of_output(child *one, ask_output *output)
{
    char bytes[65536];
    ssize_t size = read(output->fd, bytes, sizeof bytes);

    if (size > 0)
        one->trouble = append_bytes_to_output(output, bytes, (size_t)size);
    else if (size == 0 || errno != EINTR)
        close_ended_output(output);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

/* Read both outputs of the child to their ends. */
static void read_outputs_of_child(child *one, int64_t end_ms)
{
    ask_output *const outputs = one->outputs;

    while (one->trouble == NULL && (outputs[OUT].fd >= 0 || outputs[ERR].fd >= 0)) {
        struct pollfd ready[ENDS] = {{.fd = outputs[OUT].fd, .events = POLLIN},
                                     {.fd = outputs[ERR].fd, .events = POLLIN}};
        int64_t left = end_ms - now_ms();
        if (say_get_noted_signal() != 0) {
            one->trouble = "stopped by a signal";
            return;
        }
        if (left <= 0) {
            one->trouble = "it does not end, as a program does that does not know --tell";
            return;
        }
        if (poll(ready, ENDS, (int)(left < LOOK_MS ? left : LOOK_MS)) <= 0)
            continue;
        for (int i = 0; i < ENDS && one->trouble == NULL; i++) {
            if (ready[i].revents != 0)
                read_bytes_of_output(one, &outputs[i]);
        }
    }
}

/* Wait until the child has ended, and end it if it goes on after its outputs have ended. Its
 * process group is ended in any case, before the child is waited for, because the child's pid is
 * the number of the group. */
static void wait_for_child_to_end(child *one, int64_t end_ms)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    siginfo_t ended = {.si_pid = 0};

    while (one->trouble == NULL &&
           waitid(P_PID, (id_t)one->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0) {
        if (say_get_noted_signal() != 0)
            one->trouble = "stopped by a signal";
        else if (now_ms() >= end_ms)
            one->trouble = "it does not end";
        else
            (void)nanosleep(&pause, NULL);
    }
    (void)kill(-one->pid, SIGKILL);
    while (waitpid(one->pid, &one->status, 0) < 0 && errno == EINTR)
        ;
}

/* Run the child to its end, or until its time is over. */
static void run_child_to_end(child *one, const char **arguments)
{
    const int64_t end_ms = now_ms() + LIMIT_MS;

    /* Ctrl-C does not reach the child's process group, so the signal is noted and ends the child
     * here */
    say_begin_to_note_signals();
    for (int i = 0; i < ENDS; i++)
        one->outputs[i].fd = -1;
    if (!start_child_process(one, arguments)) {
        one->trouble = strerror(errno);
        return;
    }
    read_outputs_of_child(one, end_ms);
    wait_for_child_to_end(one, end_ms);
    for (int i = 0; i < ENDS; i++) {
        if (one->outputs[i].fd >= 0)
            close_ended_output(&one->outputs[i]);
    }
}

/* --- the answer of the program ---------------------------------------------------------------- */

/* Print why the program has given no answer: the reason, or the first line of its error output. */
static void print_why_program_gave_no_answer(const child *one)
{
    const ask_output *said = &one->outputs[ERR];
    const char *line = said->text != NULL ? said->text : "it says nothing";
    char name[NAME_SHOWN], shown[NAME_SHOWN];

    escape_name_to_ascii(one->path, strlen(one->path), name, sizeof name);
    escape_name_to_ascii(line, strcspn(line, "\n"), shown, sizeof shown);
    bool is_not_run = WIFEXITED(one->status) && WEXITSTATUS(one->status) == NOT_RUN;
    if (one->trouble != NULL || is_not_run)
        say_print_error("%s: %s", name, one->trouble != NULL ? one->trouble : shown);
    else
        say_print_error(
            "%s does not answer to --tell, so it is no program of domus_main(), or one of an "
            "older domus: %s",
            name, shown);
}

/* Print the faults that the program has found in a configuration. */
static void print_faults_of_configuration(const child *one, bool is_own)
{
    const ask_output *said = &one->outputs[ERR];

    if (said->text == NULL)
        return;
    say_print_untrusted_text(stderr, said->text, said->size);
    if (!is_own && strstr(said->text, "unknown key") != NULL)
        say_print_error("keys of a program's own are known with -x PROGRAM");
}

/* Read the answer of the program. Returns NULL if there is none, which is printed, or if it reports
 * that the configuration is wrong. */
static json_t *read_answer_of_program(const child *one, const config_question *question)
{
    const ask_output *said = &one->outputs[OUT];
    json_t *answer = one->trouble == NULL && said->text != NULL
                         ? json_loadb(said->text, said->size, 0, NULL)
                         : NULL;
    const char *tell = json_string_value(json_object_get(answer, "tell"));
    const json_t *right = json_object_get(answer, "right");

    if (tell == NULL || strcmp(tell, question->tell) != 0) {
        print_why_program_gave_no_answer(one);
    } else if (json_is_false(right)) {
        print_faults_of_configuration(one, question->exec != NULL);
    } else {
        return answer;
    }
    json_decref(answer);
    return NULL;
}

json_t *config_run_program_for_answer(const config_question *question)
{
    char keys[PATH_MAX];
    child one = {.path = question->exec};
    json_t *answer = NULL;

    if (one.path == NULL && !find_program_domus_keys(keys)) {
        say_print_error("the program domus-keys is not beside this one: name your program by -x");
        return NULL;
    }
    if (one.path == NULL)
        one.path = keys;
    const char **arguments = make_arguments_of_child(question, one.path);
    if (arguments != NULL) {
        run_child_to_end(&one, arguments);
        answer = read_answer_of_program(&one, question);
    }
    free(arguments);
    free(one.outputs[OUT].text);
    free(one.outputs[ERR].text);
    return answer;
}
