/* Does one run of a candidate: starts the service, runs the load, ends both (trial.h). */
#include "tools/domus/tune/trial.h"

#include "tools/domus/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define STEP_MS 5
/* ms without output after the line `listening` of the service; then its other listeners have begun,
 * too */
#define QUIET_MS 20
/* most quiet times that are waited, for a service that never stops printing */
#define QUIET_MAX 10
#define PROBE_MS  2000 /* ms that one call of the user's readiness command may take */

static bool fail_trial_with_reason(tune_trial *trial, tune_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Record why the run of a candidate has failed. Returns false. */
static bool fail_trial_with_reason(tune_trial *trial, tune_result result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(trial->why, sizeof trial->why, format, arguments);
    va_end(arguments);
    trial->result = say_get_noted_signal() != 0 ? TUNE_STOPPED : result;
    return false;
}

/* Write how a process has ended: "status 2" or "signal 11". */
static const char *write_exit_status(int status, char *ret_text, size_t size)
{
    if (WIFEXITED(status))
        snprintf(ret_text, size, "status %d", WEXITSTATUS(status));
    else
        snprintf(ret_text, size, "signal %d", WTERMSIG(status));
    return ret_text;
}

/* --- the service's start ---------------------------------------------------------------------- */

static bool fail_trial_as_service_has_ended(tune_trial *trial, tune_result result, const char *when)
{
    int status = trial->service.status;
    char shown[32];

    trial->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return fail_trial_with_reason(trial, result, "the service has ended %s (%s)", when,
                                  write_exit_status(status, shown, sizeof shown));
}

/* Returns whether a complete line of the service's output begins with the word. */
static bool has_output_line_that_begins_with(const tune_stream *stream, const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; i + length < stream->size; i++) {
        if ((i == 0 || stream->text[i - 1] == '\n') && strncmp(stream->text + i, word, length) == 0)
            return memchr(stream->text + i, '\n', stream->size - i) != NULL;
    }
    return false;
}

/* Returns whether the service has printed that it listens. If so, this first waits until the
 * service prints nothing more for a moment, or for a bounded number of such moments. */
static bool is_service_listening_after_quiet_moment(tune_trial *trial)
{
    if (!has_output_line_that_begins_with(&trial->service.out, "listening "))
        return false;
    for (int i = 0; i < QUIET_MAX; i++) {
        size_t before = trial->service.out.size;
        tune_process_wait_and_read_outputs(&trial->service, NULL, QUIET_MS);
        if (trial->service.out.size == before)
            break;
    }
    return true;
}

/* Returns whether the user's readiness command reports that the service is ready. */
static bool does_readiness_command_report_success(const tune_setup *setup, tune_trial *trial)
{
    tune_process *probe = &trial->load;
    int64_t end = tune_now_ms() + PROBE_MS;

    if (tune_process_start_command_with_pipes(probe, setup->ready, NULL) != 0)
        return false;
    while (!tune_process_has_command_ended(probe) && tune_now_ms() < end &&
           say_get_noted_signal() == 0)
        tune_process_wait_and_read_outputs(probe, &trial->service, STEP_MS);
    bool is_ready = probe->has_ended && WIFEXITED(probe->status) && WEXITSTATUS(probe->status) == 0;
    (void)tune_process_terminate_or_kill_group(probe, 0);
    return is_ready;
}

static bool wait_until_service_is_ready(const tune_setup *setup, tune_trial *trial)
{
    int64_t end = tune_now_ms() + setup->start_ms;

    for (;;) {
        bool is_ready = setup->ready != NULL ? does_readiness_command_report_success(setup, trial)
                                             : is_service_listening_after_quiet_moment(trial);
        if (tune_process_has_command_ended(&trial->service))
            return fail_trial_as_service_has_ended(trial, TUNE_REFUSED, "before it was ready");
        if (is_ready)
            return true;
        if (say_get_noted_signal() != 0)
            return fail_trial_with_reason(trial, TUNE_STOPPED, "it was stopped");
        if (tune_now_ms() >= end)
            return fail_trial_with_reason(
                trial, TUNE_FAILED,
                setup->ready != NULL
                    ? "the command of --ready did not succeed within %ld ms"
                    : "the service printed no line 'listening ...' within %ld ms (--ready "
                      "names another sign)",
                setup->start_ms);
        tune_process_wait_and_read_outputs(&trial->service, NULL, STEP_MS);
    }
}

/* --- the load --------------------------------------------------------------------------------- */

static bool wait_for_load_to_end(const tune_setup *setup, tune_trial *trial)
{
    int64_t end = tune_now_ms() + setup->load_ms;
    char shown[32];

    while (!tune_process_has_command_ended(&trial->load)) {
        if (tune_process_has_command_ended(&trial->service))
            return fail_trial_as_service_has_ended(trial, TUNE_FAILED, "while the load ran");
        if (say_get_noted_signal() != 0)
            return fail_trial_with_reason(trial, TUNE_STOPPED, "it was stopped");
        if (tune_now_ms() >= end)
            return fail_trial_with_reason(trial, TUNE_FAILED,
                                          "the load has not ended within %ld ms (--limit)",
                                          setup->load_ms);
        tune_process_wait_and_read_outputs(&trial->load, &trial->service, STEP_MS);
    }
    int status = trial->load.status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return fail_trial_with_reason(trial, TUNE_FAILED, "the load has failed (%s)",
                                  write_exit_status(status, shown, sizeof shown));
}

/* Returns how many requests the load has made; 0 if that is unknown. */
static double count_requests_of_load(const tune_figures *figures, double seconds)
{
    const tune_figure *count = tune_figures_find_by_name(figures, "count");
    const tune_figure *rate = tune_figures_find_by_name(figures, "rate");
    const tune_figure *time = tune_figures_find_by_name(figures, "seconds");

    if (count != NULL)
        return count->value;
    return rate != NULL ? rate->value * (time != NULL ? time->value : seconds) : 0;
}

static bool read_figures_of_load(tune_trial *trial, double seconds)
{
    if (!tune_figures_read_output(trial->load.out.text, trial->load.out.size, &trial->figures))
        return fail_trial_with_reason(trial, TUNE_FAILED, "the load: %s", trial->figures.error);
    if (trial->figures.count == 0)
        return fail_trial_with_reason(trial, TUNE_FAILED,
                                      "the load has printed no figures (domus tune --help)");
    const tune_figure *errors = tune_figures_find_by_name(&trial->figures, "errors");
    if (errors != NULL && errors->value > 0)
        return fail_trial_with_reason(trial, TUNE_FAILED, "the load had errors: %.0f",
                                      errors->value);
    if (tune_figures_find_by_name(&trial->figures, "cpu") != NULL)
        return fail_trial_with_reason(
            trial, TUNE_FAILED,
            "the load has printed a figure cpu, which is measured of the service: give it "
            "another name");
    double count = count_requests_of_load(&trial->figures, seconds);
    (void)tune_figures_set_figure(&trial->figures, "cpu", trial->cpu / (count > 0 ? count : 1));
    return true;
}

static bool run_load_and_measure_cpu_of_service(const tune_setup *setup, tune_trial *trial)
{
    tune_cpu before, after;
    int64_t begin = tune_now_ms();

    tune_process_read_cpu_times_of_group(&trial->service, &before);
    int error = tune_process_start_command_with_pipes(&trial->load, setup->load, NULL);
    if (error != 0)
        return fail_trial_with_reason(trial, TUNE_FAILED, "the load does not begin: %s",
                                      strerror(-error));
    bool has_ended = wait_for_load_to_end(setup, trial);
    double seconds = (double)(tune_now_ms() - begin) / 1e3;
    if (has_ended) {
        tune_process_read_cpu_times_of_group(&trial->service, &after);
        trial->cpu = tune_cpu_time_of_group_between_looks(&before, &after);
    }
    (void)tune_process_terminate_or_kill_group(&trial->load, 0);
    return has_ended && read_figures_of_load(trial, seconds);
}

void tune_trial_run_service_with_load(const tune_setup *setup, char *const *words,
                                      tune_trial *ret_trial)
{
    tune_trial *trial = ret_trial;
    int64_t begin = tune_now_ms();

    trial->result = TUNE_RAN;
    trial->why[0] = '\0';
    trial->status = 0;
    trial->cpu = 0;
    trial->figures.count = 0;
    trial->load.out.size = trial->load.err.size = 0;
    int error = tune_process_start_command_with_pipes(&trial->service, setup->service, words);
    if (error != 0)
        (void)fail_trial_with_reason(trial, TUNE_FAILED, "the service does not begin: %s",
                                     strerror(-error));
    else if (wait_until_service_is_ready(setup, trial) &&
             run_load_and_measure_cpu_of_service(setup, trial) &&
             tune_process_has_command_ended(&trial->service))
        (void)fail_trial_as_service_has_ended(trial, TUNE_FAILED, "while the load ran");
    if (!tune_process_terminate_or_kill_group(&trial->service, setup->stop_ms) &&
        trial->result == TUNE_RAN)
        (void)fail_trial_with_reason(trial, TUNE_FAILED,
                                     "the service has not ended within %ld ms of SIGTERM",
                                     setup->stop_ms);
    tune_terminate_or_kill_adopted_processes(setup->stop_ms);
    trial->seconds = (double)(tune_now_ms() - begin) / 1e3;
}
