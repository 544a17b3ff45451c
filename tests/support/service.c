/* Runs a program as a child process of the test, and reads its outputs and the rows of its
 * profile. */
#include "tests/support/service.h"
#include "tests/support/process.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_MS 10000
#define STOP_MS  15000

uint64_t domt_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void domt_sleep_ms(uint32_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Replace the child process by the program of the service. The program is opened before `prepare`
 * is called, because a child that has given up its rights may not be able to open the path. */
static _Noreturn void become_service_program(const domt_service *service,
                                             const char *const arguments[], int output,
                                             pid_t parent)
{
    extern char **environ;
    char path[32];
    int program = open(arguments[0], O_RDONLY | O_CLOEXEC);

    if (program < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
        dup2(output, STDOUT_FILENO) < 0 || dup2(service->errors, STDERR_FILENO) < 0)
        _exit(127);
    if (service->prepare != NULL)
        service->prepare();
    /* set again, because the kernel clears this signal when `prepare` changes the user */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    fexecve(program, (char *const *)(uintptr_t)arguments, environ);
    /* If the program runs in an emulator, fexecve() fails: the emulator gets a path of a descriptor
     * that the kernel has closed by then. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", program);
    execve(path, (char *const *)(uintptr_t)arguments, environ);
    _exit(127);
}

void domt_service_spawn(domt_service *service, const char *const arguments[])
{
    pid_t parent = getpid();
    int output[2];

    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    service->errors = memfd_create("stderr", MFD_CLOEXEC);
    ck_assert_int_ge(service->errors, 0);
    ck_assert_int_eq(fcntl(service->errors, F_SETFL, O_APPEND), 0);
    service->port = 0;
    service->status = 0;
    service->said[0] = '\0';
    service->error[0] = '\0';
    service->pid = fork();
    ck_assert_int_ge(service->pid, 0);
    if (service->pid == 0)
        become_service_program(service, arguments, output[1], parent);
    close(output[1]);
    service->output = output[0];
}

void domt_service_read_error(domt_service *service)
{
    ssize_t size = pread(service->errors, service->error, sizeof service->error - 1, 0);

    ck_assert_int_ge(size, 0);
    service->error[size] = '\0';
}

static void read_stdout_of_service(domt_service *service)
{
    size_t length = strlen(service->said);
    ssize_t size = read(service->output, service->said + length, sizeof service->said - 1 - length);

    if (size > 0)
        service->said[length + (size_t)size] = '\0';
}

/* Returns how many lines a service prints when all its listeners are up: one for each listener
 * whose address is among the arguments, and at least one. */
static uint32_t count_listeners(const char *const arguments[])
{
    uint32_t count = 0;

    for (; *arguments != NULL; arguments++)
        count += strncmp(*arguments, "listeners.", 10) == 0 && strstr(*arguments, ".address=");
    return count > 0 ? count : 1;
}

static uint32_t count_listening_lines(const char *text)
{
    uint32_t count = 0;

    for (; (text = strchr(text, '\n')) != NULL; text++)
        count++;
    return count;
}

void domt_service_start(domt_service *service, const char *const arguments[])
{
    uint32_t listeners = count_listeners(arguments);
    uint64_t until_ns = domt_monotonic_ns() + START_MS * UINT64_C(1000000);
    struct pollfd waiting = {.events = POLLIN};

    domt_service_spawn(service, arguments);
    waiting.fd = service->output;
    while (count_listening_lines(service->said) < listeners) {
        domt_service_read_error(service);
        ck_assert_msg(domt_monotonic_ns() < until_ns, "it does not listen: %s", service->error);
        if (poll(&waiting, 1, 100) <= 0)
            continue;
        read_stdout_of_service(service);
        domt_service_read_error(service);
        ck_assert_msg(service->said[0] != '\0', "it ended: %s", service->error);
    }
    const char *colon = strchr(service->said, ':');
    ck_assert_msg(strncmp(service->said, "listening ", 10) == 0 && colon != NULL, "it said: %s",
                  service->said);
    service->port = (uint16_t)strtoul(colon + 1, NULL, 10);
    ck_assert_uint_ne(service->port, 0);
}

void domt_service_signal(const domt_service *service, int number)
{
    ck_assert_int_gt(service->pid, 0);
    ck_assert_int_eq(kill(service->pid, number), 0);
}

int domt_service_wait(domt_service *service, uint32_t ms)
{
    uint64_t until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);
    pid_t ended = 0;

    ck_assert_int_gt(service->pid, 0);
    while ((ended = waitpid(service->pid, &service->status, WNOHANG)) == 0 &&
           domt_monotonic_ns() < until_ns)
        domt_sleep_ms(2);
    if (ended == 0) {
        (void)kill(service->pid, SIGKILL);
        (void)waitpid(service->pid, &service->status, 0);
    }
    read_stdout_of_service(service);
    domt_service_read_error(service);
    close(service->output);
    close(service->errors);
    service->pid = -1;
    ck_assert_msg(ended != 0, "it had not ended after %u ms: %s", ms, service->error);
    return WIFEXITED(service->status) ? WEXITSTATUS(service->status)
                                      : 128 + WTERMSIG(service->status);
}

void domt_service_stop(domt_service *service)
{
    domt_service_signal(service, SIGTERM);
    int status = domt_service_wait(service, STOP_MS);
    ck_assert_msg(status == 0, "it ended with %d: %s", status, service->error);
    domt_service_check_profile(service);
}

/* Returns the last line of the profile that begins with `row` and a blank; NULL when there is none.
 * Some rows of times (in ms) and of counts have the same name, so `times` says which is meant. */
static const char *last_row_of_profile(const domt_service *service, const char *row, bool times,
                                       size_t *ret_length)
{
    const char *found = NULL;
    size_t length = strlen(row);

    for (const char *line = service->error; *line != '\0';) {
        size_t line_length = strcspn(line, "\n");
        bool is_time = memmem(line, line_length, " ms ", 4) != NULL;
        if (strncmp(line, row, length) == 0 && line[length] == ' ' && is_time == times) {
            found = line;
            *ret_length = line_length;
        }
        line += line_length + (line[line_length] == '\n');
    }
    return found;
}

/* Check that the library's source defines a row of this name, so that the profile can show it, and
 * that the service has written a profile. */
static void check_row_is_known(const domt_service *service, const char *row)
{
    static char source[65536];
    char quoted[64];

    if (source[0] == '\0') {
        FILE *file = fopen(DOMT_SOURCE_DIR "/runtime/control/profile_table.c", "re");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_lt(fread(source, 1, sizeof source, file), sizeof source);
        fclose(file);
    }
    snprintf(quoted, sizeof quoted, "\"%s\"", row);
    ck_assert_msg(strstr(source, quoted) != NULL, "there are no rows '%s'", row);
    ck_assert_msg(strstr(service->error, "thread (") != NULL, "no table in: %s", service->error);
}

uint64_t domt_service_count_in_profile(const domt_service *service, const char *row)
{
    size_t length = 0;
    const char *line = last_row_of_profile(service, row, false, &length);

    check_row_is_known(service, row);
    if (line == NULL)
        return 0; /* the profile leaves out rows of zeros */
    const char *number = line + length;
    /* if the last number ends in "/s" it is a rate, and the sum stands before it */
    if (memcmp(number - 2, "/s", 2) == 0) {
        while (number[-1] != ' ')
            number--;
        while (number[-1] == ' ')
            number--;
    }
    while (number[-1] != ' ')
        number--;
    return strtoull(number, NULL, 10);
}

/* The head of the profile names each thread by its number, and then, if there are several,
 * "all". */
uint32_t domt_service_profile_threads(const domt_service *service)
{
    const char *head = strstr(service->error, "\nthread (");
    uint32_t threads = 0;

    ck_assert_msg(head != NULL, "no table in: %s", service->error);
    head = strchr(head, ')') + 1;
    for (const char *end = head + strcspn(head, "\n"); head != end;) {
        head += strspn(head, " ");
        threads += *head >= '0' && *head <= '9';
        head += strcspn(head, " \n");
    }
    return threads;
}

/* Returns the milliseconds of all threads together in a row of the profile: the last number before
 * the last "ms". */
static double ms_of_profile_row(const domt_service *service, const char *row)
{
    size_t length = 0;
    const char *line = last_row_of_profile(service, row, true, &length);

    ck_assert_msg(line != NULL, "no row '%s' in: %s", row, service->error);
    const char *unit = line + length;
    while (strncmp(unit, " ms", 3) != 0)
        unit--;
    const char *number = unit;
    while (number[-1] != ' ')
        number--;
    return strtod(number, NULL);
}

/* Read from the profile the time that all phases have taken together, and the time that has passed
 * (the row "wall"). */
static void sum_phases_of_profile(const domt_service *service, double *ret_sum_ms,
                                  double *ret_wall_ms)
{
    static const char *const phases[] = {"submit", "sleep", "completions", "channels",
                                         "events", "state", "other"};

    *ret_sum_ms = 0;
    *ret_wall_ms = ms_of_profile_row(service, "wall");
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        *ret_sum_ms += ms_of_profile_row(service, phases[i]);
}

bool domt_service_phases_fill_wall_time(const domt_service *service)
{
    double sum_ms, wall_ms;

    sum_phases_of_profile(service, &sum_ms, &wall_ms);
    double off_ms = sum_ms > wall_ms ? sum_ms - wall_ms : wall_ms - sum_ms;
    /* the sum of the phases has eight numbers, each rounded to a tenth of a millisecond */
    return off_ms <= wall_ms / 100 + 0.4;
}

void domt_service_check_profile(const domt_service *service)
{
    double sum_ms, wall_ms;

    sum_phases_of_profile(service, &sum_ms, &wall_ms);
    ck_assert_msg(domt_service_phases_fill_wall_time(service), "phases sum to %.1f ms of %.1f",
                  sum_ms, wall_ms);
    ck_assert_msg(domt_service_count_in_profile(service, "woke by cap with work") == 0,
                  "woke by the cap and found work: %s", service->error);
}

uint64_t domt_service_cpu_ns(const domt_service *service)
{
    struct timespec used;
    clockid_t clock;

    ck_assert_int_eq(clock_getcpuclockid(service->pid, &clock), 0);
    ck_assert_int_eq(clock_gettime(clock, &used), 0);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

uint64_t domt_service_rss_bytes(const domt_service *service)
{
    return domt_resident_bytes(service->pid);
}
