/* DEBUG: SLEEP, SET-ACTIVE-EXPIRE, and PROTOCOL, which tests of clients and of servers use. It is
 * refused unless kv.debug allows it, because a stranger could delay others by it. */
#include "desk.h"
#include "subcommand.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NS_OF_S      1e9
#define SLEEP_MAX_S  3600.0
#define PACKED_LEAST 1
#define PACKED_MOST  (UINT64_C(4) << 30)

/* True if expired keys are removed only when a command looks at them. Relaxed: the shards read it
 * now and then. */
static _Atomic bool is_lazy;

bool kv_removes_expired_keys_at_once(void)
{
    return !atomic_load_explicit(&is_lazy, memory_order_relaxed);
}

static bool does_client_connect_from_this_host(const struct kv_session *session)
{
    static const char *const begins[] = {"127.", "[::1]", "unix:", "unnamed"};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(session->seat.peer, begins[i], strlen(begins[i])) == 0)
            return true;
    }
    return false;
}

bool kv_may_client_send_debug(const struct kv_session *session)
{
    return kv_settings.debug == KV_DEBUG_YES ||
           (kv_settings.debug == KV_DEBUG_LOCAL && does_client_connect_from_this_host(session));
}

/* --- SLEEP ------------------------------------------------------------------------------------ */

static int answer_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    return answer->error != 0 ? answer->error : kv_answer_ok(stack);
}

/* Read the seconds of DEBUG SLEEP as ns. Text that is not a number counts as 0, as in Redis. */
static uint64_t read_sleep_ns(domus_slice text)
{
    char number[32];
    size_t size = text.size < sizeof number - 1 ? text.size : sizeof number - 1;

    memcpy(number, size != 0 ? domus_slice_data(text) : "", size);
    number[size] = '\0';
    double seconds = strtod(number, NULL);
    if (!(seconds > 0))
        return 0;
    return (uint64_t)((seconds < SLEEP_MAX_S ? seconds : SLEEP_MAX_S) * NS_OF_S);
}

/* Handle DEBUG SLEEP: in Redis the whole server sleeps; here only this connection does, so its
 * later commands wait, or, if a key is given, the shard of the key. */
static int sleep_connection_or_forward_to_shard(domus_stack *stack,
                                                const domus_resp_command *command)
{
    uint64_t ns = read_sleep_ns(domus_resp_argument(command, 2));

    if (command->count == 4)
        return domus_forward(stack, kv_shards[kv_shard_of_key(domus_resp_argument(command, 3))]);
    return ns != 0 ? domus_sleep(stack, ns, answer_after_sleep) : kv_answer_ok(stack);
}

/* Run DEBUG SLEEP with a key: the shard sleeps, and all its commands wait behind a barrier. */
int kv_run_debug_sleep_of_shard(struct kv_call *call)
{
    uint64_t ns = read_sleep_ns(domus_resp_argument(call->command, 2));

    if (ns == 0)
        return kv_answer_ok(call->stack);
    if (kv_are_answers_gathered())
        return kv_answer_error(call->stack, "ERR a shard cannot sleep in a transaction");
    int error = domus_barrier(call->stack);
    return error != 0 ? error : domus_sleep(call->stack, ns, answer_after_sleep);
}

/* --- PROTOCOL --------------------------------------------------------------------------------- */

#define PUSH               ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n"
#define ATTRIB             "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
#define BEHIND(size, what) "$" size "\r\nSome real reply following the " what "\r\n"
#define BIG                "1234567999999999999999999999999999999"

/* The bytes with which Redis answers DEBUG PROTOCOL, in RESP 2 and in RESP 3. */
static const struct {
    const char *name; /* the argument of DEBUG PROTOCOL that asks for these bytes, in capitals */
    const char *bytes[2];
} samples[] = {
    {"STRING", {"$11\r\nHello World\r\n", "$11\r\nHello World\r\n"}},
    {"INTEGER", {":12345\r\n", ":12345\r\n"}},
    {"DOUBLE", {"$5\r\n3.141\r\n", ",3.141\r\n"}},
    {"BIGNUM", {"$37\r\n" BIG "\r\n", "(" BIG "\r\n"}},
    {"NULL", {"$-1\r\n", "_\r\n"}},
    {"ARRAY", {"*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n"}},
    {"SET", {"*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"}},
    {"MAP",
     {"*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n", "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"}},
    {"ATTRIB", {BEHIND("39", "attribute"), ATTRIB BEHIND("39", "attribute")}},
    {"PUSH", {"-ERR RESP2 is not supported by this command\r\n", PUSH BEHIND("40", "push reply")}},
    {"VERBATIM",
     {"$25\r\nThis is a verbatim\nstring\r\n", "=29\r\ntxt:This is a verbatim\nstring\r\n"}},
    {"TRUE", {":1\r\n", "#t\r\n"}},
    {"FALSE", {":0\r\n", "#f\r\n"}},
};

static int answer_with_sample_of_protocol_type(domus_stack *stack,
                                               const domus_resp_command *command)
{
    domus_slice word = domus_resp_argument(command, 2);
    domus_resp_reply reply = {.values = 1};

    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (!domus_resp_is(word, samples[i].name))
            continue;
        const char *bytes = samples[i].bytes[command->version == 3];
        int error = domus_slice_copy(bytes, strlen(bytes), &reply.bytes);
        return error != 0 ? error : kv_answer_reply_and_give_its_bytes(stack, reply);
    }
    return kv_answer_error(stack,
                           "ERR Wrong protocol type name. Please use one of the following: "
                           "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|"
                           "true|false");
}

/* --- the command ------------------------------------------------------------------------------ */

static int set_whether_expired_keys_go_at_once(domus_stack *stack, domus_slice text)
{
    int64_t value = 0;

    (void)kv_read_integer_in_text(domus_slice_data(text), text.size, &value);
    atomic_store_explicit(&is_lazy, value == 0, memory_order_relaxed);
    return kv_answer_ok(stack);
}

/* Accept a setting of Redis for large elements, which changes nothing, because elements of lists
 * have only one form here. */
static int check_and_ignore_packed_threshold(domus_stack *stack, domus_slice text)
{
    uint64_t bytes;

    if (!kv_read_bytes_with_unit(text, &bytes) || bytes > PACKED_MOST)
        return kv_answer_error(stack,
                               "ERR argument must be a memory value bigger than 1 and smaller than "
                               "4gb");
    return kv_answer_ok(stack);
}

int kv_serve_debug(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    const struct kv_session *session = self;
    domus_slice word = domus_resp_argument(command, 1), value = domus_resp_argument(command, 2);

    if (!kv_may_client_send_debug(session))
        return kv_answer_error(stack,
                               "ERR DEBUG command not allowed. If kv.debug is \"local\", you can "
                               "run it from a local connection, otherwise you need to set this "
                               "key in the configuration file, and then restart the server.");
    if (domus_resp_is(word, "SLEEP") && (command->count == 3 || command->count == 4))
        return sleep_connection_or_forward_to_shard(stack, command);
    if (domus_resp_is(word, "PROTOCOL") && command->count == 3)
        return answer_with_sample_of_protocol_type(stack, command);
    if (domus_resp_is(word, "SET-ACTIVE-EXPIRE") && command->count == 3)
        return set_whether_expired_keys_go_at_once(stack, value);
    if (domus_resp_is(word, "QUICKLIST-PACKED-THRESHOLD") && command->count == 3)
        return check_and_ignore_packed_threshold(stack, value);
    if (domus_resp_is(word, "RELOAD") || domus_resp_is(word, "LOADAOF"))
        return kv_answer_error(stack, "ERR this server keeps its keys in memory alone");
    return kv_answer_error_of_wrong_subcommand(stack, command);
}
