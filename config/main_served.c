/* Serves the listeners of a program of domus_main(), by the sockets that were passed to it or by
 * its own (main_parts.h). */
#include "config/main_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LISTENING_MS 1000 /* milliseconds to wait until standard output can be written */

void domi_main_print_listening(const char *name, const char *address, uint16_t port)
{
    bool has_port = strncmp(address, "unix:", 5) != 0;
    const char *colon = strrchr(address, ':');
    struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (poll(&reader, 1, LISTENING_MS) == 0)
        /* print nothing: nobody reads standard output, and a full pipe must not hold up the
         * start */
        return;
    if (has_port)
        printf("listening %s %.*s:%u\n", name, colon != NULL ? (int)(colon - address) : 0, address,
               port);
    else
        printf("listening %s %s\n", name, address);
    fflush(stdout);
}

/* Print at which address a listener listens, as the system knows it. */
static void print_listening_line(const domus_system *system, const char *name)
{
    domus_listener_profile listener;

    for (size_t i = 0; i < domus_system_config(system)->listener_count; i++) {
        (void)domus_system_listener(system, i, &listener);
        if (strcmp(listener.name, name) == 0)
            domi_main_print_listening(name, listener.address, listener.port);
    }
}

int domus_main_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                     const void *state)
{
    const domus_serve_options options = {.front = domi_fronts_find_stages_of_listener(name),
                                         .listening = domi_inherited_find_socket(name)};
    int result = domus_serve_with(system, name, behaviour, state, &options, NULL);

    if (result != 0)
        return result;
    domi_inherited_mark_socket_taken(options.listening);
    print_listening_line(system, name);
    return 0;
}

int domus_main_passed(const char *name)
{
    int fd = domi_inherited_find_socket(name);

    domi_inherited_mark_socket_taken(fd);
    return fd != 0 ? fd : -ENOENT;
}

/* Log the listeners of the configuration that nothing serves. That is mostly a mistake, such as
 * another name in the program, and without a line only refused clients would show it. */
void domi_main_log_unserved_listeners(domus_system *system, const domus_config *given,
                                      domi_sink *sink)
{
    const domus_config *config = domus_system_config(system);

    for (size_t i = 0; i < config->listener_count; i++) {
        if (!domus_listener_is_served(system, config->listeners[i].name))
            domi_sink_add_line(sink,
                               "warning: listener %s is in the configuration, and the program does "
                               "not serve it",
                               config->listeners[i].name);
    }
    domi_inherited_log_sockets(given, sink);
}
