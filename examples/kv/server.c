/* Commands about the server: its time, what it does not do, and DEBUG SLEEP. */
#include "kv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_OF_S     1e9
#define SLEEP_MAX_S 3600.0

int kv_serve_time(domus_stack *stack, void *self, const void *payload)
{
    domus_resp_builder builder = {.version = ((const domus_resp_command *)payload)->version};
    struct timespec now;
    char text[24];

    (void)self;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)domus_resp_add_array(&builder, 2);
    int size = snprintf(text, sizeof text, "%lld", (long long)now.tv_sec);
    (void)domus_resp_add_bulk(&builder, text, (size_t)size);
    size = snprintf(text, sizeof text, "%ld", now.tv_nsec / 1000);
    (void)domus_resp_add_bulk(&builder, text, (size_t)size);
    return kv_reply(stack, &builder);
}

/* Nothing is saved: the keys were last as they are on no disk when the program began. */
int kv_serve_lastsave(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return kv_integer(stack, kv_begun_s());
}

int kv_serve_save(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return kv_error(stack, "ERR this server keeps its keys in memory alone");
}

static int wake(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    return answer->error != 0 ? answer->error : kv_ok(stack);
}

/* Read DEBUG SLEEP SECONDS [KEY]. Returns NULL, or the error. */
static const char *read_sleep(const domus_resp_command *command, uint64_t *ret_ns)
{
    domus_slice word = domus_resp_argument(command, 2);
    long double seconds = 0;

    if (!domus_resp_is(domus_resp_argument(command, 1), "SLEEP") || command->count < 3 ||
        command->count > 4)
        return "ERR unknown subcommand or wrong number of arguments for 'DEBUG'";
    if (!kv_to_float((domus_resp_bytes){domus_slice_data(word), word.size}, &seconds) ||
        seconds < 0 || seconds > SLEEP_MAX_S)
        return "ERR value is not a valid float";
    *ret_ns = (uint64_t)(seconds * NS_OF_S);
    return NULL;
}

/* In Redis the whole server sleeps. Here this connection alone does, whose later commands wait; or,
 * with a key, its shard. */
int kv_serve_debug(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    uint64_t ns;
    const char *wrong = read_sleep(command, &ns);

    (void)self;
    if (wrong != NULL)
        return kv_error(stack, wrong);
    if (command->count == 4)
        return domus_forward(stack, kv_shards[kv_shard_of(domus_resp_argument(command, 3))]);
    return domus_sleep(stack, ns, wake);
}

/* The shard sleeps: all its commands wait behind a barrier. */
int kv_run_debug(struct kv_call *call)
{
    uint64_t ns;
    const char *wrong = read_sleep(call->command, &ns);

    if (wrong != NULL)
        return kv_error(call->stack, wrong);
    if (kv_is_gathering())
        return kv_error(call->stack, "ERR a shard cannot sleep in a transaction");
    int error = domus_barrier(call->stack);
    return error != 0 ? error : domus_sleep(call->stack, ns, wake);
}
