/* The actors of the tests that misuse listeners and channels, and the connections of their
 * peers. */
#include "tests/runtime/misuse.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

domus_system *domt_misuse_system;
domt_misuse domt_misuse_seen;

const domus_type domt_misuse_fail_type = {.name = "fail"};

static int on_fail_return_error(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}

const domus_on domt_misuse_rows[] = {{&domt_misuse_fail_type, on_fail_return_error, 0}, {0}};

void domt_misuse_start_system(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);

    domt_misuse_system = domt_start_system(&config);
}

/* Held around `found`, which actors write again while clients read it. A socket between client and
 * service already orders the two, but ThreadSanitizer does not see that. */
static pthread_mutex_t found_mutex = PTHREAD_MUTEX_INITIALIZER;

domus_endpoint domt_misuse_newest_endpoint(void)
{
    pthread_mutex_lock(&found_mutex);
    domus_endpoint found = domt_misuse_seen.found;
    pthread_mutex_unlock(&found_mutex);
    return found;
}

int domt_misuse_connect(const domus_endpoint *at)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(at->port)};
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    memcpy(&v4.sin_addr, at->bytes, 4);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&v4, sizeof v4) == 0)
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

ssize_t domt_misuse_receive(int fd, void *bytes, size_t size)
{
    ssize_t received;

    do
        received = recv(fd, bytes, size, MSG_WAITALL);
    while (received < 0 && errno == EINTR);
    return received;
}

bool domt_misuse_try_echo(int fd)
{
    char byte = 'x';
    char back = 0;

    return send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && domt_misuse_receive(fd, &back, 1) == 1 &&
           back == byte;
}

int domt_misuse_listen_and_record(domus_stack *stack, const char *text)
{
    domus_endpoint at, found;

    ck_assert_int_eq(domus_endpoint_parse(text, &at), 0);
    int now = domus_listen(stack, &at, NULL, NULL, &found);
    if (now == 0) {
        pthread_mutex_lock(&found_mutex);
        domt_misuse_seen.found = found;
        pthread_mutex_unlock(&found_mutex);
    }
    atomic_store(&domt_misuse_seen.result, now);
    atomic_fetch_add(&domt_misuse_seen.listening, 1);
    return now;
}

int domt_misuse_on_read_echo(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

int domt_misuse_on_open_count(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domt_misuse_seen.last_channel = domus_channel_address(event->channel);
    atomic_fetch_add(&domt_misuse_seen.opened, 1);
    return 0;
}

int domt_misuse_on_close_count(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    atomic_store(&domt_misuse_seen.last_error, event->error);
    atomic_fetch_add(&domt_misuse_seen.closed, 1);
    return 0;
}

int domt_misuse_on_mount_listen(domus_stack *stack, void *self)
{
    return domt_misuse_listen_and_record(stack, "127.0.0.1:0");
}
