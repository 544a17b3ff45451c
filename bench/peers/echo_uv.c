/* An echo on libuv, as its users write one: a read callback that hands the buffer to uv_write.
 *
 * Buffer and write request are one block, so an answer costs one allocation; libuv itself tries to
 * write at once and only queues what does not fit. */
#include "bench/peers/peer.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <uv.h>

#define BUFFER_SIZE 4096
#define BACKLOG     4096

struct answer {
    uv_write_t request;
    char bytes[BUFFER_SIZE];
};

static struct peer peer;

static void require_success(const char *what, int result)
{
    if (result < 0) {
        errno = -result; /* libuv's codes of errors are negative errnos on Unix */
        peer_print_error_and_exit(what);
    }
}

static void *allocate_memory(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL)
        peer_print_error_and_exit("malloc");
    return memory;
}

static struct answer *find_answer_that_holds_bytes(const char *bytes)
{
    return (struct answer *)(void *)(bytes - offsetof(struct answer, bytes));
}

static void allocate_buffer_for_read(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct answer *answer = allocate_memory(sizeof *answer);

    (void)handle;
    (void)suggested;
    *ret_buffer = uv_buf_init(answer->bytes, BUFFER_SIZE);
}

static void on_answer_written(uv_write_t *request, int status)
{
    (void)status;
    free((struct answer *)(void *)request);
}

static void on_handle_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_bytes_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct answer *answer =
        buffer->base == NULL ? NULL : find_answer_that_holds_bytes(buffer->base);

    if (length > 0) {
        uv_buf_t bytes = uv_buf_init(answer->bytes, (unsigned int)length);

        peer.received++;
        require_success("uv_write",
                        uv_write(&answer->request, stream, &bytes, 1, on_answer_written));
        return;
    }
    free(answer);
    if (length < 0)
        uv_close((uv_handle_t *)stream, on_handle_closed);
}

static void on_new_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *connection = allocate_memory(sizeof *connection);

    require_success("uv_listen", status);
    require_success("uv_tcp_init", uv_tcp_init(listener->loop, connection));
    require_success("uv_accept", uv_accept(listener, (uv_stream_t *)connection));
    require_success("uv_tcp_nodelay", uv_tcp_nodelay(connection, 1));
    require_success("uv_read_start", uv_read_start((uv_stream_t *)connection,
                                                   allocate_buffer_for_read, on_bytes_read));
}

static void on_signal_term(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_signal_t signal;
    uv_tcp_t listener;
    struct sockaddr_in address;
    uv_os_fd_t fd;

    peer_read_arguments_and_pin(&peer, argc, argv);
    require_success("uv_signal_init", uv_signal_init(loop, &signal));
    require_success("uv_signal_start", uv_signal_start(&signal, on_signal_term, SIGTERM));
    require_success("uv_ip4_addr", uv_ip4_addr("127.0.0.1", peer.port, &address));
    require_success("uv_tcp_init", uv_tcp_init(loop, &listener));
    require_success("uv_tcp_bind", uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0));
    require_success("uv_listen", uv_listen((uv_stream_t *)&listener, BACKLOG, on_new_connection));
    require_success("uv_fileno", uv_fileno((const uv_handle_t *)&listener, &fd));
    peer_print_listening_port(&peer, fd);
    uv_run(loop, UV_RUN_DEFAULT);
    peer_print_cpu_time(&peer);
    return 0;
}
