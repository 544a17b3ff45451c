/* Keeps the sockets that a supervisor has passed to this process (main_parts.h).
 *
 * Sockets that nobody takes stay open, because the program may know them by their numbers. */
#include "config/main_parts.h"

#include "config/environment.h"

#include <domus/text.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FIRST 3 /* number of the first descriptor that a supervisor passes */
/* bytes of the name of a passed socket with its NUL, enough for a listener's name */
#define NAME_SIZE 64
#define SAYS_SIZE 160

static const char *const variables[] = {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", NULL};

static struct inherited {
    /* name of the passed socket; "": the name is longer than any listener's */
    char name[NAME_SIZE];
    bool is_taken;
} sockets[DOMI_INHERITED_MAX];
static uint32_t count;

/* --- the variables ---------------------------------------------------------------------------- */

/* Give one passed socket the name that stands in `name` up to a colon or the end. Returns the text
 * behind the colon; NULL: there is none. */
static const char *store_name_of_socket(struct inherited *own, const char *name)
{
    size_t length = strcspn(name, ":");

    if (length < sizeof own->name) {
        memcpy(own->name, name, length);
        own->name[length] = '\0';
    }
    return name[length] == ':' ? name + length + 1 : NULL;
}

/* Give each passed socket its name from the variable's text. Without that text all are called
 * "unknown". Returns whether there are as many names as sockets. */
static bool store_names_of_sockets(const char *names)
{
    for (uint32_t i = 0; i < count; i++) {
        sockets[i] = (struct inherited){.name = "unknown"};
        if (names == NULL)
            continue;
        sockets[i].name[0] = '\0';
        names = store_name_of_socket(&sockets[i], names);
        if ((names != NULL) != (i + 1 < count))
            return false;
    }
    return true;
}

/* Keep children of the process from inheriting the passed descriptors. Returns whether all are
 * open. */
static bool set_close_on_exec_of_sockets(void)
{
    for (uint32_t i = 0; i < count; i++) {
        int fd = FIRST + (int)i;
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0)
            return false;
    }
    return true;
}

/* Read the environment variables of passed sockets. Returns a text that says which variable is
 * wrong, and how; NULL: all are right, and `count` says how many sockets there are. */
static const char *read_variables_of_passed_sockets(void)
{
    uint64_t number = 0;
    int is_own = domi_environment_names_this_process("LISTEN_PID");

    count = 0;
    if (is_own == 0 || is_own == -ENOENT)
        /* no sockets were passed to this process; they are for another one, or there are none */
        return NULL;
    if (is_own < 0)
        return "LISTEN_PID: it is no number of a process";
    int result = domi_environment_read_number("LISTEN_FDS", DOMI_INHERITED_MAX, &number);
    if (result == -ENOENT)
        return NULL;
    if (result != 0)
        return "LISTEN_FDS: it is no number of at most 128 descriptors";
    count = (uint32_t)number;
    if (!store_names_of_sockets(getenv("LISTEN_FDNAMES")))
        return "LISTEN_FDNAMES: there are not as many names as descriptors";
    return set_close_on_exec_of_sockets() ? NULL : "LISTEN_FDS: so many descriptors are not open";
}

int domi_inherited_read_variables(char *error, size_t error_size)
{
    const char *wrong = read_variables_of_passed_sockets();

    domi_environment_remove_variables(variables);
    if (wrong == NULL)
        return 0;
    count = 0;
    snprintf(error, error_size, "%s", wrong);
    return -EINVAL;
}

/* --- one socket ------------------------------------------------------------------------------- */

int domi_inherited_find_socket(const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!sockets[i].is_taken && strcmp(sockets[i].name, name) == 0)
            return FIRST + (int)i;
    }
    return 0;
}

void domi_inherited_mark_socket_taken(int fd)
{
    if (fd >= FIRST && fd < FIRST + (int)count)
        sockets[fd - FIRST].is_taken = true;
}

static void copy_path_of_socket(const struct sockaddr_un *at, socklen_t size,
                                domus_endpoint *ret_at)
{
    size_t length = size - offsetof(struct sockaddr_un, sun_path);

    /* the kernel counts a NUL behind the longest path, too, for which there is no room */
    if (length > sizeof at->sun_path)
        length = sizeof at->sun_path;
    if (length != 0 && at->sun_path[0] != '\0')
        length = strnlen(at->sun_path, length);
    ret_at->size = (uint16_t)length;
    memcpy(ret_at->bytes, at->sun_path, length);
}

int domi_inherited_get_endpoint_of_socket(int fd, domus_endpoint *ret_at)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = sizeof at;

    *ret_at = (domus_endpoint){0};
    if (getsockname(fd, &at.any, &size) != 0)
        return -errno;
    ret_at->family = at.any.sa_family;
    if (at.any.sa_family == AF_INET) {
        ret_at->port = ntohs(at.v4.sin_port);
        ret_at->size = sizeof at.v4.sin_addr;
        memcpy(ret_at->bytes, &at.v4.sin_addr, sizeof at.v4.sin_addr);
    } else if (at.any.sa_family == AF_INET6) {
        ret_at->port = ntohs(at.v6.sin6_port);
        ret_at->scope = at.v6.sin6_scope_id;
        ret_at->size = sizeof at.v6.sin6_addr;
        memcpy(ret_at->bytes, &at.v6.sin6_addr, sizeof at.v6.sin6_addr);
    } else if (at.any.sa_family == AF_UNIX) {
        copy_path_of_socket(&at.local, size, ret_at);
    } else {
        return -EAFNOSUPPORT;
    }
    return 0;
}

/* Returns the reason why a listener cannot serve a passed descriptor; NULL: it can. */
static const char *find_fault_of_socket(int fd)
{
    int type = 0, listens = 0;
    socklen_t type_size = sizeof type, listens_size = sizeof listens;
    domus_endpoint at;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0)
        return "is no socket";
    if (type != SOCK_STREAM)
        return "is no stream socket (ListenStream=)";
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) != 0 || listens == 0)
        return "does not listen (Accept=no)";
    return domi_inherited_get_endpoint_of_socket(fd, &at) == 0
               ? NULL
               : "is neither of IPv4, IPv6 nor of Unix";
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool check_inherited_socket(const domus_program *program, const char *name)
{
    int fd = domi_inherited_find_socket(name);
    const char *fault = fd != 0 ? find_fault_of_socket(fd) : NULL;

    if (fault != NULL)
        fprintf(stderr, "%s: listener %s: descriptor %d, which was passed to it, %s\n",
                program->name, name, fd, fault);
    return fault == NULL;
}

bool domi_inherited_check_sockets(const domus_program *program, const domus_config *config)
{
    bool right = true;

    if (config->observe.listen != NULL && config->observe.listen[0] != '\0')
        right = check_inherited_socket(program, "observe");
    for (size_t i = 0; i < config->listener_count; i++)
        right = check_inherited_socket(program, config->listeners[i].name) && right;
    return right;
}

/* Returns the address that the configuration gives to the listener with this name; NULL: there is
 * none. */
static const char *find_address_of_listener(const domus_config *config, const char *name)
{
    for (size_t i = 0; i < config->listener_count; i++) {
        if (strcmp(config->listeners[i].name, name) == 0)
            return config->listeners[i].address;
    }
    return strcmp(name, "observe") == 0 ? config->observe.listen : NULL;
}

static void log_passed_socket(const domus_config *config, uint32_t index, domi_sink *sink)
{
    const struct inherited *own = &sockets[index];
    const char *address = find_address_of_listener(config, own->name);
    char text[DOMUS_ENDPOINT_TEXT_MAX] = "a descriptor";
    domus_endpoint at;

    if (domi_inherited_get_endpoint_of_socket(FIRST + (int)index, &at) == 0)
        (void)domus_endpoint_text(&at, text, sizeof text);
    if (!own->is_taken)
        domi_sink_add_line(sink,
                           "warning: descriptor %u, named '%s' (%s), was passed, and nothing takes "
                           "it: its name has to be that of a listener",
                           FIRST + index, own->name, text);
    else if (address != NULL)
        domi_sink_add_line(sink, "listener %s serves %s, which was passed, and not %s", own->name,
                           text, address);
}

void domi_inherited_log_sockets(const domus_config *config, domi_sink *sink)
{
    for (uint32_t i = 0; i < count; i++)
        log_passed_socket(config, i, sink);
}
