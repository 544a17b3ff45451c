/* The choice of a backend where calls are refused, and the line that explains why a ring cannot be
 * made. */
#include "io/backend/choose.h"
#include "io/backend/explain.h"
#include "io/resources/io.h"
#include "io/resources/socket.h"
#include "tests/support/deny.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where system calls are refused, as in a container or under qemu-user: which backend is chosen,
 * and by which address a peer counts when the kernel does not give its name
 * (io/resources/socket.h). */

static const long calls[] = {SYS_io_uring_setup, SYS_io_uring_register, SYS_io_uring_enter};

/* Returns the backend that a process gets for `wanted` if the system call `call` is refused: 'e'
 * for epoll with a reason, 'u' for io_uring without one, 'f' for a failure with that error and a
 * text; '?' for any other outcome. */
static char choose_backend_in_child(domus_io_backend wanted, long call, int error)
{
    pid_t child = fork();
    int status = 0;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char reason[256];
        domus_config config;
        const domi_backend *backend = NULL;
        char got = '?';

        domus_config_init(&config);
        config.io.backend = wanted;
        ck_assert_int_eq(domt_deny_system_call(call, error), 0);
        int result = domi_backend_choose(&config, reason, sizeof reason, &backend);
        bool has_reason = reason[0] != '\0' && strchr(reason, '\n') == NULL;
        if (result == 0 && backend == &domi_backend_epoll &&
            has_reason == (wanted == DOMUS_BACKEND_AUTO))
            got = 'e';
        else if (result == 0 && backend == &domi_backend_uring && reason[0] == '\0')
            got = 'u';
        else if (result == -error && backend == NULL && has_reason)
            got = 'f';
        _exit(got);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return (char)WEXITSTATUS(status);
}

DOMT_TEST(a_refused_call_of_io_uring_chooses_epoll)
{
    static const int errors[] = {EPERM, EACCES, ENOSYS, EINVAL};

    for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++) {
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
            ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, calls[call], errors[i]),
                             'e');
    }
}

/* Where a resource has run out, the choice fails: a service must not change its backend by
 * chance. */
DOMT_TEST(choice_fails_where_a_resource_has_run_out)
{
    static const int errors[] = {ENOMEM, EMFILE, ENFILE};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, SYS_io_uring_setup, errors[i]),
                         'f');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, SYS_io_uring_register, ENOMEM),
                     'f');
}

DOMT_TEST(a_named_backend_is_taken_without_a_look)
{
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_URING, SYS_io_uring_setup, EPERM), 'u');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_EPOLL, SYS_io_uring_setup, EPERM), 'e');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_EPOLL, SYS_getppid, EPERM), 'e');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, SYS_getppid, EPERM), 'u');
}

/* Make a connection from 127.0.0.9. Returns the end that was accepted. */
static int accept_connection_from_127_0_0_9(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000009u)};
    socklen_t size = sizeof to;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&to, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&to, &size), 0);
    ck_assert_int_eq(bind(peer, (struct sockaddr *)&from, size), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&to, size), 0);
    int accepted = accept(listener, NULL, NULL);
    ck_assert_int_ge(accepted, 0);
    close(listener);
    return accepted;
}

static void expect_family_and_host_of_peer(int family, uint32_t host, int fd)
{
    const domi_io io = {.backend = &domi_backend_epoll};
    struct sockaddr_storage address;
    struct sockaddr_in inet;

    domi_socket_find_address_of_peer(&io, fd, &address);
    ck_assert_int_eq(address.ss_family, family);
    memcpy(&inet, &address, sizeof inet);
    ck_assert_uint_eq(family == AF_INET ? ntohl(inet.sin_addr.s_addr) : 0, host);
}

DOMT_TEST(address_of_a_peer_is_told)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    expect_family_and_host_of_peer(AF_INET, 0x7f000009u, accept_connection_from_127_0_0_9());
    expect_family_and_host_of_peer(AF_UNIX, 0, pair[0]);
    expect_family_and_host_of_peer(AF_UNSPEC, 0, -1);
}

DOMT_TEST(address_of_a_peer_is_told_without_getsockopt)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int fd = accept_connection_from_127_0_0_9();
    ck_assert_int_eq(domt_deny_system_call(SYS_getsockopt, EOPNOTSUPP), 0);
    expect_family_and_host_of_peer(AF_INET, 0x7f000009u, fd);
    expect_family_and_host_of_peer(AF_UNIX, 0, pair[0]);
    expect_family_and_host_of_peer(AF_UNSPEC, 0, -1);
}

/* --- explain ---------------------------------------------------------------------------------- */

/* io/backend/explain.c: if a ring cannot be made, one line says which of the known causes it was
 * and what to do. */

static const char *explanation_of_facts(const domi_setup_facts *facts)
{
    static char text[512];

    memset(text, '?', sizeof text);
    domi_setup_write_explanation(facts, text, sizeof text);
    ck_assert_ptr_nonnull(memchr(text, '\0', sizeof text));
    ck_assert_uint_gt(strlen(text), 10);
    ck_assert_uint_lt(strlen(text), 256); /* domus_system_error() keeps no more bytes of a text */
    ck_assert_ptr_null(strchr(text, '\n'));
    return text;
}

static domi_setup_facts facts_of_refusal(int result, domi_setup_step step)
{
    domi_setup_facts facts = {
        .result = result,
        .step = step,
        .disabled = 0,
        .seccomp = 0,
        .memlock_bytes = UINT64_MAX,
        .needed_bytes = 100 * 1024,
    };

    snprintf(facts.kernel, sizeof facts.kernel, "5.10.0-test");
    return facts;
}

static void expect_text_to_contain(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
}

#define SYSCTL      "set it to 0", "io_uring_group"
#define FILTERED    "allow io_uring_setup, io_uring_enter and io_uring_register"
#define LOCKED      "system.threads, io.ringEntries or io.completionEntries"
#define DESCRIPTORS "no descriptor is left"

DOMT_TEST(refused_ring_is_explained_with_cause_and_remedy)
{
    const domi_setup_step ring = DOMI_SETUP_RING, memory = DOMI_SETUP_MEMORY;
    const struct {
        int result;
        domi_setup_step step;
        /* values of io_uring_disabled and of the process's seccomp mode; -1: unknown */
        int disabled, seccomp;
        uint64_t memlock_bytes; /* RLIMIT_MEMLOCK in bytes; 0: the process has no limit */
        bool tells_error;       /* true: the line also has the text of strerror() */
        const char *parts[3];
    } cases[] = {
        /* A seccomp filter may be there as well, but only the sysctl is certain. */
        {-EPERM, ring, 1, 2, 0, false, {"kernel.io_uring_disabled=1", SYSCTL}},
        {-EACCES, ring, 1, 2, 0, false, {"kernel.io_uring_disabled=1", SYSCTL}},
        {-EPERM, ring, 2, 2, 0, false, {"kernel.io_uring_disabled=2", SYSCTL}},
        {-EACCES, ring, 2, 2, 0, false, {"kernel.io_uring_disabled=2", SYSCTL}},
        {-EPERM, ring, 0, 2, 0, true, {"seccomp filter", FILTERED}},
        {-EACCES, ring, 0, 2, 0, true, {"seccomp filter", FILTERED}},
        {-ENOSYS, ring, 0, 2, 0, true, {"seccomp filter", FILTERED}},
        {-ENOSYS, ring, -1, 0, 0, false, {"5.10.0-test", "Linux 6.1 or newer"}},
        {-ENOSYS, ring, -1, -1, 0, false, {"Linux 6.1 or newer"}},
        {-EPERM, ring, 0, 0, 0, false, {"not permitted", "security module"}},
        {-EPERM, ring, -1, -1, 0, false, {"security module"}},
        {-ENOMEM, ring, 0, 0, 65536, false, {"limit is 64 KiB", "about 100 KiB", LOCKED}},
        {-ENOMEM, ring, 0, 0, 65536, false, {"ulimit -l", "LimitMEMLOCK="}},
        {-ENOMEM, ring, 0, 0, 0, false, {"io_uring_setup: out of memory"}},
        /* memory of the library itself, so RLIMIT_MEMLOCK is not the cause */
        {-ENOMEM, memory, 0, 0, 65536, false, {"memory for a ring: out of memory"}},
        {-EMFILE, ring, 0, 0, 0, true, {DESCRIPTORS, "ulimit -n", "LimitNOFILE="}},
        {-ENFILE, ring, 0, 0, 0, true, {DESCRIPTORS, "ulimit -n", "LimitNOFILE="}},
        {-EIO, DOMI_SETUP_BUFFERS, 0, 0, 0, true, {"registering receive buffers: "}},
        {-EIO, DOMI_SETUP_ENABLE, 0, 0, 0, false, {"enabling a ring on its thread: "}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domi_setup_facts facts = facts_of_refusal(cases[i].result, cases[i].step);
        facts.disabled = cases[i].disabled;
        facts.seccomp = cases[i].seccomp;
        if (cases[i].memlock_bytes != 0)
            facts.memlock_bytes = cases[i].memlock_bytes;
        const char *text = explanation_of_facts(&facts);
        for (size_t n = 0; n < 3 && cases[i].parts[n] != NULL; n++)
            expect_text_to_contain(text, cases[i].parts[n]);
        if (cases[i].tells_error)
            expect_text_to_contain(text, strerror(-cases[i].result));
        if (cases[i].result == -ENOSYS && cases[i].seccomp == 0)
            ck_assert_ptr_null(strstr(text, "seccomp"));
    }
}

DOMT_TEST(explanation_names_an_old_kernel)
{
    for (domi_setup_step step = DOMI_SETUP_RING; step <= DOMI_SETUP_ENABLE; step++) {
        domi_setup_facts facts = facts_of_refusal(-EINVAL, step);
        expect_text_to_contain(explanation_of_facts(&facts), "5.10.0-test");
        expect_text_to_contain(explanation_of_facts(&facts), "Linux 6.1 or newer");
    }
}

DOMT_TEST(explanation_does_not_overrun_a_short_buffer)
{
    char text[16];
    domi_setup_facts facts = facts_of_refusal(-EPERM, DOMI_SETUP_RING);

    memset(text, '?', sizeof text);
    domi_setup_write_explanation(&facts, text, 10);
    ck_assert_uint_eq(strlen(text), 9);
    ck_assert_int_eq(text[10], '?');
}

/* The text has the facts of this process: the limit that getrlimit() returns, and the kernel's
 * name. */
DOMT_TEST(explanation_of_a_refused_ring_has_facts_of_this_process)
{
    char text[256];
    char expected[64];
    domus_config config;

    domus_config_init(&config);
    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){77 * 1024, 77 * 1024}), 0);
    domi_setup_explain_failure_of_ring(-ENOMEM, DOMI_SETUP_RING, &config, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "limit is 77 KiB"));
    /* memory of the ring: 512 entries of 68 bytes, 4096 of 16, 1024 buffers of 16, and two pages */
    snprintf(expected, sizeof expected, "about %d KiB",
             (512 * 68 + 4096 * 16 + 16384 + 8192) / 1024);
    ck_assert_msg(strstr(text, expected) != NULL, "%s", text);
}

DOMT_SUITE(20)
