/* GET requests of `bench web`, with every answer checked: its status, its length, and each byte of
 * its body. */
#ifndef DOMUS_BENCH_WEB_LOAD_H
#define DOMUS_BENCH_WEB_LOAD_H

#include "bench/request_load.h"

struct web_load {
    struct request_load_kind kind; /* the part that every load has */
    const char *body;
    size_t body_size;
    char length[48]; /* the field that says how long the body is */
};

/* Make requests for `path`. The answer is 200 with this body, which stays the caller's; `load` has
 * to stay where it is. */
void web_load_make(struct web_load *load, const char *path, const char *body, size_t body_size);

#endif
