/* Calls of gRPC of all kinds at the same time, on all threads. Their clients cancel them,
 * disconnect or send nonsense at any moment, and their deadlines pass at any other. Nothing may be
 * left of the calls; the sanitizers and the end of the kit check that. */
#include "base/random.h"
#include "tests/grpc/called.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <string.h>

#define CALLS 16u

static domt_caller caller;

static void begin_random_call(domi_random *random, int32_t *ret_id)
{
    static const struct {
        /* The path and the body of a call; only `size` bytes of the body are sent at first. */
        const char *path, *bytes;
        size_t size;
    } kinds[] = {
        {"/t.T/Unary", "\0\0\0\0\7sleep 3", 12},
        {"/t.T/Down",
         "\0\0\0\0\1"
         "3",
         6},
        {"/t.T/Up", "\0\0\0\0\5hello\0\0\0\0\1a", 16},
        {"/t.T/Both", "\0\0\0\0\5hello\0\0\0\0\1a", 16},
        {"/t.T/Far", "\0\0\0\0\5hello\0\0\0\0\1a", 16},
        {"/t.T/Late",
         "\0\0\0\0\1"
         "0",
         6},
        {"/t.T/Late",
         "\0\0\0\0\1"
         "2",
         6},
        {"/t.T/Late", "\0\0\0\0\1h", 6},
        {"/t.T/Twice", "\0\0\0\0\1a", 6},
    };
    static const char *const fields[] = {"grpc-timeout", "3m", NULL};
    uint64_t kind = domi_random_below(random, sizeof kinds / sizeof *kinds);
    size_t size = kinds[kind].size;

    if (domi_random_below(random, 3) == 0)
        size = (size_t)domi_random_below(random, size);
    *ret_id = domt_called_begin_call(&caller, kinds[kind].path, kinds[kind].bytes, size,
                                     domi_random_below(random, 2) != 0 ? fields : NULL);
    domt_call *call = domt_called_find_call(&caller, *ret_id);
    call->step = 1 + (size_t)domi_random_below(random, 9);
    call->holds_end = domi_random_below(random, 2) != 0;
}

static void run_storm_of_calls(uint64_t seed)
{
    domi_random random;
    int32_t ids[CALLS];

    domi_random_init(&random, seed);
    domt_called_start_service_with(&caller, &domt_called_behaviour, seed);
    for (unsigned i = 0; i < CALLS; i++)
        begin_random_call(&random, &ids[i]);
    for (unsigned round = 0; round < 6; round++) {
        domt_called_advance_time(&caller, domi_random_below(&random, 700000));
        for (unsigned i = 0; i < CALLS; i++) {
            if (domi_random_below(&random, 5) == 0)
                (void)nghttp2_submit_rst_stream(caller.session, NGHTTP2_FLAG_NONE, ids[i],
                                                NGHTTP2_CANCEL);
        }
    }
    if (seed % 3 == 0)
        domus_peer_reset(caller.peer);
    else if (seed % 4 != 0)
        domt_called_advance_time(&caller, 20 * DOMT_CALLED_MS);
    domt_called_end_service(&caller);
}

DOMT_TEST(calls_ending_at_any_moment_leave_nothing)
{
    uint64_t count = DOMT_SCALE(200, 40) * (domt_tests_are_long() ? 20 : 1);

    for (uint64_t seed = 1; seed <= count; seed++)
        run_storm_of_calls(seed);
}

DOMT_SUITE(domt_tests_are_long() ? 900 : 120)
