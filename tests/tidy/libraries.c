/* The table of the installed libraries: the first word in a public header's name says to which one
 * the header belongs. Configurations are read without the library that they configure, so their
 * headers belong to libdomus. */
#include "tests/tidy/libraries.h"
#include "tests/tidy/tree.h"

#include <string.h>

const char *const domt_libraries[] = {
    "libdomus",         "libdomus-config",  "libdomus-resp",  "libdomus-http", "libdomus-tls",
    "libdomus-observe", "libdomus-cluster", "libdomus-nats",  "libdomus-sql",  "libdomus-sqlite",
    "libdomus-pg",      "libdomus-json",    "libdomus-http2", "libdomus-grpc", NULL};

static const struct {
    const char *begins;
    const char *library;
} rows[] = {
    {"cluster_config.h", "libdomus"},
    {"observe_config.h", "libdomus"},
    {"main.h", "libdomus-config"},
    {"yaml.h", "libdomus-config"},
    {"http2.h", "libdomus-http2"},
    {"http2_client.h", "libdomus-http2"},
    {"grpc.h", "libdomus-grpc"},
    {"resp.h", "libdomus-resp"},
    {"http", "libdomus-http"},
    {"websocket.h", "libdomus-http"},
    {"tls.h", "libdomus-tls"},
    {"observe.h", "libdomus-observe"},
    {"cluster.h", "libdomus-cluster"},
    {"pickle", "libdomus-cluster"},
    {"testkit_cluster.h", "libdomus-cluster"},
    {"nats", "libdomus-nats"},
    {"sql.h", "libdomus-sql"},
    {"sql_", "libdomus-sql"},
    {"sqlite.h", "libdomus-sqlite"},
    {"pg.h", "libdomus-pg"},
    {"json", "libdomus-json"},
};

size_t domt_library_of_header(const char *header)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!domt_text_starts_with(header, rows[i].begins))
            continue;
        for (size_t library = 0; domt_libraries[library] != NULL; library++) {
            if (strcmp(domt_libraries[library], rows[i].library) == 0)
                return library;
        }
    }
    return 0;
}
