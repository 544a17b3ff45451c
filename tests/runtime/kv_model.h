/* A client of a store and what it must hear: it sends commands about keys that nobody else has, and
 * a model of these keys writes down the bytes of each answer before the store has seen the command.
 *
 * The answers are those of redis-server. Keys 0 to 3 are strings, of which two lie on one shard; 4
 * is a number, 5 a list, and 6 a hash. One counter belongs to all clients together; nobody knows
 * the answer to its INCR, but each number comes once, and those of a transaction follow each other.
 * A queue belongs to all, too, from which each element is taken once; and what one publishes is
 * heard by those who listen, between two answers, in the order of its publisher. */
#ifndef DOMT_KV_MODEL_H
#define DOMT_KV_MODEL_H

#include "tests/runtime/net_sweep.h"

#define DOMT_KV_KEYS     7u
#define DOMT_KV_FIELDS   4u
#define DOMT_KV_ELEMENTS 64u
#define DOMT_KV_COUNTED  4096u /* INCRs of the common counter in a seed, at most */

typedef struct domt_kv_text {
    char *bytes; /* NULL: there is none */
    size_t size;
} domt_kv_text;

typedef struct domt_kv_client {
    uint32_t number;
    domus_peer *peer;
    domt_kv_text strings[4];
    bool has_count;
    int64_t count;
    domt_kv_text elements[DOMT_KV_ELEMENTS];
    uint32_t elements_count;
    domt_kv_text fields[DOMT_KV_FIELDS];
    bool speaks_3; /* RESP 3, from the answer to HELLO on */
    bool is_done;  /* it sends no more */
    bool was_rude; /* it has closed or reset */
    bool is_last;  /* behind what it has sent last, nothing is looked at */
    uint64_t sent; /* commands */
    char *command; /* which is being written */
    size_t command_size;
    size_t command_room;
    char *expected; /* all answers, in their order */
    size_t expected_size;
    size_t expected_room;
    size_t checked;                     /* bytes of `expected` that have come */
    uint64_t number_read;               /* of the common counter, last */
    bool listens;                       /* of RESP 3, it has subscribed to what all say */
    bool hears;                         /* the same, as far as its answers were checked */
    uint32_t said;                      /* messages that it has published */
    uint32_t heard[DOMT_SWEEP_CLIENTS]; /* the last message of each client */
} domt_kv_client;

/* Things that belong to all clients: the numbers that the common counter has given, and the
 * elements of the common queue that were taken. */
typedef struct domt_kv_counter {
    bool given[DOMT_KV_COUNTED + 1];
    bool taken[DOMT_KV_COUNTED + 1];
    uint32_t sent, pushed;
    uint64_t messages; /* that were heard, and transactions that were undone, and elements taken */
    uint64_t undone, takes;
} domt_kv_counter;

/* Begin and end with a client, whose peer is the caller's. */
void domt_kv_begin(domt_kv_client *client, uint32_t number, domus_peer *peer);
void domt_kv_end(domt_kv_client *client);

/* Send a command, by chance. */
void domt_kv_send(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Send bytes that are no RESP, or QUIT, behind which the store looks at nothing. */
void domt_kv_send_last(domt_sweep *sweep, domt_kv_client *client);

/* Send the start of a command. */
void domt_kv_send_part(domt_kv_client *client);

/* Hold what has come against the model, and take it. */
void domt_kv_check(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Commands that clients of other kinds have not, by chance: transactions, waits, and messages. Each
 * is a round of several commands. */
void domt_kv_send_round(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Whether all answers have come. */
bool domt_kv_has_all(const domt_kv_client *client);

/* --- words of a client: they write its next command, and what it will hear (kv_words.c) ---------
 */

/* Bytes of `expected` that stand for what the model does not know, or that tell something of the
 * answers behind them. No value has them. */
enum {
    DOMT_KV_A_NUMBER = 1, /* a value of the common counter */
    DOMT_KV_A_HELLO,      /* up to its last element, an empty array */
    DOMT_KV_THE_NEXT,     /* of the common counter, the one behind the last number */
    DOMT_KV_A_COUNT,      /* an integer, whatever it is */
    DOMT_KV_PERHAPS,      /* an EXEC with a number of the common counter, or null */
    DOMT_KV_A_PIECE,      /* an element of the common queue with the name of this, or null */
    DOMT_KV_BEGIN,        /* an answer begins, and there may be messages of others before it */
    DOMT_KV_MAY_END,      /* nothing more comes if the client had finished by then */
    DOMT_KV_HEARS = 14,   /* from here on there may be messages */
    DOMT_KV_IS_DEAF       /* and from here on none */
};

static inline bool domt_kv_is_mark(char byte)
{
    return (byte >= DOMT_KV_A_NUMBER && byte <= DOMT_KV_MAY_END) || byte == DOMT_KV_HEARS ||
           byte == DOMT_KV_IS_DEAF;
}

void domt_kv_expect_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_expect(domt_kv_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void domt_kv_expect_null(domt_kv_client *client);
void domt_kv_expect_text(domt_kv_client *client, const domt_kv_text *text);

/* The null array. */
void domt_kv_expect_nothing(domt_kv_client *client);

/* Begin a command of `count` arguments with its name. */
void domt_kv_begin_command(domt_kv_client *client, uint32_t count, const char *name);
void domt_kv_write_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_argument(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_text(domt_kv_client *client, const domt_kv_text *text);
void domt_kv_write_key(domt_kv_client *client, uint32_t key);

/* Send what was written, and begin anew. */
void domt_kv_send_command(domt_kv_client *client);

void domt_kv_text_clear(domt_kv_text *text);
void domt_kv_text_set(domt_kv_text *text, domt_kv_text value);

uint32_t domt_kv_below(domt_sweep *sweep, uint32_t n);

/* A value by chance; the caller's. */
domt_kv_text domt_kv_make_value(domt_sweep *sweep);

#endif
