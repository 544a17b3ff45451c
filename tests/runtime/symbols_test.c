/* Names of functions and probes in the file of a program. runtime/os/symbols.c: functions have
 * names, also those that no module exports. base/probe.h: the probes of the libraries are there,
 * and the scripts in examples/trace use no others. The kernel may not let this process trace, so
 * nothing is traced. */
#include "base/memory.h"
#include "runtime/os/symbols.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- functions -------------------------------------------------------------------------------- */

static char name[64];

__attribute__((noinline)) static int sum_in_static_function(int by)
{
    static volatile int sum;
    for (int i = 0; i < by; i++)
        sum += i * by;
    return sum;
}

DOMT_TEST(static_function_has_its_name)
{
    domi_symbols *symbols = domi_symbols_new();
    uintptr_t begin = (uintptr_t)sum_in_static_function;

    ck_assert_int_eq(sum_in_static_function(1), 0);
    for (uintptr_t at = begin; at < begin + 8; at++) {
        ck_assert_uint_eq(domi_symbols_find_name(symbols, at, name, sizeof name), begin);
        ck_assert_str_eq(name, "hidden_function");
    }
    uintptr_t before = domi_symbols_find_name(symbols, begin - 1, name, sizeof name);
    ck_assert_uint_ne(before, begin);
    ck_assert_str_ne(name, "hidden_function");
    domi_symbols_free(symbols);
}

DOMT_TEST(function_of_another_module_has_its_name)
{
    domi_symbols *symbols = domi_symbols_new();
    ck_assert_uint_ne(domi_symbols_find_name(symbols, (uintptr_t)qsort_r, name, sizeof name), 0);
    ck_assert_ptr_nonnull(strstr(name, "qsort_r"));
    domi_symbols_free(symbols);
}

DOMT_TEST(address_outside_of_modules_is_named_so)
{
    domi_symbols *symbols = domi_symbols_new();
    void *code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(code, MAP_FAILED);
    ck_assert_uint_eq(domi_symbols_find_name(symbols, (uintptr_t)code, name, sizeof name), 0);
    ck_assert_str_eq(name, "code without a module");
    ck_assert_uint_eq(domi_symbols_find_name(symbols, 1, name, sizeof name), 0);
    munmap(code, 4096);
    domi_symbols_free(symbols);
}

DOMT_TEST(long_symbol_name_is_cut)
{
    domi_symbols *symbols = domi_symbols_new();
    ck_assert_uint_ne(domi_symbols_find_name(symbols, (uintptr_t)sum_in_static_function, name, 7),
                      0);
    ck_assert_str_eq(name, "hidden");
    domi_symbols_free(symbols);
}

/* Without memory for the table of symbols, a function has the name that the loader knows, or its
 * place in the module. */
DOMT_TEST(name_of_function_is_found_without_memory)
{
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_symbols_new());
    domi_memory_fail_allocation_after(-1, 0);
    for (int64_t n = 0; n < 6; n++) {
        domi_symbols *symbols = domi_symbols_new();
        name[0] = '\0';
        domi_memory_fail_allocation_after(n, 0);
        (void)domi_symbols_find_name(symbols, (uintptr_t)sum_in_static_function, name, sizeof name);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_str_ne(name, "");
        if (n < 3)
            ck_assert_str_ne(name, "hidden_function");
        domi_symbols_free(symbols);
    }
    ck_assert_str_eq(name, "hidden_function");
}

/* --- probes ----------------------------------------------------------------------------------- */

#ifdef DOMI_USDT

static char text[4 << 20];

/* Run a shell command, and write its output to `text`. Returns the exit status of the command. */
static int run_command(const char *command)
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

    if (run_command("command -v readelf") != 0)
        return;
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe 2>/dev/null", (int)getpid());
    (void)run_command(command);
    ck_assert_ptr_nonnull(strstr(text, "Provider: domus"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(line, sizeof line, "Name: %s\n", names[i]);
        ck_assert_msg(strstr(text, line) != NULL, "%s", names[i]);
    }
    /* No probe has a semaphore, because the program would have to check it each time. */
    for (const char *at = text; (at = strstr(at, "Semaphore: ")) != NULL; at++)
        ck_assert(strncmp(at, "Semaphore: 0x0000000000000000", 29) == 0);
}

DOMT_TEST(scripts_name_only_probes_that_there_are)
{
    char command[1024], probe[64], *rest;

    ck_assert_int_eq(run_command("cat '" DOMT_SOURCE_DIR "'/examples/trace/*.bt | "
                                 "grep -o 'usdt:\\*:domus:[a-z_]*' | sort -u"),
                     0);
    ck_assert_uint_gt(strlen(text), 100);
    static char wanted[4096];
    ck_assert_uint_lt(strlen(text), sizeof wanted);
    memcpy(wanted, text, strlen(text) + 1);
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe 2>/dev/null", (int)getpid());
    (void)run_command(command);
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
