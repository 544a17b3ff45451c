/* Parts that the files of kv share: the table of commands, the shards, and answers.
 *
 * A command is handled in these steps. The channel (session.c) finds its row, checks its arguments,
 * and answers commands that concern only the connection. Every other command is forwarded to the
 * shard that has its key (shard.c), or, if its keys lie on several shards, is split (scatter.c). */
#ifndef KV_H
#define KV_H

#include "store.h"

#include <domus/domus.h>

#define KV_SHARDS_MAX  256u
#define KV_THREADS_MAX 1024u
#define KV_NAME_MAX    16u     /* the most bytes of the name of a command */
#define KV_VERSION     "7.0.0" /* the version of Redis that clients are told */

/* Which clients may send DEBUG. */
enum kv_debug { KV_DEBUG_NO, KV_DEBUG_LOCAL, KV_DEBUG_YES };

struct kv_settings {
    uint64_t memory_max_bytes;  /* most bytes that all shards may use together; 0: no limit */
    uint64_t answer_max_bytes;  /* the most bytes of an answer that is put together from pieces */
    uint64_t value_max_bytes;   /* the most bytes of one argument */
    uint64_t command_max_bytes; /* the most bytes of one command */
    uint32_t arguments_max;     /* the most arguments of a command */
    /* the most bytes of commands that have come only in part, or that are not answered yet */
    uint64_t incomplete_max_bytes;
    uint32_t scan_max; /* about the number of elements that one SCAN returns */
    /* number of shards; 0: one for each thread, or 32 in a cluster */
    uint32_t shards;
    uint32_t transaction_commands; /* the most commands that one transaction may queue */
    uint64_t transaction_bytes;    /* the most bytes of the commands that one transaction queues */
    uint64_t transaction_memory;   /* the most bytes of the queued commands of all connections */
    uint32_t subscriptions_max;    /* the most subscriptions of one connection */
    uint64_t subscription_bytes;   /* the most bytes of all subscriptions of all connections */
    /* the most bytes of the keys that clients watch and wait for, in all shards */
    uint64_t observed_bytes;
    uint32_t debug; /* which clients may send DEBUG, one of enum kv_debug */
    bool cluster;   /* whether the shards are spread over the nodes of a cluster (nodes.h) */
    /* secret of the hash by which the shard of a key is found; all nodes of a cluster have the same
     * one */
    char hash_key[128];
    char password[128]; /* password that each client must give; "": none is asked for */
};

/* The settings of the program. Constant once the program has started. */
extern struct kv_settings kv_settings;
extern domus_address kv_shards[KV_SHARDS_MAX];
extern uint32_t kv_shard_count;

/* A call: a command that runs in a shard, and the key that it works on. */
struct kv_call {
    domus_stack *stack;
    struct kv_store *store;
    const domus_resp_command *command;
    domus_slice key;
    uint64_t hash; /* hash of the key that the command works on now */
};

typedef int kv_run(struct kv_call *call);

#define KV_NO_SHARD UINT32_MAX

/* The place of a connection on the desk of its thread (desk.h). */
struct kv_seat {
    struct kv_session *next, *before;
    domus_address self;
    uint64_t begun_ns;
    uint64_t commands;            /* number of commands that the client has sent */
    bool is_ending;               /* whether CLIENT KILL is ending the connection */
    const struct kv_command *row; /* row of the client's last command; NULL: none */
    const char *word;             /* subcommand of the client's last command, if it has one */
    const domus_channel *channel; /* channel of the connection; NULL: the connection is closed */
    char peer[64], local[64];     /* texts of the endpoints of the client and of this server */
};

/* The session of a client: the state of its connection. */
struct kv_session {
    /* whether every command runs at once: the client is admitted, and the session is in no special
     * state */
    bool plain;
    bool admitted;          /* whether the client has given the password, or needs none */
    bool is_gone;           /* whether the client has finished sending while a command waited */
    uint32_t watched_shard; /* the shard whose keys the client watches; KV_NO_SHARD: none */
    /* commands that the client has queued since MULTI; NULL: no transaction */
    struct kv_transaction *transaction;
    uint8_t version;                  /* version of RESP that the client speaks */
    struct kv_subscriber *subscriber; /* the connection's subscriptions (pubsub.h); NULL: none */
    /* conversation of the client's command that waits (serve_wait.c) */
    domus_conversation waiting;
    uint32_t waiting_shard; /* the shard at which the client waits; KV_NO_SHARD: none */
    char name[64];
    uint64_t id;
    struct kv_seat seat;
};

/* The place where a command runs, and the way in which the answers of several shards become one. */
enum kv_where {
    /* the command runs on the shard of its keys, all of which must be on the same one */
    KV_ONE,
    /* the command runs on several shards; the answer is an array with an element for each key */
    KV_GATHER,
    KV_SUM,        /* the command runs on several shards; the answer is the sum of their integers */
    KV_EVERYWHERE, /* the command has no key: all shards run it; the answer is a sum, or OK */
    /* the command has no key: all shards run it; the answer is an array of all their elements */
    KV_JOIN,
    /* the command has no key: all shards run it; the answer is one of theirs that is not null */
    KV_ANY,
};

/* Flags of a command in its row. */
enum {
    KV_GROWS = 1, /* the command is refused when the memory is full */
    /* the channel answers the command at once, without a shard, so a transaction may queue it */
    KV_QUEUES = 2,
    KV_ALWAYS = 4, /* a transaction does not queue the command, but serves it at once */
    /* earlier commands of the connection are answered before it runs (DOMUS_ALONE) */
    KV_ALONE = 8,
    KV_LISTENS = 16, /* a client of RESP 2 may send the command while it has subscriptions */
    /* as KV_ALONE, and the command hears at once when its client ends (DOMUS_HEARS_END) */
    KV_BLOCKS = 32,
    KV_COUNTED_1 = 64,  /* the command's keys follow their number, which is argument 1 */
    KV_COUNTED_2 = 128, /* the command's keys follow their number, which is argument 2 */
    KV_COUNTED = KV_COUNTED_1 | KV_COUNTED_2,
};

struct kv_command {
    const char *name; /* name of the command in small letters */
    /* number of the command's arguments, its name included; negative: at least so many */
    int32_t arity;
    uint32_t flags;
    enum kv_where where;
    /* index of the first key and of the last one (-1: the last argument), and distance of two
     * keys */
    int32_t first, last, step;
    kv_run *run; /* function that runs the command in a shard; NULL: no shard runs it */
    /* handles the command on the channel, and gets the command as payload; NULL: the command is
     * forwarded to the shard. With both, `serve` asks the shard. */
    domus_handler *serve;
};

/* Make the index of the commands. The program calls it once. */
void kv_make_index_of_command_names(void);
/* Returns the row of the command that has a name; NULL: there is none. */
const struct kv_command *kv_command_find(domus_slice name);
uint32_t kv_command_count(void);
const struct kv_command *kv_command_at_place_in_table(uint32_t i);
bool kv_has_right_argument_count(const struct kv_command *row, uint32_t count);
/* Answer that a command has too few or too many arguments. */
int kv_refuse_argument_count(domus_stack *stack, const struct kv_command *row);

/* Find the keys of a command whose name is argument `begin`. They are every `step`-th argument from
 * `*ret_first` to the last key, counted from `begin`. A `*ret_first` of 0: there are no keys, or
 * their number is wrong. */
void kv_find_first_and_last_key_argument(const domus_resp_command *command, uint32_t begin,
                                         const struct kv_command *row, uint32_t *ret_first,
                                         uint32_t *ret_last);

/* Find the shard of all keys of a command. Returns false if the keys lie on several shards. */
bool kv_find_only_shard_of_all_keys(const domus_resp_command *command, const struct kv_command *row,
                                    uint32_t *ret_shard);

/* Copy a command, so that the copy owns its bytes. Returns 0; -ENOMEM. */
int kv_keep_command_without_copy(const domus_resp_command *command,
                                 domus_resp_command *ret_command);

/* Returns the shard of a key. Only the part of the key in {} counts, if there is one. */
uint32_t kv_shard_of_key(domus_slice key);

/* Update what is derived from the state of a connection, after that state has changed. */
void kv_session_update_whether_plain(struct kv_session *session);

/* Behaviour of a session while one of its commands waits: the session is told when its client
 * ends. */
extern const domus_behaviour kv_waiting_session;
domus_handler kv_tell_shard_that_waiting_client_left;

/* Give a connection a name. Returns false if the bytes cannot be a name. */
bool kv_set_client_name(struct kv_session *session, domus_slice name);

/* Note the configuration of domus and the time at which the program began. Called once, before the
 * first connection. */
void kv_config_set_limits_at_start(const domus_config *config);
void kv_record_when_program_began(void);
int64_t kv_time_when_program_began_s(
    void); /* Returns the wall clock, in seconds, at which the program began. */

extern const domus_behaviour kv_shard;
/* type of the event at which a store removes expired keys (kv_set_store_time_and_arm_timer() begins
 * its timer)
 */
extern const domus_type kv_expire_type;
extern const domus_behaviour kv_sessions;
/* Copy what sessions need from the settings. The program calls it once. */
void kv_fill_options_of_client_protocol(void);

/* bytes of the frame of a conversation that handles a command on the channel */
#define KV_FRAME 16u

/* The frame of a command that was split into one command for each shard. */
struct kv_scatter {
    const struct kv_command *row;
    const domus_resp_command *command;
};

/* Answer a command whose keys lie on several shards, or that all shards run. */
int kv_ask_all_shards_of_command(domus_stack *stack, const domus_resp_command *command,
                                 const struct kv_command *row);

/* Reply with the answer of a shard without a change. The shard may live on another node. */
int kv_pass_answer_of_shard_to_client(domus_stack *stack, const domus_answer *answer);

/* --- answers ----------------------------------------------------------------------------------
 *
 * All commands answer by these, and not by domus_reply(), because the answers of a transaction are
 * gathered: they become elements of `array` until kv_gather_answers_of_transaction_in(NULL). */

void kv_gather_answers_of_transaction_in(domus_resp_builder *array);
bool kv_are_answers_gathered(void);
/* Note that a command of the running transaction has failed with a negative errno and without an
 * answer. */
void kv_gather_error_of_failed_command(int error);

int kv_answer_error(domus_stack *stack, const char *text);
int kv_answer_integer(domus_stack *stack, int64_t value);
int kv_answer_ok(domus_stack *stack);
int kv_answer_null(domus_stack *stack);
/* Reply with the string of an item. A long string is not copied: the reply refers to it. */
int kv_answer_item_as_bulk_string(domus_stack *stack, const struct kv_item *item);
int kv_answer_bytes_as_bulk_string(domus_stack *stack, domus_resp_bytes bytes);
int kv_answer_or_gather_answer(domus_stack *stack, const domus_type *type, const void *payload);
/* Reply to a command with the answer that `builder` has built. */
int kv_answer_what_builder_has_made(domus_stack *stack, domus_resp_builder *builder);
/* Reply to a command with the answer that `builder` has built, and give the connection the state
 * that its session has now. */
int kv_answer_and_set_answering_of_client(domus_stack *stack, const struct kv_session *session,
                                          domus_resp_builder *builder,
                                          domus_resp_answering answering);
/* Reply to a command with `reply`, which is consumed in every case. */
int kv_answer_reply_and_give_its_bytes(domus_stack *stack, domus_resp_reply reply);

/* Returns the most bytes that one answer may have. */
uint32_t kv_most_bytes_of_one_answer(void);

#define KV_TOO_LONG      "ERR the answer is longer than kv.answerMax"
#define KV_LONG_PATTERN  "ERR the pattern is too long"
#define KV_CROSS_SLOT    "CROSSSLOT Keys in request don't hash to the same slot"
#define KV_WRONG_TYPE    "WRONGTYPE Operation against a key holding the wrong kind of value"
#define KV_SYNTAX        "ERR syntax error"
#define KV_NO_INTEGER    "ERR value is not an integer or out of range"
#define KV_OUT_OF_MEMORY "OOM command not allowed when used memory > 'maxmemory'."

/* --- arguments -------------------------------------------------------------------------------- */

/* Read an integer as Redis does: no spaces, no plus, no leading zeros. */
bool kv_read_integer_in_text(const char *bytes, size_t size, int64_t *ret_value);
/* Print an integer as text. Returns the number of bytes; no zero follows them. */
uint32_t kv_write_integer_as_text(char text[21], int64_t value);
/* most fields that HRANDFIELD may choose when it may choose a field again */
#define KV_FIELDS_MOST 65536
#define KV_FLOAT_MAX   5120 /* most bytes of a number with a fraction as text */
bool kv_read_float_of_resp_bytes(domus_resp_bytes bytes, long double *ret_value);
/* Print a number with a fraction as text. Returns the number of bytes; no zero follows them. */
uint32_t kv_print_float(char text[KV_FLOAT_MAX], long double value);
bool kv_read_integer_argument(const struct kv_call *call, uint32_t i, int64_t *ret_value);

/* --- in the shard ----------------------------------------------------------------------------- */

/* Begin a turn of a shard: the store reads the clock. */
void kv_set_store_time_and_arm_timer(domus_stack *stack, struct kv_store *store);
/* Run a command in a shard; its arguments are checked already. Returns what the function of its row
 * returns. */
int kv_run_command_on_store(domus_stack *stack, struct kv_store *store,
                            const domus_resp_command *command, const struct kv_command *row);

/* --- keys ------------------------------------------------------------------------------------- */

/* Make argument `i` of a call the key that the call works on. */
void kv_make_argument_key_of_call(struct kv_call *call, uint32_t i);

/* Find the item of the key of a call; NULL: there is none. */
struct kv_item **kv_find_item_at_key_of_call(struct kv_call *call);
/* Find the item of the key of a call, or add an item without a value. NULL: no memory. */
struct kv_item **kv_find_or_add_item(struct kv_call *call, uint32_t room);
bool kv_is_string(const struct kv_item *item);
/* Returns the name of the type of a value, in capitals. */
const char *kv_name_of_type(const struct kv_item *item);
/* Returns whether the store may take `size` more bytes; if it may not, some trash is freed
 * first. */
bool kv_store_has_memory_for_bytes(struct kv_store *store, uint64_t size);
/* Tell other threads how much room the store has; and whether a shard, or (KV_NO_SHARD) any of
 * them, had room for so many bytes when it was last told, which is a moment ago. */
void kv_store_publish_its_free_memory(const struct kv_store *store);
/* Note that the shard of the store is no longer on this node. */
void kv_store_forget_published_memory(const struct kv_store *store);
bool kv_had_shard_memory_for_bytes(uint32_t shard, uint64_t bytes);
/* Find the list that is the value of the key of a call. Returns 1; 0 if there is no such key;
 * -EINVAL for another kind of value. */
int kv_find_list_at_key_of_call(struct kv_call *call, struct kv_item ***ret_link);

/* Add the key of a call, which must not be in the store yet, with an empty list. NULL: no
 * memory. */
struct kv_item **kv_add_empty_list_at_key_of_call(struct kv_call *call);

/* Set the value of the key of a call to a string. Returns 0; -ENOMEM, and the key is unchanged. */
int kv_set_key_to_string(struct kv_call *call, domus_slice value, bool keeps_expiry);

enum kv_time { KV_NO_TIME, KV_SECONDS, KV_MS, KV_SECONDS_AT, KV_MS_AT };

/* Returns which kind of time an option (EX, PX, EXAT, PXAT) announces. */
enum kv_time kv_kind_of_time_option(domus_slice word);

/* Read argument `i` as a time at which a key expires. Returns NULL, or the text of an error; that
 * text is `invalid` for a time out of range. */
const char *kv_read_expiry_time_of_argument(struct kv_call *call, uint32_t i, enum kv_time time,
                                            const char *invalid, uint64_t *ret_ms);

/* Returns the time of the wall clock, in ms since 1970. */
int64_t kv_wall_clock_ms(void);

/* Limits that CONFIG SET changes. Thread-safety: any thread. */
enum kv_limit {
    KV_MEMORY, /* the most bytes that all keys may take; 0: no limit */
    KV_VALUE,  /* the most bytes to which a string may grow (APPEND, SETRANGE) */
    /* the most fields of a hash, and the most bytes of a field or value, for which OBJECT ENCODING
     * says listpack */
    KV_HASH_ENTRIES,
    KV_HASH_VALUE,
    /* the limits from here on are stored for clients that ask, and have no effect */
    KV_LIST_SIZE,
    KV_LIST_DEPTH,
    KV_SET_ENTRIES,
    KV_ZSET_ENTRIES,
    KV_ZSET_VALUE,
    KV_LIMITS
};
int64_t kv_current_limit(enum kv_limit which);

/* Returns whether keys are removed as soon as they expire. If not (DEBUG SET-ACTIVE-EXPIRE), they
 * are removed when a command looks at them. */
bool kv_removes_expired_keys_at_once(void);

kv_run kv_run_get, kv_run_set, kv_run_del, kv_run_mget, kv_run_mset, kv_run_exists, kv_run_dbsize,
    kv_run_flush_of_shard, kv_run_type, kv_run_expire, kv_run_pexpire, kv_run_ttl, kv_run_pttl,
    kv_run_persist;
kv_run kv_run_getset, kv_run_setnx, kv_run_setex, kv_run_psetex, kv_run_getdel, kv_run_incr,
    kv_run_decr, kv_run_incrby, kv_run_decrby, kv_run_append, kv_run_strlen;
kv_run kv_run_lpush, kv_run_rpush, kv_run_lpushx, kv_run_rpushx, kv_run_lpop, kv_run_rpop,
    kv_run_llen, kv_run_lrange;
kv_run kv_run_expireat, kv_run_pexpireat, kv_run_expiretime, kv_run_pexpiretime, kv_run_getex,
    kv_run_getrange, kv_run_setrange, kv_run_getbit, kv_run_setbit, kv_run_incrbyfloat,
    kv_run_msetnx;
kv_run kv_run_lindex, kv_run_lset, kv_run_linsert, kv_run_lrem, kv_run_ltrim, kv_run_lpos;
kv_run kv_run_hsetnx, kv_run_hstrlen, kv_run_hincrby, kv_run_hincrbyfloat, kv_run_hrandfield,
    kv_run_hkeys, kv_run_hvals;
kv_run kv_run_scan, kv_run_hscan, kv_run_keys, kv_run_randomkey;
domus_handler kv_serve_scan;
kv_run kv_run_rename, kv_run_renamenx, kv_run_copy, kv_run_object, kv_run_memory;
kv_run kv_run_hset, kv_run_hmset, kv_run_hget, kv_run_hmget, kv_run_hexists, kv_run_hlen,
    kv_run_hdel, kv_run_hgetall;
kv_run kv_run_debug_sleep_of_shard;
domus_handler kv_serve_time, kv_serve_lastsave, kv_serve_save, kv_serve_debug;
domus_handler kv_serve_ping, kv_serve_echo, kv_serve_quit, kv_serve_select, kv_serve_config,
    kv_serve_command, kv_serve_hello, kv_serve_auth, kv_serve_client, kv_serve_info,
    kv_close_connection_that_speaks_http;

#endif
