/* base/probe.h: the probes of the libraries are in the file of a program, and the scripts of
 * examples/trace use only such. The kernel may not let this process trace, so nothing is traced. */
#include "tests/runtime/running.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef DOMI_USDT

static char text[4 << 20];

/* Returns the status of a shell command, whose output is in `text` then. */
static int run(const char *command)
{
    FILE *file = popen(command, "r"); /* NOLINT(cert-env33-c): a test may use the shell */

    ck_assert_ptr_nonnull(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    return pclose(file);
}

DOMT_TEST(each_probe_is_in_the_file)
{
    static const char *const names[] = {"phase",         "run__begin", "run__end", "turn__begin",
                                        "send",          "send__belt", "wake",     "park__begin",
                                        "park__end",     "steal",      "stall",    "channel__open",
                                        "channel__close"};
    char command[256], line[64];

    if (run("command -v readelf") != 0)
        return;
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe 2>/dev/null", (int)getpid());
    (void)run(command);
    ck_assert_ptr_nonnull(strstr(text, "Provider: domus"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(line, sizeof line, "Name: %s\n", names[i]);
        ck_assert_msg(strstr(text, line) != NULL, "%s", names[i]);
    }
    /* None has a semaphore, which a program would have to look at. */
    for (const char *at = text; (at = strstr(at, "Semaphore: ")) != NULL; at++)
        ck_assert(strncmp(at, "Semaphore: 0x0000000000000000", 29) == 0);
}

DOMT_TEST(scripts_name_only_probes_that_there_are)
{
    char command[1024], probe[64], *rest;

    ck_assert_int_eq(run("cat '" DOMT_SOURCE_DIR "'/examples/trace/*.bt | "
                         "grep -o 'usdt:\\*:domus:[a-z_]*' | sort -u"),
                     0);
    ck_assert_uint_gt(strlen(text), 100);
    static char wanted[4096];
    ck_assert_uint_lt(strlen(text), sizeof wanted);
    memcpy(wanted, text, strlen(text) + 1);
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe 2>/dev/null", (int)getpid());
    (void)run(command);
    for (const char *at = strtok_r(wanted, "\n", &rest); at != NULL;
         at = strtok_r(NULL, "\n", &rest)) {
        snprintf(probe, sizeof probe, "Name: %s\n", strrchr(at, ':') + 1);
        ck_assert_msg(strstr(text, probe) != NULL, "%s", at);
    }
}

#else

DOMT_TEST(there_are_no_probes)
{
}

#endif

DOMT_SUITE(60)
