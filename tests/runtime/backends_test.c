/* No table of the library has a NULL entry that its comment does not allow (contract: NULL
 * entries).
 *
 * A table of operations is looked at as an array of pointers. Its size is asserted, so a new
 * operation needs a name here, and then an entry in each backend. */
#include "io/backend/backend.h"
#include "runtime/testkit/ring.h"
#include "tests/runtime/stepped.h"
#include "tests/support/fake_backend.h"
#include "tests/support/suite.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define ENTRY(entry)                                                                               \
    {                                                                                              \
#entry, offsetof(domi_backend, entry)                                                      \
    }

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
    ENTRY(open),      ENTRY(start),   ENTRY(close),        ENTRY(enter),   ENTRY(reap),
    ENTRY(ready),     ENTRY(pending), ENTRY(accept),       ENTRY(receive), ENTRY(poll),
    ENTRY(poll_once), ENTRY(send),    ENTRY(send_message), ENTRY(cancel),  ENTRY(cancel_fd),
    ENTRY(give),      ENTRY(publish),
};

static_assert(sizeof(domi_backend) ==
                  sizeof(const char *) + sizeof entries / sizeof entries[0] * sizeof(void *),
              "the name, and each operation");

/* `optional` is the one entry that may be NULL in this backend, or NULL. */
static void check_backend(const domi_backend *backend, const char *optional)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *entry;

        memcpy(&entry, (const char *)backend + entries[i].offset, sizeof entry);
        bool may_lack = optional != NULL && strcmp(entries[i].name, optional) == 0;
        ck_assert_msg(entry != NULL || may_lack, "backend %s: %s is NULL", backend->name,
                      entries[i].name);
    }
}

START_TEST(each_backend_has_each_operation)
{
    check_backend(&domi_backend_uring, NULL);
    check_backend(&domt_fake_backend, NULL);
    check_backend(&domi_testkit_ring, "poll_once"); /* no watches of descriptors in the test kit */
    check_backend(&domt_stepped_ring, "poll_once"); /* nor in the stepped system */
}
END_TEST

DOMT_MAIN("backends", 10, each_backend_has_each_operation)
