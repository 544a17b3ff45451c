/* No table of the library has a NULL entry that its comment does not allow (contract: NULL
 * entries).
 *
 * A table of operations is looked at as an array of pointers. Its size is asserted, so a new
 * operation needs a name here, and then an entry in each backend. */
#include "io/backend/backend.h"
#include "runtime/network/ring.h"
#include "tests/runtime/stepped.h"
#include "tests/support/fake_backend.h"
#include "tests/support/suite.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define ENTRY(table, entry)                                                                        \
    {                                                                                              \
#entry, offsetof(table, entry)                                                             \
    }

typedef struct entry {
    const char *name;
    size_t offset;
} entry;

static const entry entries[] = {
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

static const entry calls[] = {
    ENTRY(domi_sockets, socket),  ENTRY(domi_sockets, bind),       ENTRY(domi_sockets, listen),
    ENTRY(domi_sockets, connect), ENTRY(domi_sockets, accept),     ENTRY(domi_sockets, shutdown),
    ENTRY(domi_sockets, close),   ENTRY(domi_sockets, option_get), ENTRY(domi_sockets, option_set),
    ENTRY(domi_sockets, ioctl),   ENTRY(domi_sockets, address),    ENTRY(domi_sockets, wake_open),
    ENTRY(domi_sockets, wake),    ENTRY(domi_sockets, wake_wait),  ENTRY(domi_sockets, pause),
};

static_assert(sizeof(domi_backend) == sizeof(const char *) +
                                          sizeof entries / sizeof entries[0] * sizeof(void *) +
                                          sizeof(void *),
              "the name, each operation, and is_simulated with its padding");

static_assert(sizeof(domi_sockets) == sizeof calls / sizeof calls[0] * sizeof(void *), "each call");

/* `optional` names the entries that may be NULL in this table; NULL: none may. */
static void check_table(const char *name, const void *table, const entry *rows, size_t count,
                        const char *optional)
{
    for (size_t i = 0; i < count; i++) {
        void *function;

        memcpy(&function, (const char *)table + rows[i].offset, sizeof function);
        bool may_lack = optional != NULL && strstr(optional, rows[i].name) != NULL;
        ck_assert_msg(function != NULL || may_lack, "backend %s: %s is NULL", name, rows[i].name);
    }
}

static void check_backend(const domi_backend *backend, const char *optional)
{
    check_table(backend->name, backend, entries, sizeof entries / sizeof entries[0], optional);
    check_table(backend->name, backend->sockets, calls, sizeof calls / sizeof calls[0], NULL);
}

DOMT_TEST(each_backend_has_each_operation)
{
    check_backend(&domi_backend_uring, NULL);
    check_backend(&domi_backend_epoll, NULL);
    /* these have no files */
    check_backend(&domt_fake_backend, "file_read file_write file_open");
    check_backend(&domi_backend_net, "file_read file_write file_open");
    /* no watches of descriptors, and no datagrams, in the stepped system */
    check_backend(&domt_stepped_ring, "submit poll_once receive_datagrams send_datagram file_read "
                                      "file_write file_open");
}

DOMT_SUITE(10)
