/* GET requests of `bench web`, with every answer checked: its status, its length, and each byte of
 * its body. */
#ifndef DOMUS_BENCH_WEB_LOAD_H
#define DOMUS_BENCH_WEB_LOAD_H

#include "bench/request_load.h"

struct web_load {
    struct request_load_kind kind; /* the kind of requests for request_load_run_to_its_end() */
    const char *body;
    size_t body_size;
    char length[48]; /* the field of an answer's head that has the length of the body */
};

/* Make GET requests for `path`, whose answers must be 200 with this body. The caller owns the body.
 * The kind points into `load`, which therefore has to stay where it is. */
void web_load_make_requests(struct web_load *load, const char *path, const char *body,
                            size_t body_size);

#endif
