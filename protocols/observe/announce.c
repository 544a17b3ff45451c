/* Writes the file by which the registry of running programs knows this process; announce.h
 * describes its form. */
#include "protocols/observe/announce.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* bytes of the registry's file of a process, at most: a path whose bytes are all escaped, and the
 * other lines */
#define TEXT_MAX     (3 * PATH_MAX + 512)
#define ENDPOINT_MAX (PATH_MAX + 64)
/* bytes of the name of that file: a pid in digits, with a dot before it while the file is
 * temporary */
#define NAME_MAX_ 24

/* The file of this process in the registry. Only domi_announce_port_in_registry() and
 * domi_remove_port_from_registry() use it. */
static struct {
    pid_t pid; /* pid of the process that wrote the file; 0: no file was written */
    struct stat file;
    char name[NAME_MAX_];
    char path[PATH_MAX + NAME_MAX_];
} announced;

/* --- the text of the file --------------------------------------------------------------------- */

/* Write the port's endpoint in a form that a process in another directory can use. Returns whether
 * it fits. */
static bool write_endpoint(const domus_endpoint *at, uint16_t port, char *text, size_t size)
{
    char path[sizeof at->bytes + 1], whole[PATH_MAX];
    domus_endpoint to = *at;

    if (at->family == AF_UNIX && at->bytes[0] == '\0')
        return snprintf(text, size, "unix:@%.*s", (int)at->size - 1, (const char *)at->bytes + 1) <
               (int)size;
    if (at->family == AF_UNIX) {
        memcpy(path, at->bytes, at->size);
        path[at->size] = '\0';
        return realpath(path, whole) != NULL && snprintf(text, size, "unix:%s", whole) < (int)size;
    }
    /* A port that listens on all addresses is reached by the loopback address. */
    if (memcmp(to.bytes, (const unsigned char[16]){0}, to.size) == 0) {
        to.bytes[0] = to.family == AF_INET ? 127 : 0;
        to.bytes[to.size - 1] = 1;
    }
    to.port = port;
    return domus_endpoint_text(&to, text, size) < size;
}

static void write_line_of_registry_file(FILE *out, const char *word, const char *text)
{
    (void)fprintf(out, "%s ", word);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p < ' ' || *p > '~' || *p == '%')
            (void)fprintf(out, "%%%02X", *p);
        else
            (void)fputc(*p, out);
    }
    (void)fputc('\n', out);
}

/* Read from /proc/self/stat the time at which this process began. The program's name in that text
 * may contain anything, so fields are counted behind its last parenthesis. Returns whether the time
 * is known. */
static bool read_start_time_of_process(uint64_t *ret_start)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0)
        (void)close(fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL)
        return false;
    *ret_start = strtoull(at + 1, NULL, 10);
    return true;
}

/* --- the directory of the registry ------------------------------------------------------------ */

/* Open a directory for the registry that only this user may use, and make it if it does not exist.
 * Returns its descriptor; -1. */
static int make_and_open_private_directory(const char *path)
{
    struct stat found;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &found) == 0 && found.st_uid == geteuid() &&
        (found.st_mode & 077) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Open the first directory that the registry can use. Returns its descriptor and its path; -1. */
static int open_directory_of_registry(char *path, size_t size)
{
    const char *named = secure_getenv("DOMUS_REGISTRY");
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    int fd = -1;

    if (named != NULL && named[0] != '\0')
        return snprintf(path, size, "%s", named) < (int)size ? make_and_open_private_directory(path)
                                                             : -1;
    if (runtime != NULL && runtime[0] == '/' &&
        snprintf(path, size, "%s/domus", runtime) < (int)size)
        fd = make_and_open_private_directory(path);
    if (fd < 0 && geteuid() == 0) {
        snprintf(path, size, "/run/domus");
        fd = make_and_open_private_directory(path);
    }
    if (fd < 0) {
        snprintf(path, size, "/tmp/domus-%ld", (long)geteuid());
        fd = make_and_open_private_directory(path);
    }
    return fd;
}

/* --- the file --------------------------------------------------------------------------------- */

/* Write this process's file of the registry under a temporary name, and then rename it, so that
 * nobody reads an incomplete file. Returns whether it was written. */
static bool write_registry_file(int directory, const char *text, size_t size)
{
    char other[NAME_MAX_ + 1];

    snprintf(other, sizeof other, ".%s", announced.name);
    /* remove a temporary file that was left by a process with the same pid */
    (void)unlinkat(directory, other, 0);
    int fd = openat(directory, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool is_whole = write(fd, text, size) == (ssize_t)size && fstat(fd, &announced.file) == 0;
    (void)close(fd);
    if (is_whole && renameat(directory, other, directory, announced.name) == 0)
        return true;
    (void)unlinkat(directory, other, 0);
    return false;
}

void domi_announce_port_in_registry(const domus_endpoint *at, uint16_t port)
{
    char text[TEXT_MAX], endpoint[ENDPOINT_MAX];
    uint64_t start;

    if (announced.pid != 0 || !read_start_time_of_process(&start) ||
        !write_endpoint(at, port, endpoint, sizeof endpoint))
        return;
    FILE *out = fmemopen(text, sizeof text, "w");
    if (out == NULL)
        return;
    (void)fprintf(out, "domus-observe 1\npid %ld\nstart %" PRIu64 "\n", (long)getpid(), start);
    write_line_of_registry_file(out, "program", program_invocation_short_name);
    write_line_of_registry_file(out, "endpoint", endpoint);
    long size = ftell(out);
    if (fclose(out) != 0 || size <= 0)
        return;
    char path[PATH_MAX];
    int directory = open_directory_of_registry(path, sizeof path);
    if (directory < 0)
        return;
    snprintf(announced.name, sizeof announced.name, "%ld", (long)getpid());
    snprintf(announced.path, sizeof announced.path, "%s/%s", path, announced.name);
    if (write_registry_file(directory, text, (size_t)size))
        announced.pid = getpid();
    (void)close(directory);
}

void domi_remove_port_from_registry(void)
{
    struct stat now;

    if (announced.pid == getpid() && lstat(announced.path, &now) == 0 &&
        now.st_dev == announced.file.st_dev && now.st_ino == announced.file.st_ino)
        (void)unlink(announced.path);
    announced.pid = 0;
}
