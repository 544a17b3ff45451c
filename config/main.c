/* Implements domus_main() of domus/main.h, which reads options and configuration (main_options.c)
 * and then runs the program (main_run.c). */
#include <domus/main.h>

#include "config/main_options.h"
#include "config/main_parts.h"
#include "config/tell.h"

#include <domus/yaml.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ERROR_SIZE 512

/* Print a fault of an argument, as domi_options_faults.report. */
static void print_fault_of_argument(void *name, const char *argument, const char *what)
{
    domi_options_print_fault(*(const char *const *)name, argument, what);
}

/* Make the reader of a program's configuration, and check the program's tables of options and
 * keys. */
static int make_reader_of_program(const domus_program *program, char *error, size_t error_size,
                                  domus_yaml **ret_yaml)
{
    snprintf(error, error_size, "out of memory");
    if (program->options != NULL &&
        domi_options_check_table(program->options, error, error_size) != 0)
        return -EINVAL;
    if (program->section == NULL)
        return domus_yaml_new(ret_yaml);
    if (program->settings == NULL) {
        snprintf(error, error_size, "section '%s': the program has no settings",
                 program->section->name);
        return -EINVAL;
    }
    return domus_yaml_new_with(program->section, error, error_size, ret_yaml);
}

/* Read which sockets a supervisor has passed to this process. Returns whether the environment
 * variables are right. */
static bool read_passed_sockets(const domus_program *program)
{
    char error[ERROR_SIZE];

    if (domi_inherited_read_variables(error, sizeof error) == 0)
        return true;
    fprintf(stderr, "%s: %s\n", program->name, error);
    return false;
}

/* Read the configuration, and print everything that is wrong with it. Returns whether it is right,
 * so that the program may start. */
static bool read_and_report_configuration(const struct domi_arguments *arguments, domus_yaml *yaml)
{
    const char *name = arguments->program->name;
    const struct domi_options_faults faults = {.report = print_fault_of_argument, .context = &name};
    bool right = domi_options_read_configuration(arguments, false, yaml, &faults);

    fputs(domus_yaml_errors(yaml), stderr);
    return right;
}

/* Open the fronts of listeners, and then check the cluster, which may need one. Returns whether all
 * is right; if not, no front is open. */
static bool open_fronts_and_check_cluster(const domus_program *program, const domus_config *config)
{
    if (!domi_fronts_open(program, config))
        return false;
    if (domi_main_cluster_check_section(program, config))
        return true;
    domi_fronts_close(false);
    return false;
}

/* Read the configuration, and check all that can be checked before anything is started. Returns
 * whether the program may start; if so, its fronts are open. */
static bool read_and_check_all_before_start(const struct domi_arguments *arguments,
                                            domus_yaml *yaml)
{
    return read_and_report_configuration(arguments, yaml) &&
           domi_inherited_check_sockets(arguments->program, domus_yaml_config(yaml)) &&
           domi_main_observe_check_section(arguments->program, domus_yaml_config(yaml)) &&
           open_fronts_and_check_cluster(arguments->program, domus_yaml_config(yaml));
}

/* Answer --tell, without starting anything. Returns the exit status. */
static int answer_tell_option(const struct domi_arguments *arguments, domi_tell what,
                              domus_yaml *yaml)
{
    const domus_program *program = arguments->program;
    bool right = true;

    if (what == DOMI_TELL_KEYS) {
        domi_tell_write_keys(stdout, program);
    } else if (what == DOMI_TELL_CHECK) {
        right = read_and_check_all_before_start(arguments, yaml);
        if (right)
            domi_fronts_close(false);
        domi_tell_write_result(stdout, program, what, right);
    } else {
        right = read_and_report_configuration(arguments, yaml);
        if (right)
            domi_tell_write_values(stdout, program, yaml);
        else
            domi_tell_write_result(stdout, program, what, false);
    }
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        return DOMI_STATUS_FAILED;
    return right ? DOMI_STATUS_OK : DOMI_STATUS_USAGE;
}

int domus_main(int argc, char **argv, const domus_program *program)
{
    const struct domi_arguments arguments = {.program = program, .argc = argc, .argv = argv};
    char error[ERROR_SIZE];
    domus_yaml *yaml = NULL;
    domi_tell what;

    if (make_reader_of_program(program, error, sizeof error, &yaml) != 0) {
        fprintf(stderr, "%s: %s\n", program->name, error);
        return DOMI_STATUS_FAILED;
    }
    int status = domi_options_check_arguments(&arguments, &what);
    if (status < 0 && what != DOMI_TELL_NOTHING)
        status = answer_tell_option(&arguments, what, yaml);
    else if (status < 0 &&
             !(read_passed_sockets(program) && read_and_check_all_before_start(&arguments, yaml)))
        status = DOMI_STATUS_USAGE;
    if (status < 0) {
        if (program->section != NULL)
            memcpy(program->settings, domus_yaml_section(yaml), program->section->size);
        status = domi_main_run_program(&arguments, yaml);
    }
    domus_yaml_free(yaml);
    return status;
}
