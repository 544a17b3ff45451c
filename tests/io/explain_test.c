/* io/backend/explain.c: if a ring cannot be made, one line says which of the known causes it was
 * and what to do. */
#include "io/backend/explain.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static const char *line_about_facts(const domi_setup_facts *facts)
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

static void expect_part_of_text(const char *text, const char *part)
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
        const char *text = line_about_facts(&facts);
        for (size_t n = 0; n < 3 && cases[i].parts[n] != NULL; n++)
            expect_part_of_text(text, cases[i].parts[n]);
        if (cases[i].tells_error)
            expect_part_of_text(text, strerror(-cases[i].result));
        if (cases[i].result == -ENOSYS && cases[i].seccomp == 0)
            ck_assert_ptr_null(strstr(text, "seccomp"));
    }
}

DOMT_TEST(explanation_names_an_old_kernel)
{
    for (domi_setup_step step = DOMI_SETUP_RING; step <= DOMI_SETUP_ENABLE; step++) {
        domi_setup_facts facts = facts_of_refusal(-EINVAL, step);
        expect_part_of_text(line_about_facts(&facts), "5.10.0-test");
        expect_part_of_text(line_about_facts(&facts), "Linux 6.1 or newer");
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
DOMT_TEST(the_facts_are_those_of_this_process)
{
    char text[256];
    char expected[64];
    domus_config config;

    domus_config_init(&config);
    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){77 * 1024, 77 * 1024}), 0);
    domi_setup_explain_failure(-ENOMEM, DOMI_SETUP_RING, &config, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "limit is 77 KiB"));
    /* memory of the ring: 512 entries of 68 bytes, 4096 of 16, 1024 buffers of 16, and two pages */
    snprintf(expected, sizeof expected, "about %d KiB",
             (512 * 68 + 4096 * 16 + 16384 + 8192) / 1024);
    ck_assert_msg(strstr(text, expected) != NULL, "%s", text);
}

DOMT_SUITE(20)
