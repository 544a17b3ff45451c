/* This file runs the attacker over epoll (tls_attack.h). All connections send the bytes of the same
 * ClientHello: a server does not remember them, and so the attack needs little CPU itself. */
#include "bench/tls_attack.h"

#include "bench/support/measure.h"
#include "bench/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELLO_MAX  4096
#define EVENTS_MAX 64
#define TICK_MS    5  /* ms between two times at which due connections are opened, at most */
#define HANDSHAKE  22 /* type of the TLS records that contain messages of the handshake */

enum kind { SILENT, HALF, WHOLE, KINDS };

struct connection {
    int fd;
    bool answered;
};

/* The state of an attack, shared by both processes. The attacker writes the counters, and its
 * starter reads them. Each counter stands for itself and guards no other data, so relaxed accesses
 * are enough. */
struct tls_attack {
    pid_t process;
    int epoll;
    uint16_t port;
    uint32_t size, opened;
    double rate; /* number of connections that the attacker opens in a second */
    char hello[HELLO_MAX];
    size_t hello_size;
    atomic_int error;
    atomic_uint held, answered;
    atomic_ullong replaced;
    struct connection connections[];
};

/* --- one connection --------------------------------------------------------------------------- */

static int open_connection(struct tls_attack *attack, uint32_t number)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(attack->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct connection *connection = &attack->connections[number];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    const size_t sizes[KINDS] = {
        [SILENT] = 0, [HALF] = attack->hello_size / 2, [WHOLE] = attack->hello_size};
    size_t size = sizes[number % KINDS];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    *connection = (struct connection){.fd = fd};
    atomic_fetch_add_explicit(&attack->held, 1, memory_order_relaxed);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        (size != 0 && send(fd, attack->hello, size, MSG_NOSIGNAL) != (ssize_t)size) ||
        epoll_ctl(attack->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return -errno;
    return 0;
}

/* Read the bytes that a server has sent on a connection. If the server has ended the connection,
 * open another one. */
static int read_server_bytes(struct tls_attack *attack, struct connection *connection)
{
    unsigned char bytes[8192];
    ssize_t got = recv(connection->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got > 0) {
        if (bytes[0] == HANDSHAKE && !connection->answered) {
            connection->answered = true;
            atomic_fetch_add_explicit(&attack->answered, 1, memory_order_relaxed);
        }
        return 0;
    }
    if (got < 0 && errno == EAGAIN)
        return 0;
    close(connection->fd);
    if (connection->answered)
        atomic_fetch_sub_explicit(&attack->answered, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&attack->held, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&attack->replaced, 1, memory_order_relaxed);
    return open_connection(attack, (uint32_t)(connection - attack->connections));
}

/* --- the process ------------------------------------------------------------------------------ */

static int wait_and_handle_events(struct tls_attack *attack, uint64_t start_ns)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(attack->epoll, events, EVENTS_MAX, TICK_MS);
    int error = count < 0 && errno != EINTR ? -errno : 0;

    for (int i = 0; error == 0 && i < count; i++)
        error = read_server_bytes(attack, events[i].data.ptr);
    double due = (double)(measure_now_ns() - start_ns) * 1e-9 * attack->rate;
    while (error == 0 && attack->opened < attack->size && (double)attack->opened < due)
        error = open_connection(attack, attack->opened++);
    return error;
}

/* Run the attack in its own process until this is killed, or the attack fails. */
static _Noreturn void run_attack_in_process(struct tls_attack *attack, pid_t starter)
{
    const struct sched_param none = {0};
    uint64_t start_ns = measure_now_ns();
    int error = prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != starter ||
                        close_range(3, ~0U, 0) != 0 || sched_setscheduler(0, SCHED_IDLE, &none) != 0
                    ? -EPERM
                    : 0;

    attack->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (attack->epoll < 0)
        error = -errno;
    while (error == 0)
        error = wait_and_handle_events(attack, start_ns);
    atomic_store_explicit(&attack->error, error, memory_order_relaxed);
    for (;;)
        pause(); /* after a failure the process stays, so that its connections stay open */
}

/* --- all -------------------------------------------------------------------------------------- */

/* Let OpenSSL write the ClientHello that the attack sends, which is that of a client of the
 * loads. */
static int make_client_hello(struct tls_attack *attack)
{
    SSL_CTX *context = tls_client_make_context();
    SSL *ssl = context != NULL ? SSL_new(context) : NULL;
    BIO *written = BIO_new(BIO_s_mem());
    /* a second BIO, because otherwise OpenSSL would read what it has written */
    BIO *nothing = BIO_new(BIO_s_mem());
    int size = -1;

    if (ssl != NULL && written != NULL && nothing != NULL) {
        SSL_set0_rbio(ssl, nothing);
        SSL_set0_wbio(ssl, written);
        SSL_set_connect_state(ssl);
        (void)SSL_do_handshake(ssl);
        size = BIO_read(written, attack->hello, HELLO_MAX);
    } else {
        BIO_free(nothing);
        BIO_free(written);
    }
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(context);
    attack->hello_size = size > 0 ? (size_t)size : 0;
    return size > 1 ? 0 : -ENOMEM;
}

static size_t size_of_attack_memory(uint32_t connections)
{
    return sizeof(struct tls_attack) + (size_t)connections * sizeof(struct connection);
}

int tls_attack_start(uint16_t port, uint32_t connections, double seconds,
                     struct tls_attack **ret_attack)
{
    struct tls_attack *attack = mmap(NULL, size_of_attack_memory(connections),
                                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t starter = getpid();

    if (attack == MAP_FAILED)
        return -ENOMEM;
    attack->port = port;
    attack->size = connections;
    attack->rate = connections / seconds;
    int error = make_client_hello(attack);
    if (error == 0) {
        /* from here on two processes share `attack`, so each of its fields is written by one of
         * them only */
        pid_t process = fork();
        if (process == 0)
            run_attack_in_process(attack, starter);
        error = process < 0 ? -errno : 0;
        attack->process = process;
    }
    if (error != 0) {
        munmap(attack, size_of_attack_memory(connections));
        return error;
    }
    *ret_attack = attack;
    return 0;
}

int tls_attack_read_counts(const struct tls_attack *attack, struct tls_attack_counts *ret_counts)
{
    *ret_counts = (struct tls_attack_counts){
        .held = atomic_load_explicit(&attack->held, memory_order_relaxed),
        .answered = atomic_load_explicit(&attack->answered, memory_order_relaxed),
        .replaced = atomic_load_explicit(&attack->replaced, memory_order_relaxed),
    };
    return atomic_load_explicit(&attack->error, memory_order_relaxed);
}

void tls_attack_stop(struct tls_attack *attack)
{
    if (attack == NULL)
        return;
    kill(attack->process, SIGKILL);
    (void)waitpid(attack->process, NULL, 0);
    munmap(attack, size_of_attack_memory(attack->size));
}
