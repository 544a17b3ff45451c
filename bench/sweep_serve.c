/* This file executes the service of a row (sweep_serve.h). Its configuration and its key are files
 * in memory that it inherits, so no file is left behind, and it can be started from any
 * directory. */
#include "bench/sweep_serve.h"

#include "bench/support/command.h"
#include "bench/sweep_load.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OPTIONS_MAX 64u
#define FILE_PATH   32u

/* Make a file in memory that the program inherits, and write its path. */
static int make_file_in_memory(const char *bytes, size_t size, char *path)
{
    int fd = memfd_create("sweep", 0);

    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, bytes, size);
    if (written != (ssize_t)size)
        return written < 0 ? -errno : -EIO;
    snprintf(path, FILE_PATH, "/proc/self/fd/%d", fd);
    return 0;
}

static int make_configuration_of_row(const struct sweep_row *row, uint16_t port, char *path)
{
    char text[1024];
    int size = snprintf(text, sizeof text,
                        "listeners: [{name: %s, address: '127.0.0.1:%u'}]\n"
                        "profile: {atExit: false}\n%s",
                        row->listener, port, row->settings);

    return size < (int)sizeof text ? make_file_in_memory(text, (size_t)size, path) : -ENAMETOOLONG;
}

static int make_key_of_secure_row(const char *key, size_t size)
{
    char path[FILE_PATH];
    int error = make_file_in_memory(key, size, path);

    if (error != 0)
        return error;
    return setenv("WEB_KEY", path, 1) == 0 ? 0 : -errno;
}

int sweep_execute_service_of_row(const struct sweep_row *row, uint16_t port, char *const options[],
                                 const char *key, size_t key_size)
{
    char program[PATH_MAX], configuration[FILE_PATH];
    char *arguments[OPTIONS_MAX + 4] = {program, (char[]){"--config"}, configuration};
    size_t count = 3;

    for (; *options != NULL; options++) {
        if (count == OPTIONS_MAX + 3)
            return -E2BIG;
        arguments[count++] = *options;
    }
    int error = command_find_program_beside(row->program, program);
    if (error == 0)
        error = make_configuration_of_row(row, port, configuration);
    if (error == 0 && row->is_secure)
        error = make_key_of_secure_row(key, key_size);
    if (error == 0)
        error = sweep_load_move_to_cpus(true, row->cpus > 1);
    if (error != 0)
        return error;
    execv(program, arguments);
    return -errno;
}
