/* io/backend/explain.c: if a ring cannot be made, one line says which of the known causes it was
 * and what to do. */
#include "io/backend/explain.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static const char *text_of(const domi_setup_facts *facts)
{
    static char text[512];

    memset(text, '?', sizeof text);
    domi_setup_write_line(facts, text, sizeof text);
    ck_assert_ptr_nonnull(memchr(text, '\0', sizeof text));
    ck_assert_uint_gt(strlen(text), 10);
    ck_assert_uint_lt(strlen(text), 256); /* what domus_system_error() keeps */
    ck_assert_ptr_null(strchr(text, '\n'));
    return text;
}

static domi_setup_facts facts_of(int result, domi_setup_step step)
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

static void says(const domi_setup_facts *facts, const char *part)
{
    const char *text = text_of(facts);

    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
}

DOMT_TEST(a_sysctl_is_named_with_its_value_and_the_way_out)
{
    static const int results[] = {-EPERM, -EACCES};

    for (int disabled = 1; disabled <= 2; disabled++) {
        for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
            char value[64];
            domi_setup_facts facts = facts_of(results[i], DOMI_SETUP_RING);
            facts.disabled = disabled;
            facts.seccomp = 2; /* a filter may be there as well: the sysctl is certain */
            snprintf(value, sizeof value, "kernel.io_uring_disabled=%d", disabled);
            says(&facts, value);
            says(&facts, "set it to 0");
            says(&facts, "io_uring_group");
        }
    }
}

DOMT_TEST(a_seccomp_filter_is_told_from_a_kernel_without_io_uring)
{
    static const int results[] = {-EPERM, -EACCES, -ENOSYS};

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        domi_setup_facts facts = facts_of(results[i], DOMI_SETUP_RING);
        facts.seccomp = 2;
        says(&facts, "seccomp filter");
        says(&facts, strerror(-results[i]));
        says(&facts, "allow io_uring_setup, io_uring_enter and io_uring_register");
    }
    domi_setup_facts facts = facts_of(-ENOSYS, DOMI_SETUP_RING);
    facts.disabled = -1; /* older kernels do not have it */
    says(&facts, "5.10.0-test");
    says(&facts, "Linux 6.1 or newer");
    ck_assert_ptr_null(strstr(text_of(&facts), "seccomp"));
    facts.seccomp = -1;
    says(&facts, "Linux 6.1 or newer");
}

DOMT_TEST(a_refusal_by_neither_says_where_else_to_look)
{
    domi_setup_facts facts = facts_of(-EPERM, DOMI_SETUP_RING);

    says(&facts, "not permitted");
    says(&facts, "security module");
    facts.disabled = -1;
    facts.seccomp = -1;
    says(&facts, "security module");
}

DOMT_TEST(an_old_kernel_is_named)
{
    for (domi_setup_step step = DOMI_SETUP_RING; step <= DOMI_SETUP_ENABLE; step++) {
        domi_setup_facts facts = facts_of(-EINVAL, step);
        says(&facts, "5.10.0-test");
        says(&facts, "Linux 6.1 or newer");
    }
}

DOMT_TEST(locked_memory_is_told_in_numbers)
{
    domi_setup_facts facts = facts_of(-ENOMEM, DOMI_SETUP_RING);

    facts.memlock_bytes = 64 * 1024;
    says(&facts, "limit is 64 KiB");
    says(&facts, "about 100 KiB");
    says(&facts, "ulimit -l");
    says(&facts, "LimitMEMLOCK=");
    says(&facts, "system.threads, io.ringEntries or io.completionEntries");
    facts.memlock_bytes = UINT64_MAX;
    says(&facts, "io_uring_setup: out of memory");
    facts.step = DOMI_SETUP_MEMORY;
    facts.memlock_bytes = 64 * 1024; /* our own memory is not locked */
    says(&facts, "memory for a ring: out of memory");
}

DOMT_TEST(missing_descriptors_are_told_with_the_way_out)
{
    static const int results[] = {-EMFILE, -ENFILE};

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        domi_setup_facts facts = facts_of(results[i], DOMI_SETUP_RING);
        says(&facts, "no descriptor is left");
        says(&facts, strerror(-results[i]));
        says(&facts, "ulimit -n");
        says(&facts, "LimitNOFILE=");
    }
}

DOMT_TEST(anything_else_names_the_step_and_the_error)
{
    domi_setup_facts facts = facts_of(-EIO, DOMI_SETUP_BUFFERS);

    says(&facts, "registering receive buffers: ");
    says(&facts, strerror(EIO));
    facts.step = DOMI_SETUP_ENABLE;
    says(&facts, "enabling a ring on its thread: ");
}

DOMT_TEST(a_short_buffer_is_not_overrun)
{
    char text[16];
    domi_setup_facts facts = facts_of(-EPERM, DOMI_SETUP_RING);

    memset(text, '?', sizeof text);
    domi_setup_write_line(&facts, text, 10);
    ck_assert_uint_eq(strlen(text), 9);
    ck_assert_int_eq(text[10], '?');
}

/* The facts of this machine: the limit that getrlimit tells, this kernel's name. */
DOMT_TEST(the_facts_are_those_of_this_process)
{
    char text[256];
    char expected[64];
    domus_config config;

    domus_config_init(&config);
    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){77 * 1024, 77 * 1024}), 0);
    domi_setup_explain(-ENOMEM, DOMI_SETUP_RING, &config, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "limit is 77 KiB"));
    /* 512 of 68 bytes, 4096 of 16, 1024 buffers of 16, two pages. */
    snprintf(expected, sizeof expected, "about %d KiB",
             (512 * 68 + 4096 * 16 + 16384 + 8192) / 1024);
    ck_assert_msg(strstr(text, expected) != NULL, "%s", text);
}

DOMT_SUITE(20)
