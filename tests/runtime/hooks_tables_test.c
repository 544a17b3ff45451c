/* No table of hooks has a NULL entry that is not known here (contract: NULL entries).
 *
 * A table is looked at as an array of pointers. Its size is asserted, so a new hook needs a name
 * here, and then an entry in each table, or a place in the list of what that table lacks. */
#include "house/dispatch/manage.h"
#include "io/completions/setup.h"
#include "runtime/control/thread_life.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/outside.h"
#include "runtime/testkit/steps.h"
#include "tests/runtime/stepped.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
    const char *name;
    size_t offset;
} entry;

/* clang-format off */
#define ENTRY(table, entry) {#entry, offsetof(table, entry)}
/* clang-format on */

static const entry of_io[] = {
    ENTRY(domi_io_hooks, run_channels),       ENTRY(domi_io_hooks, open_channel),
    ENTRY(domi_io_hooks, conversation_ended), ENTRY(domi_io_hooks, flush_left),
    ENTRY(domi_io_hooks, channel_failed),     ENTRY(domi_io_hooks, take_event),
    ENTRY(domi_io_hooks, descriptor_handled), ENTRY(domi_io_hooks, descriptor_cancel),
    ENTRY(domi_io_hooks, descriptor_noted),   ENTRY(domi_io_hooks, stop_channels),
    ENTRY(domi_io_hooks, answer_request),     ENTRY(domi_io_hooks, fail_request),
    ENTRY(domi_io_hooks, answer_peer),        ENTRY(domi_io_hooks, release_message),
    ENTRY(domi_io_hooks, send_mail),          ENTRY(domi_io_hooks, unsent_asks),
    ENTRY(domi_io_hooks, return_mail),
};

static const entry of_runtime[] = {
    ENTRY(domi_runtime_hooks, wake),        ENTRY(domi_runtime_hooks, log),
    ENTRY(domi_runtime_hooks, say),         ENTRY(domi_runtime_hooks, spawn_detached),
    ENTRY(domi_runtime_hooks, begin_spawn), ENTRY(domi_runtime_hooks, end_spawn),
    ENTRY(domi_runtime_hooks, withdraw),    ENTRY(domi_runtime_hooks, resolve),
    ENTRY(domi_runtime_hooks, unresolve),   ENTRY(domi_runtime_hooks, read_memory),
    ENTRY(domi_runtime_hooks, read_clock),  ENTRY(domi_runtime_hooks, warn),
    ENTRY(domi_runtime_hooks, block),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static_assert(sizeof(domi_io_hooks) == COUNT(of_io) * sizeof(void *), "each hook of io");
static_assert(sizeof(domi_runtime_hooks) == COUNT(of_runtime) * sizeof(void *),
              "each hook of runtime");

/* True if `name` is a word of `list`, whose words stand between blanks. */
static bool has_word(const char *list, const char *name)
{
    char word[64];

    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

/* The entries that are NULL must be exactly those that `lacks` names. */
static void check_table(const char *whose, const void *table, const entry *entries, size_t count,
                        const char *lacks)
{
    for (size_t i = 0; i < count; i++) {
        void *value;

        memcpy(&value, (const char *)table + entries[i].offset, sizeof value);
        ck_assert_msg((value == NULL) == has_word(lacks, entries[i].name),
                      "the hooks of %s: %s is %sNULL", whose, entries[i].name,
                      value == NULL ? "" : "not ");
    }
}

static void check_runtime(const char *whose, const domi_runtime_hooks *hooks, const char *lacks)
{
    check_table(whose, hooks, of_runtime, COUNT(of_runtime), lacks);
}

DOMT_TEST(each_table_of_io_has_each_hook)
{
    check_table("io", &domi_hooks_of_io, of_io, COUNT(of_io), "");
    check_table("a manager without io", &domi_hooks_without_io, of_io, COUNT(of_io), "");
}

DOMT_TEST(each_table_of_runtime_lacks_only_hooks_that_it_may_lack)
{
    check_runtime("threads", &domi_hooks_of_threads, " begin_spawn end_spawn ");
    check_runtime("detached actors", &domi_hooks_of_detached, " say resolve unresolve read_clock ");
    check_runtime("the outside", &domi_hooks_of_outside,
                  " log warn begin_spawn end_spawn resolve unresolve read_clock block ");
    check_runtime("the test kit", &domi_hooks_of_testkit, " begin_spawn end_spawn ");
    check_runtime("the stepped system", &domt_hooks_of_stepped,
                  " begin_spawn end_spawn resolve unresolve block ");
    check_runtime("the world of house's tests", &domt_hooks_of_world,
                  " log warn say spawn_detached begin_spawn end_spawn withdraw resolve "
                  "unresolve read_memory read_clock block ");
}

DOMT_SUITE(10)
