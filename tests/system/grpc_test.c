/* The example `grpc` with a client that uses node's http2 module, and writes each byte of its calls
 * (grpc.js). Without node nothing is tested. */
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>

static domt_service service;

DOMT_TEST(node_calls_methods_of_each_kind)
{
    static char line[1024];

    if (!domt_are_judges_there("node"))
        return;
    domt_service_start(&service,
                       (const char *const[]){DOMT_BIN_DIR "/grpc", "--config",
                                             DOMT_SOURCE_DIR "/examples/grpc/grpc.yaml", "--set",
                                             "listeners.grpc.address=127.0.0.1:0", NULL});
    snprintf(line, sizeof line, "timeout -k 1 50 node " DOMT_SOURCE_DIR "/tests/system/grpc.js %u",
             service.port);
    int status = system(line); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_int_eq(status, 0);
    domt_service_stop(&service);
}

DOMT_SUITE(60)
