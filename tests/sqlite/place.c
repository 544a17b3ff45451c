/* Makes and removes directories in which tests have databases of SQLite. */
#include "tests/sqlite/place.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <unistd.h>

void domt_place_make_directory_and_url(domt_place *place, const char *parameters)
{
    (void)snprintf(place->directory, sizeof place->directory, "/tmp/domus-sqlite-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place->directory));
    (void)snprintf(place->path, sizeof place->path, "%s/test.db", place->directory);
    (void)snprintf(place->url, sizeof place->url, "sqlite:%s%s", place->path, parameters);
}

void domt_place_remove_directory(const domt_place *place)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[128];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", place->path, ends[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(place->directory), 0);
}
