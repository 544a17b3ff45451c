/* The table of all commands of kv. The row of a command is found by a hash of its name. */
#include "pubsub.h"
#include "transaction.h"
#include "wait.h"
#include "watch.h"

#include <assert.h>
#include <string.h>

/* number of places in the index of commands: a power of two, many times the number of commands */
#define INDEX_SIZE 1024u

static const struct kv_command commands[] = {
    /* columns of the table: name, arity, flags, where, first, last, step, run, serve (kv.h) */
    {"get", 2, 0, KV_ONE, 1, 1, 1, kv_run_get, NULL},
    {"set", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_set, NULL},
    {"del", -2, 0, KV_SUM, 1, -1, 1, kv_run_del, NULL},
    {"unlink", -2, 0, KV_SUM, 1, -1, 1, kv_run_del, NULL},
    {"exists", -2, 0, KV_SUM, 1, -1, 1, kv_run_exists, NULL},
    {"touch", -2, 0, KV_SUM, 1, -1, 1, kv_run_exists, NULL},
    {"mget", -2, 0, KV_GATHER, 1, -1, 1, kv_run_mget, NULL},
    {"mset", -3, KV_GROWS, KV_ONE, 1, -1, 2, kv_run_mset, NULL},
    {"type", 2, 0, KV_ONE, 1, 1, 1, kv_run_type, NULL},
    {"rename", 3, 0, KV_ONE, 1, 2, 1, kv_run_rename, NULL},
    {"renamenx", 3, 0, KV_ONE, 1, 2, 1, kv_run_renamenx, NULL},
    {"copy", -3, KV_GROWS, KV_ONE, 1, 2, 1, kv_run_copy, NULL},
    {"object", -2, 0, KV_ONE, 2, 2, 1, kv_run_object, NULL},
    {"memory", -2, 0, KV_ONE, 2, 2, 1, kv_run_memory, NULL},
    {"getset", 3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_getset, NULL},
    {"setnx", 3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_setnx, NULL},
    {"setex", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_setex, NULL},
    {"psetex", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_psetex, NULL},
    {"getdel", 2, 0, KV_ONE, 1, 1, 1, kv_run_getdel, NULL},
    {"incr", 2, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_incr, NULL},
    {"decr", 2, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_decr, NULL},
    {"incrby", 3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_incrby, NULL},
    {"decrby", 3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_decrby, NULL},
    {"append", 3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_append, NULL},
    {"strlen", 2, 0, KV_ONE, 1, 1, 1, kv_run_strlen, NULL},
    {"getrange", 4, 0, KV_ONE, 1, 1, 1, kv_run_getrange, NULL},
    {"substr", 4, 0, KV_ONE, 1, 1, 1, kv_run_getrange, NULL},
    {"setrange", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_setrange, NULL},
    {"getbit", 3, 0, KV_ONE, 1, 1, 1, kv_run_getbit, NULL},
    {"setbit", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_setbit, NULL},
    {"incrbyfloat", 3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_incrbyfloat, NULL},
    {"getex", -2, 0, KV_ONE, 1, 1, 1, kv_run_getex, NULL},
    {"msetnx", -3, KV_GROWS, KV_ONE, 1, -1, 2, kv_run_msetnx, NULL},
    {"lpush", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_lpush, NULL},
    {"rpush", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_rpush, NULL},
    {"lpushx", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_lpushx, NULL},
    {"rpushx", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_rpushx, NULL},
    {"lpop", -2, 0, KV_ONE, 1, 1, 1, kv_run_lpop, NULL},
    {"rpop", -2, 0, KV_ONE, 1, 1, 1, kv_run_rpop, NULL},
    {"llen", 2, 0, KV_ONE, 1, 1, 1, kv_run_llen, NULL},
    {"lrange", 4, 0, KV_ONE, 1, 1, 1, kv_run_lrange, NULL},
    {"lindex", 3, 0, KV_ONE, 1, 1, 1, kv_run_lindex, NULL},
    {"lset", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_lset, NULL},
    {"linsert", 5, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_linsert, NULL},
    {"lrem", 4, 0, KV_ONE, 1, 1, 1, kv_run_lrem, NULL},
    {"ltrim", 4, 0, KV_ONE, 1, 1, 1, kv_run_ltrim, NULL},
    {"lpos", -3, 0, KV_ONE, 1, 1, 1, kv_run_lpos, NULL},
    {"hset", -4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hset, NULL},
    {"hmset", -4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hmset, NULL},
    {"hget", 3, 0, KV_ONE, 1, 1, 1, kv_run_hget, NULL},
    {"hmget", -3, 0, KV_ONE, 1, 1, 1, kv_run_hmget, NULL},
    {"hexists", 3, 0, KV_ONE, 1, 1, 1, kv_run_hexists, NULL},
    {"hlen", 2, 0, KV_ONE, 1, 1, 1, kv_run_hlen, NULL},
    {"hdel", -3, 0, KV_ONE, 1, 1, 1, kv_run_hdel, NULL},
    {"hgetall", 2, 0, KV_ONE, 1, 1, 1, kv_run_hgetall, NULL},
    {"hkeys", 2, 0, KV_ONE, 1, 1, 1, kv_run_hkeys, NULL},
    {"hvals", 2, 0, KV_ONE, 1, 1, 1, kv_run_hvals, NULL},
    {"hsetnx", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hsetnx, NULL},
    {"hstrlen", 3, 0, KV_ONE, 1, 1, 1, kv_run_hstrlen, NULL},
    {"hincrby", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hincrby, NULL},
    {"hincrbyfloat", 4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hincrbyfloat, NULL},
    {"hrandfield", -2, 0, KV_ONE, 1, 1, 1, kv_run_hrandfield, NULL},
    {"expire", -3, 0, KV_ONE, 1, 1, 1, kv_run_expire, NULL},
    {"pexpire", -3, 0, KV_ONE, 1, 1, 1, kv_run_pexpire, NULL},
    {"expireat", -3, 0, KV_ONE, 1, 1, 1, kv_run_expireat, NULL},
    {"pexpireat", -3, 0, KV_ONE, 1, 1, 1, kv_run_pexpireat, NULL},
    {"expiretime", 2, 0, KV_ONE, 1, 1, 1, kv_run_expiretime, NULL},
    {"pexpiretime", 2, 0, KV_ONE, 1, 1, 1, kv_run_pexpiretime, NULL},
    {"ttl", 2, 0, KV_ONE, 1, 1, 1, kv_run_ttl, NULL},
    {"pttl", 2, 0, KV_ONE, 1, 1, 1, kv_run_pttl, NULL},
    {"persist", 2, 0, KV_ONE, 1, 1, 1, kv_run_persist, NULL},
    {"keys", 2, 0, KV_JOIN, 0, 0, 0, kv_run_keys, NULL},
    {"randomkey", 1, 0, KV_ANY, 0, 0, 0, kv_run_randomkey, NULL},
    {"scan", -2, 0, KV_ONE, 0, 0, 0, kv_run_scan, kv_serve_scan},
    {"hscan", -3, 0, KV_ONE, 1, 1, 1, kv_run_hscan, NULL},
    {"dbsize", 1, 0, KV_EVERYWHERE, 0, 0, 0, kv_run_dbsize, NULL},
    {"flushall", -1, 0, KV_EVERYWHERE, 0, 0, 0, kv_run_flush_of_shard, NULL},
    {"flushdb", -1, 0, KV_EVERYWHERE, 0, 0, 0, kv_run_flush_of_shard, NULL},
    {"lmove", 5, KV_GROWS, KV_ONE, 1, 2, 1, kv_run_lmove, NULL},
    {"rpoplpush", 3, KV_GROWS, KV_ONE, 1, 2, 1, kv_run_rpoplpush, NULL},
    {"lmpop", -4, KV_COUNTED_1, KV_ONE, 0, 0, 0, kv_run_lmpop, NULL},
    {"blmpop", -5, KV_COUNTED_2 | KV_ALONE | KV_BLOCKS, KV_ONE, 0, 0, 0, kv_run_blmpop,
     kv_ask_shard_to_run_blocking_command},
    {"blpop", -3, KV_ALONE | KV_BLOCKS, KV_ONE, 1, -2, 1, kv_run_blpop,
     kv_ask_shard_to_run_blocking_command},
    {"brpop", -3, KV_ALONE | KV_BLOCKS, KV_ONE, 1, -2, 1, kv_run_brpop,
     kv_ask_shard_to_run_blocking_command},
    {"blmove", 6, KV_GROWS | KV_ALONE | KV_BLOCKS, KV_ONE, 1, 2, 1, kv_run_blmove,
     kv_ask_shard_to_run_blocking_command},
    {"brpoplpush", 4, KV_GROWS | KV_ALONE | KV_BLOCKS, KV_ONE, 1, 2, 1, kv_run_brpoplpush,
     kv_ask_shard_to_run_blocking_command},
    {"multi", 1, KV_ALWAYS, KV_ONE, 0, 0, 0, NULL, kv_serve_multi},
    {"exec", 1, KV_ALWAYS, KV_ONE, 0, 0, 0, NULL, kv_ask_shard_to_run_transaction},
    {"discard", 1, KV_ALWAYS, KV_ONE, 0, 0, 0, NULL, kv_serve_discard},
    {"watch", -2, KV_ALWAYS, KV_ONE, 1, -1, 1, kv_run_watch_of_keys, kv_ask_shard_to_watch_keys},
    {"unwatch", 1, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_unwatch},
    {"subscribe", -2, KV_ALONE | KV_LISTENS, KV_ONE, 0, 0, 0, NULL, kv_serve_subscribe},
    {"psubscribe", -2, KV_ALONE | KV_LISTENS, KV_ONE, 0, 0, 0, NULL, kv_serve_subscribe},
    {"unsubscribe", -1, KV_ALONE | KV_LISTENS, KV_ONE, 0, 0, 0, NULL, kv_serve_unsubscribe},
    {"punsubscribe", -1, KV_ALONE | KV_LISTENS, KV_ONE, 0, 0, 0, NULL, kv_serve_unsubscribe},
    {"publish", 3, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_publish},
    {"pubsub", -2, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_pubsub},
    {"reset", 1, KV_ALWAYS | KV_ALONE | KV_LISTENS, KV_ONE, 0, 0, 0, NULL,
     kv_reset_session_and_answer},
    {"ping", -1, KV_QUEUES | KV_LISTENS, KV_ONE, 0, 0, 0, NULL, kv_serve_ping},
    {"echo", 2, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_echo},
    {"quit", -1, KV_ALWAYS | KV_ALONE | KV_LISTENS, KV_ONE, 0, 0, 0, NULL, kv_serve_quit},
    {"select", 2, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_select},
    {"config", -2, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_config},
    {"command", -1, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_command},
    {"hello", -1, KV_ALONE, KV_ONE, 0, 0, 0, NULL, kv_serve_hello},
    {"auth", -2, KV_QUEUES | KV_ALONE, KV_ONE, 0, 0, 0, NULL, kv_serve_auth},
    {"client", -2, KV_QUEUES | KV_ALONE, KV_ONE, 0, 0, 0, NULL, kv_serve_client},
    {"time", 1, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_time},
    {"lastsave", 1, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_lastsave},
    {"save", 1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_save},
    {"bgsave", -1, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_save},
    {"bgrewriteaof", 1, KV_QUEUES, KV_ONE, 0, 0, 0, NULL, kv_serve_save},
    {"debug", -2, KV_ALONE, KV_ONE, 0, 0, 0, kv_run_debug_sleep_of_shard, kv_serve_debug},
    {"info", -1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_info},
    {"post", -1, KV_ALWAYS, KV_ONE, 0, 0, 0, NULL, kv_close_connection_that_speaks_http},
    {"host:", -1, KV_ALWAYS, KV_ONE, 0, 0, 0, NULL, kv_close_connection_that_speaks_http},
};

/* The name of a command as two words of bytes in small letters: names have only letters (and a
 * colon), and setting the bit CASE turns only capitals into letters of this range. */
struct name {
    uint64_t begin, end;
};

#define CASE UINT64_C(0x2020202020202020)

static struct {
    struct name name;
    uint32_t size; /* number of bytes in the name; 0: this place of the index is free */
    const struct kv_command *row;
} by_name[INDEX_SIZE];

/* Read the name of a command, of 1..KV_NAME_MAX bytes, into `begin` (its first 8 bytes) and `end`
 * (its last 8), which share bytes if there are fewer than 16; a name of fewer than 8 lies in
 * `begin` alone. Capitals become small letters. */
static inline struct name read_command_name_in_small_letters(const char *bytes, uint32_t size)
{
    struct name name = {0, 0};
    uint32_t half[2];

    if (size >= sizeof name.begin) {
        memcpy(&name.begin, bytes, sizeof name.begin);
        memcpy(&name.end, bytes + size - sizeof name.end, sizeof name.end);
    } else if (size >= sizeof half[0]) {
        memcpy(&half[0], bytes, sizeof half[0]);
        memcpy(&half[1], bytes + size - sizeof half[1], sizeof half[1]);
        name.begin = half[0] | (uint64_t)half[1] << 32;
    } else {
        const unsigned char *byte = (const unsigned char *)bytes;
        name.begin = byte[0] | (uint64_t)byte[size / 2] << 8 | (uint64_t)byte[size - 1] << 16;
    }
    name.begin |= CASE;
    name.end |= CASE;
    return name;
}

static inline uint32_t place_of_name_in_command_index(struct name name, uint32_t size)
{
    return (uint32_t)(((name.begin ^ name.end * 3) + size) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

void kv_make_index_of_command_names(void)
{
    static_assert(INDEX_SIZE == 1u << (64 - 54), "the shift of place_of_name_in_command_index()");

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        uint32_t size = (uint32_t)strlen(commands[i].name);
        struct name name = read_command_name_in_small_letters(commands[i].name, size);
        uint32_t at = place_of_name_in_command_index(name, size);
        while (by_name[at].size != 0)
            at = (at + 1) % INDEX_SIZE;
        by_name[at].name = name;
        by_name[at].size = size;
        by_name[at].row = &commands[i];
    }
}

const struct kv_command *kv_command_find(domus_slice bytes)
{
    if (bytes.size - 1 >= KV_NAME_MAX)
        return NULL;
    struct name name = read_command_name_in_small_letters(domus_slice_data(bytes), bytes.size);
    for (uint32_t at = place_of_name_in_command_index(name, bytes.size); by_name[at].size != 0;
         at = (at + 1) % INDEX_SIZE) {
        if (by_name[at].name.begin == name.begin && by_name[at].name.end == name.end &&
            by_name[at].size == bytes.size)
            return by_name[at].row;
    }
    return NULL;
}

uint32_t kv_command_count(void)
{
    return sizeof commands / sizeof commands[0];
}

const struct kv_command *kv_command_at_place_in_table(uint32_t i)
{
    return &commands[i];
}

bool kv_has_right_argument_count(const struct kv_command *row, uint32_t count)
{
    return row->arity >= 0 ? count == (uint32_t)row->arity : count >= (uint32_t)-row->arity;
}
