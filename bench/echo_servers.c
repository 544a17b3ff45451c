/* How each echo server is named, found and started (echo_servers.h). */
#include "bench/echo_servers.h"

#include "bench/support/command.h"

#include <stdio.h>
#include <string.h>

#define BUFFER_SIZE 4096u

#define TEXT_OF(number) #number
#define TEXT(macro)     TEXT_OF(macro)
#define SERVER_CPU_TEXT TEXT(ECHO_SERVER_CPU)

static const struct {
    const char *name;
    const char *program; /* name of the server's program, which lies beside the running program */
} servers[ECHO_SERVERS] = {
    [ECHO_DOMUS] = {"domus", "echo"},
    [ECHO_DOMUS_EPOLL] = {"domus_epoll", "echo"},
    [ECHO_IO_URING] = {"io_uring", "echo_uring"},
    [ECHO_EPOLL] = {"epoll", "echo_epoll"},
    [ECHO_LIBUV] = {"libuv", "echo_uv"},
};

const char *echo_server_name(int which)
{
    return servers[which].name;
}

int echo_server_index_of_name(const char *name)
{
    for (int i = 0; i < ECHO_SERVERS; i++) {
        if (strcmp(servers[i].name, name) == 0)
            return i;
    }
    return -1;
}

int echo_server_find_program(int which, char *path)
{
    return command_find_program_beside(servers[which].program, path);
}

int echo_server_start(int which, char *program, const struct echo_setting *setting,
                      struct server *server)
{
    uint32_t buffer_size = setting->buffer_size != 0 ? setting->buffer_size : BUFFER_SIZE;
    char buffer_text[64];

    if (which == ECHO_DOMUS || which == ECHO_DOMUS_EPOLL) {
        snprintf(buffer_text, sizeof buffer_text, "io.buffers.size=%uB", buffer_size);
        char *arguments[] = {
            program,
            (char[]){"--set"},
            which == ECHO_DOMUS ? (char[]){"io.backend=uring"} : (char[]){"io.backend=epoll"},
            (char[]){"--set"},
            (char[]){"system.threads=1"},
            (char[]){"--set"},
            (char[]){"profile.atExit=false"},
            (char[]){"--set"},
            (char[]){"system.cpus=" SERVER_CPU_TEXT},
            (char[]){"--set"},
            buffer_text,
            (char[]){"--set"},
            (char[]){"listeners.echo.address=127.0.0.1:0"},
            (char[]){"--config"},
            setting->config,
            NULL,
        };
        return server_start(server, ECHO_SERVER_CPU, arguments);
    }

    /* Port 0 lets the kernel choose a free port, as for domus. */
    snprintf(buffer_text, sizeof buffer_text, "%u", buffer_size);
    char *arguments[] = {program, (char[]){"0"}, (char[]){SERVER_CPU_TEXT},
                         which == ECHO_IO_URING ? buffer_text : NULL, NULL};
    return server_start(server, ECHO_SERVER_CPU, arguments);
}
