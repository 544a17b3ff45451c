/* Reads the configuration again, and makes it hold as a whole, or changes nothing
 * (main_parts.h). */
#include "config/main_parts.h"

#include "config/descriptors.h"

#include <string.h>

#define ERROR_SIZE 512

/* Log a fault of an argument, as domi_options_faults.report. */
static void log_fault_of_argument(void *sink, const char *argument, const char *what)
{
    domi_sink_add_line(sink, "%s: %s", argument, what);
}

/* Write the errors of a reader of the configuration to the log, as whole lines. */
static void log_errors_of_reader(const domus_yaml *yaml, domi_sink *sink)
{
    const char *errors = domus_yaml_errors(yaml);
    char *text = errors[0] != '\0' ? strdup(errors) : NULL;

    if (text != NULL)
        domi_sink_add_text(sink, text);
}

/* Read the whole configuration again. Returns the new reader, which the caller frees; NULL if
 * something is wrong, and then the errors are in the log. */
static domus_yaml *read_configuration_again(const struct domi_arguments *arguments, domi_sink *sink)
{
    const struct domi_options_faults faults = {.report = log_fault_of_argument, .context = sink};
    const domus_section *section = arguments->program->section;
    domus_yaml *yaml = NULL;
    int result =
        section != NULL ? domus_yaml_new_with(section, NULL, 0, &yaml) : domus_yaml_new(&yaml);

    if (result != 0) {
        domi_sink_add_line(sink, "SIGHUP: %s: nothing is changed", strerror(-result));
        return NULL;
    }
    if (domi_options_read_configuration(arguments, true, yaml, &faults))
        return yaml;
    log_errors_of_reader(yaml, sink);
    domi_sink_add_line(sink, "SIGHUP: the configuration is wrong: nothing is changed");
    domus_yaml_free(yaml);
    return NULL;
}

/* True if the program's own section has other values than it was started with. */
static bool has_section_changed_since_start(const domus_program *program, const domus_yaml *yaml)
{
    return program->section != NULL && program->settings != NULL &&
           memcmp(program->settings, domus_yaml_section(yaml), program->section->size) != 0;
}

/* Returns whether every key that has changed may change while the program runs; else a line of the
 * log says which may not. */
static bool may_all_changes_be_applied(const domus_program *program, domus_system *system,
                                       const domus_yaml *yaml, const domus_config *config,
                                       domi_sink *sink)
{
    char error[ERROR_SIZE] = "";

    if (domus_system_check_change(system, config, error, sizeof error) < 0) {
        domi_sink_add_line(sink, "SIGHUP: %s: nothing is changed", error);
        return false;
    }
    if (program->reload == NULL && has_section_changed_since_start(program, yaml)) {
        domi_sink_add_line(sink, "SIGHUP: these keys count at a start: %s: nothing is changed",
                           program->section->name);
        return false;
    }
    return true;
}

/* Give the program its new section, and the system its new keys. The program comes first, because
 * it may refuse; the system was asked before. Returns whether both have taken them; if not, the log
 * says why. */
static bool apply_new_configuration(const domus_program *program, domus_system *system,
                                    const domus_yaml *yaml, const domus_config *config,
                                    domi_sink *sink)
{
    char error[ERROR_SIZE] = "";
    int result = program->reload != NULL
                     ? program->reload(system, domus_yaml_section(yaml), program->argument)
                     : 0;

    if (result < 0) {
        domi_sink_add_line(sink, "SIGHUP: the program refuses the configuration: %s",
                           strerror(-result));
        return false;
    }
    if (domus_system_change(system, config, error, sizeof error) < 0) {
        domi_sink_add_line(sink, "SIGHUP: %s: no key of domus is changed", error);
        return false;
    }
    return true;
}

bool domi_reload_config(const struct domi_arguments *arguments, domus_system *system,
                        const domus_yaml *start, domi_sink *sink)
{
    const domus_program *program = arguments->program;
    char warning[ERROR_SIZE];

    domi_fronts_read_files_again(system);
    domus_yaml *yaml = read_configuration_again(arguments, sink);
    if (yaml == NULL)
        return false;
    domus_config config = *domus_yaml_config(yaml);
    domi_descriptors_lower_connections_max(&config, warning, sizeof warning);
    bool is_taken = may_all_changes_be_applied(program, system, yaml, &config, sink) &&
                    apply_new_configuration(program, system, yaml, &config, sink);
    if (is_taken) {
        if (warning[0] != '\0')
            domi_sink_add_line(sink, "warning: %s", warning);
        domi_main_observe_show_config(program, system, start, yaml);
        domi_sink_add_line(sink, "SIGHUP: the configuration was read again");
    }
    domus_yaml_free(yaml);
    return is_taken;
}
