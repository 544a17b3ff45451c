/* No table of hooks or of operations has a NULL entry that this test does not list (contract: NULL
 * entries).
 *
 * A table is read as an array of pointers. Its size is asserted, so a new entry needs a name here,
 * and then an entry in each table, or a place in the list of what that table lacks. */
#include "house/dispatch/manage.h"
#include "io/backend/backend.h"
#include "io/completions/setup.h"
#include "runtime/control/life.h"
#include "runtime/network/ring.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/outside.h"
#include "runtime/testkit/parts.h"
#include "tests/runtime/stepped.h"
#include "tests/support/fake_backend.h"
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

static const entry of_backend[] = {
    ENTRY(domi_backend, sockets),       ENTRY(domi_backend, open),
    ENTRY(domi_backend, start),         ENTRY(domi_backend, close),
    ENTRY(domi_backend, enter),         ENTRY(domi_backend, submit),
    ENTRY(domi_backend, reap),          ENTRY(domi_backend, ready),
    ENTRY(domi_backend, pending),       ENTRY(domi_backend, accept),
    ENTRY(domi_backend, receive),       ENTRY(domi_backend, poll),
    ENTRY(domi_backend, poll_once),     ENTRY(domi_backend, send),
    ENTRY(domi_backend, send_message),  ENTRY(domi_backend, cancel),
    ENTRY(domi_backend, forget),        ENTRY(domi_backend, give),
    ENTRY(domi_backend, publish),       ENTRY(domi_backend, receive_datagrams),
    ENTRY(domi_backend, send_datagram), ENTRY(domi_backend, file_read),
    ENTRY(domi_backend, file_write),    ENTRY(domi_backend, file_open),
};

static const entry of_sockets[] = {
    ENTRY(domi_sockets, socket),  ENTRY(domi_sockets, bind),       ENTRY(domi_sockets, listen),
    ENTRY(domi_sockets, connect), ENTRY(domi_sockets, accept),     ENTRY(domi_sockets, shutdown),
    ENTRY(domi_sockets, close),   ENTRY(domi_sockets, option_get), ENTRY(domi_sockets, option_set),
    ENTRY(domi_sockets, ioctl),   ENTRY(domi_sockets, address),    ENTRY(domi_sockets, wake_open),
    ENTRY(domi_sockets, wake),    ENTRY(domi_sockets, wake_wait),  ENTRY(domi_sockets, pause),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static_assert(sizeof(domi_io_hooks) == COUNT(of_io) * sizeof(void *), "each hook of io");
static_assert(sizeof(domi_runtime_hooks) == COUNT(of_runtime) * sizeof(void *),
              "each hook of runtime");
static_assert(sizeof(domi_backend) ==
                  sizeof(const char *) + COUNT(of_backend) * sizeof(void *) + sizeof(void *),
              "the name, each operation, and is_simulated with its padding");
static_assert(sizeof(domi_sockets) == COUNT(of_sockets) * sizeof(void *), "each call");

/* Returns whether `name` is one of the words in `list`, which stand between blanks. */
static bool does_list_contain_word(const char *list, const char *name)
{
    char word[64];

    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

/* Check that exactly those entries of the table are NULL that `lacks` names. */
static void check_null_entries_of_table(const char *whose, const void *table, const entry *entries,
                                        size_t count, const char *lacks)
{
    for (size_t i = 0; i < count; i++) {
        void *value;

        memcpy(&value, (const char *)table + entries[i].offset, sizeof value);
        ck_assert_msg((value == NULL) == does_list_contain_word(lacks, entries[i].name),
                      "%s: %s is %sNULL", whose, entries[i].name, value == NULL ? "" : "not ");
    }
}

static void check_table_of_runtime_hooks(const char *whose, const domi_runtime_hooks *hooks,
                                         const char *lacks)
{
    check_null_entries_of_table(whose, hooks, of_runtime, COUNT(of_runtime), lacks);
}

DOMT_TEST(each_table_of_io_has_each_hook)
{
    check_null_entries_of_table("io", &domi_hooks_of_io, of_io, COUNT(of_io), "");
    check_null_entries_of_table("a manager without io", &domi_hooks_without_io, of_io, COUNT(of_io),
                                "");
}

DOMT_TEST(each_table_of_runtime_lacks_only_hooks_that_it_may_lack)
{
    check_table_of_runtime_hooks("threads", &domi_hooks_of_threads, " begin_spawn end_spawn ");
    check_table_of_runtime_hooks("detached actors", &domi_hooks_of_detached,
                                 " say resolve unresolve read_clock ");
    check_table_of_runtime_hooks(
        "the outside", &domi_hooks_of_outside,
        " log warn begin_spawn end_spawn resolve unresolve read_clock block ");
    check_table_of_runtime_hooks("the test kit", &domi_hooks_of_testkit, " begin_spawn end_spawn ");
    check_table_of_runtime_hooks("the stepped system", &domt_hooks_of_stepped,
                                 " begin_spawn end_spawn resolve unresolve block ");
    check_table_of_runtime_hooks(
        "the world of house's tests", &domt_hooks_of_world,
        " log warn say spawn_detached begin_spawn end_spawn withdraw resolve "
        "unresolve read_memory read_clock block ");
}

static void check_tables_of_backend(const domi_backend *backend, const char *lacks)
{
    check_null_entries_of_table(backend->name, backend, of_backend, COUNT(of_backend), lacks);
    check_null_entries_of_table(backend->name, backend->sockets, of_sockets, COUNT(of_sockets), "");
}

DOMT_TEST(each_backend_has_each_operation)
{
    check_tables_of_backend(&domi_backend_uring, "");
    check_tables_of_backend(&domi_backend_epoll, "");
    /* These two backends have no operations for files. */
    check_tables_of_backend(&domt_fake_backend, " file_read file_write file_open ");
    check_tables_of_backend(&domi_backend_net, " file_read file_write file_open ");
    /* The backend of the stepped system can neither watch descriptors nor receive or send
     * datagrams. */
    check_tables_of_backend(&domt_stepped_ring,
                            " submit poll_once receive_datagrams send_datagram file_read "
                            "file_write file_open ");
}

DOMT_SUITE(10)
