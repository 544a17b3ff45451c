/* A client of a store with a model of its answers: it sends commands about keys that no other
 * client uses, and the model writes down the bytes of each answer before the store has seen the
 * command.
 *
 * The answers are those of redis-server. Keys 0 to 3 are strings, of which two lie on one shard; 4
 * is a number, 5 a list, and 6 a hash. One counter is shared by all clients; no client knows the
 * answer to its INCR, but each number comes once, and those of a transaction follow each other. A
 * queue is shared, too, from which each element is taken once. Messages that a client publishes
 * reach the clients that listen, between two answers, in the order of their publisher. */
#ifndef DOMT_KV_MODEL_H
#define DOMT_KV_MODEL_H

#include "tests/runtime/net_sweep.h"

#define DOMT_KV_KEYS     7u
#define DOMT_KV_FIELDS   4u
#define DOMT_KV_ELEMENTS 64u
#define DOMT_KV_COUNTED  4096u /* most INCRs of the common counter in a seed */

typedef struct domt_kv_text {
    char *bytes; /* NULL: there is no text */
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
    bool speaks_3; /* the client speaks RESP 3, from the answer to HELLO on */
    bool is_done;  /* the client sends no more */
    bool was_rude; /* the client has closed or reset its connection */
    bool is_last;  /* the store reads nothing behind the last bytes sent */
    uint64_t sent; /* commands sent */
    char *command; /* the command that is being written */
    size_t command_size;
    size_t command_room;
    char *expected; /* all expected answers, in order */
    size_t expected_size;
    size_t expected_room;
    size_t checked; /* bytes of `expected` that have come */
    /* the last number of the common counter that the client got */
    uint64_t number_read;
    /* the client speaks RESP 3 and has subscribed to the messages of all */
    bool listens;
    /* the same as `listens`, as of the last answer that was checked */
    bool hears;
    uint32_t said;                      /* messages that the client has published */
    uint32_t heard[DOMT_SWEEP_CLIENTS]; /* number of the last message from each client */
} domt_kv_client;

/* Data shared by all clients: the numbers that the common counter has given, and the elements of
 * the common queue that were taken. */
typedef struct domt_kv_counter {
    bool given[DOMT_KV_COUNTED + 1];
    bool taken[DOMT_KV_COUNTED + 1];
    uint32_t sent, pushed;
    uint64_t messages; /* messages received, transactions undone, and elements taken */
    uint64_t undone, takes;
} domt_kv_counter;

/* Begin and end a client, whose peer belongs to the caller. */
void domt_kv_begin(domt_kv_client *client, uint32_t number, domus_peer *peer);
void domt_kv_end(domt_kv_client *client);

/* Send a command that is drawn by chance. */
void domt_kv_send(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Send bytes that are no RESP, or QUIT; the store reads nothing behind them. */
void domt_kv_send_last(domt_sweep *sweep, domt_kv_client *client);

/* Send the start of a command. */
void domt_kv_send_part(domt_kv_client *client);

/* Compare the bytes that have come with the model, and remove them. */
void domt_kv_check(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Send a round of commands that only clients of this kind have: transactions, waits, and messages.
 * The round is drawn by chance. */
void domt_kv_send_round(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Whether all expected answers have come. */
bool domt_kv_has_all(const domt_kv_client *client);

/* --- words of a client: they write its next command, and what it will hear (kv_words.c) ---------
 */

/* Bytes of `expected` that stand for what the model does not know, or that tell something about the
 * answers behind them. No value contains these bytes. */
enum {
    DOMT_KV_A_NUMBER = 1, /* a number that the common counter gives */
    DOMT_KV_A_HELLO,      /* an answer to HELLO, up to its last element, an empty array */
    DOMT_KV_THE_NEXT,     /* the number of the common counter that follows the last one */
    DOMT_KV_A_COUNT,      /* any integer */
    DOMT_KV_PERHAPS,      /* an EXEC with a number of the common counter, or null */
    DOMT_KV_A_PIECE,      /* an element of the common queue with the queue's name, or null */
    DOMT_KV_BEGIN,        /* an answer begins, and messages of others may come before it */
    DOMT_KV_MAY_END,      /* no more bytes come if the client had finished by then */
    DOMT_KV_HEARS = 14,   /* from here on messages may come */
    DOMT_KV_IS_DEAF       /* from here on no messages come */
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

/* Expect the null array. */
void domt_kv_expect_nothing(domt_kv_client *client);

/* Begin a command of `count` arguments with its name. */
void domt_kv_begin_command(domt_kv_client *client, uint32_t count, const char *name);
void domt_kv_write_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_argument(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_text(domt_kv_client *client, const domt_kv_text *text);
void domt_kv_write_key(domt_kv_client *client, uint32_t key);

/* Send the command that was written, and begin a new one. */
void domt_kv_send_command(domt_kv_client *client);

void domt_kv_text_clear(domt_kv_text *text);
void domt_kv_text_set(domt_kv_text *text, domt_kv_text value);

uint32_t domt_kv_below(domt_sweep *sweep, uint32_t n);

/* Returns a value drawn by chance, which the caller frees. */
domt_kv_text domt_kv_make_value(domt_sweep *sweep);

#endif
