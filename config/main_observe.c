/* Checks, opens and closes the observation port of a program of domus_main() (main_parts.h). */
#include "config/main_parts.h"

#include <domus/text.h>

#include <stdio.h>
#include <string.h>

#define ERROR_SIZE 512

static void *port;           /* state of the observation port; NULL: no port is open */
static uint16_t port_number; /* TCP port of the observation port; 0: it is a Unix socket */

/* endpoint of the socket that was passed for the observation port; "": none was */
static char passed_at[DOMUS_ENDPOINT_TEXT_MAX];

bool domi_main_observe_is_wanted(const domus_config *config)
{
    return config->observe.listen != NULL && config->observe.listen[0] != '\0';
}

/* Hand the socket that a supervisor has passed for the observation port to the observer, if there
 * is one. Returns the socket; 0: there is none. */
static int hand_passed_socket_to_observer(const domus_program *program)
{
    int fd = domi_inherited_find_socket("observe");
    domus_endpoint at;

    passed_at[0] = '\0';
    if (program->observe->adopt == NULL)
        return 0;
    if (fd == 0 || domi_inherited_get_endpoint_of_socket(fd, &at) != 0) {
        /* take back a socket that an earlier domus_main() of this process may have handed over
         * before it failed */
        program->observe->adopt(0, &(domus_endpoint){0});
        return 0;
    }
    (void)domus_endpoint_text(&at, passed_at, sizeof passed_at);
    program->observe->adopt(fd, &at);
    return fd;
}

bool domi_main_observe_check_section(const domus_program *program, const domus_config *config)
{
    char error[ERROR_SIZE] = "observe.listen: it is refused", shown[2 * ERROR_SIZE];

    if (!domi_main_observe_is_wanted(config))
        return true;
    if (program->observe == NULL)
        snprintf(error, sizeof error, "observe.listen: this program has no observation port");
    else if (hand_passed_socket_to_observer(program) >= 0 &&
             program->observe->check(config, error, sizeof error) == 0)
        return true;
    (void)domus_text_escape(error, strlen(error), shown, sizeof shown);
    fprintf(stderr, "%s: %s\n", program->name, shown);
    return false;
}

int domi_main_observe_open_port(const domus_program *program, domus_system *system,
                                const domus_log_source *log, char *error, size_t error_size)
{
    if (!domi_main_observe_is_wanted(domus_system_config(system)))
        return 0;
    snprintf(error, error_size, "observe.listen: it is refused");
    int passed = hand_passed_socket_to_observer(program);
    int result = program->observe->open(system, error, error_size, &port, &port_number);
    if (result != 0)
        return result;
    error[0] = '\0';
    domi_inherited_mark_socket_taken(passed);
    if (program->observe->set_log != NULL && log->read != NULL)
        program->observe->set_log(port, log);
    return 0;
}

void domi_main_observe_show_config(const domus_program *program, domus_system *system,
                                   const domus_yaml *start, const domus_yaml *newest)
{
    if (port == NULL || program->observe->set_config == NULL)
        return;
    const domi_origins first = domi_yaml_get_origins(start), last = domi_yaml_get_origins(newest);
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
    domus_config config;
    domus_system_config_now(system, &config);
    for (size_t i = 0; i < config.listener_count; i++) {
        listeners[i] = config.listeners[i];
        (void)domus_system_channel_options(system, i, &listeners[i].channel);
    }
    config.listeners = listeners;
    const domi_effective effective = {.config = &config, .newest = &last, .first = &first};
    (void)program->observe->set_config(port, domi_origins_show_configuration, &effective);
}

bool domi_main_observe_set_program_ready(const domus_program *program, uint16_t *ret_port)
{
    if (port == NULL)
        return false;
    program->observe->set_ready(port, true);
    *ret_port = port_number;
    return true;
}

const char *domi_main_observe_get_address_of_port(const domus_config *config)
{
    return passed_at[0] != '\0' ? passed_at : config->observe.listen;
}

void domi_main_observe_set_program_not_ready(const domus_program *program)
{
    if (port != NULL)
        program->observe->set_ready(port, false);
}

void domi_main_observe_close_port(const domus_program *program)
{
    if (port != NULL)
        program->observe->close(port);
    port = NULL;
}
