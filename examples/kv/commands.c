/* The table of commands, and how a command finds its row: by a hash of its name. */
#include "kv.h"

#include <string.h>

#define INDEX_SIZE 1024u /* a power of two, many times the number of commands */
#define NAME_MAX_  16u

static const struct kv_command commands[] = {
    /* name, arity, flags, where, first, last, step, run, serve */
    {"get", 2, 0, KV_ONE, 1, 1, 1, kv_run_get, NULL},
    {"set", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_set, NULL},
    {"del", -2, 0, KV_SUM, 1, -1, 1, kv_run_del, NULL},
    {"unlink", -2, 0, KV_SUM, 1, -1, 1, kv_run_del, NULL},
    {"exists", -2, 0, KV_SUM, 1, -1, 1, kv_run_exists, NULL},
    {"touch", -2, 0, KV_SUM, 1, -1, 1, kv_run_exists, NULL},
    {"mget", -2, 0, KV_GATHER, 1, -1, 1, kv_run_mget, NULL},
    {"mset", -3, KV_GROWS, KV_ONE, 1, -1, 2, kv_run_mset, NULL},
    {"type", 2, 0, KV_ONE, 1, 1, 1, kv_run_type, NULL},
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
    {"lpush", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_lpush, NULL},
    {"rpush", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_rpush, NULL},
    {"lpushx", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_lpushx, NULL},
    {"rpushx", -3, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_rpushx, NULL},
    {"lpop", -2, 0, KV_ONE, 1, 1, 1, kv_run_lpop, NULL},
    {"rpop", -2, 0, KV_ONE, 1, 1, 1, kv_run_rpop, NULL},
    {"llen", 2, 0, KV_ONE, 1, 1, 1, kv_run_llen, NULL},
    {"lrange", 4, 0, KV_ONE, 1, 1, 1, kv_run_lrange, NULL},
    {"hset", -4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hset, NULL},
    {"hmset", -4, KV_GROWS, KV_ONE, 1, 1, 1, kv_run_hmset, NULL},
    {"hget", 3, 0, KV_ONE, 1, 1, 1, kv_run_hget, NULL},
    {"hmget", -3, 0, KV_ONE, 1, 1, 1, kv_run_hmget, NULL},
    {"hexists", 3, 0, KV_ONE, 1, 1, 1, kv_run_hexists, NULL},
    {"hlen", 2, 0, KV_ONE, 1, 1, 1, kv_run_hlen, NULL},
    {"hdel", -3, 0, KV_ONE, 1, 1, 1, kv_run_hdel, NULL},
    {"hgetall", 2, 0, KV_ONE, 1, 1, 1, kv_run_hgetall, NULL},
    {"expire", -3, 0, KV_ONE, 1, 1, 1, kv_run_expire, NULL},
    {"pexpire", -3, 0, KV_ONE, 1, 1, 1, kv_run_pexpire, NULL},
    {"ttl", 2, 0, KV_ONE, 1, 1, 1, kv_run_ttl, NULL},
    {"pttl", 2, 0, KV_ONE, 1, 1, 1, kv_run_pttl, NULL},
    {"persist", 2, 0, KV_ONE, 1, 1, 1, kv_run_persist, NULL},
    {"dbsize", 1, 0, KV_EVERYWHERE, 0, 0, 0, kv_run_dbsize, NULL},
    {"flushall", -1, 0, KV_EVERYWHERE, 0, 0, 0, kv_run_flush, NULL},
    {"flushdb", -1, 0, KV_EVERYWHERE, 0, 0, 0, kv_run_flush, NULL},
    {"ping", -1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_ping},
    {"echo", 2, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_echo},
    {"quit", -1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_quit},
    {"select", 2, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_select},
    {"config", -2, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_config},
    {"command", -1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_command},
    {"hello", -1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_hello},
    {"auth", -2, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_auth},
    {"client", -2, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_client},
    {"info", -1, 0, KV_ONE, 0, 0, 0, NULL, kv_serve_info},
};

static const struct kv_command *by_name[INDEX_SIZE];

static uint32_t place_of(const char *name, uint32_t size)
{
    uint32_t hash = size;

    for (uint32_t i = 0; i < size; i++)
        hash = hash * 33 + ((unsigned char)name[i] | 0x20u);
    return (hash ^ hash >> 10) % INDEX_SIZE;
}

void kv_commands_begin(void)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        uint32_t at = place_of(commands[i].name, (uint32_t)strlen(commands[i].name));
        while (by_name[at] != NULL)
            at = (at + 1) % INDEX_SIZE;
        by_name[at] = &commands[i];
    }
}

static bool is_name(const char *name, const char *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        char c = bytes[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != name[i])
            return false; /* also where the name ends */
    }
    return name[size] == '\0';
}

const struct kv_command *kv_command_find(domus_slice name)
{
    const char *bytes = domus_slice_data(name);
    const struct kv_command *row;

    if (name.size > NAME_MAX_ || memchr(bytes, '\0', name.size) != NULL)
        return NULL;
    for (uint32_t at = place_of(bytes, name.size); (row = by_name[at]) != NULL;
         at = (at + 1) % INDEX_SIZE) {
        if (is_name(row->name, bytes, name.size))
            return row;
    }
    return NULL;
}

bool kv_arity_holds(const struct kv_command *row, uint32_t count)
{
    return row->arity >= 0 ? count == (uint32_t)row->arity : count >= (uint32_t)-row->arity;
}
