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
#define DOMT_KV_COUNTED  4096u /* most INCRs of the common counter in one seed */

typedef struct domt_kv_text {
    char *bytes; /* bytes of the text; NULL: there is no text */
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
    bool was_rude; /* the client has closed or reset its connection, so answers may be lost */
    bool is_last;  /* the store reads nothing behind the last bytes that the client has sent */
    uint64_t sent; /* number of commands that the client has sent */
    char *command; /* bytes of the command that is being written */
    size_t command_size;
    size_t command_room;
    /* bytes of all answers that the client expects, in their order, with marks (see below) */
    char *expected;
    size_t expected_size;
    size_t expected_room;
    size_t checked; /* number of bytes of `expected` that were compared with what has come */
    /* last number of the common counter that the client was given */
    uint64_t number_read;
    /* the client speaks RESP 3 and has sent a subscription to the messages of all clients */
    bool listens;
    /* like `listens`, but as of the last answer that was checked */
    bool hears;
    uint32_t said;                      /* number of messages that the client has published */
    uint32_t heard[DOMT_SWEEP_CLIENTS]; /* number of the last message that came from each client */
} domt_kv_client;

/* Data that all clients of the store share: which numbers the common counter has given, and which
 * elements of the common queue were taken. */
typedef struct domt_kv_counter {
    bool given[DOMT_KV_COUNTED + 1];
    bool taken[DOMT_KV_COUNTED + 1];
    uint32_t sent, pushed;
    /* `messages`: number of messages that clients have received; `undone`: number of transactions
     * that were undone; `takes`: number of elements that were taken */
    uint64_t messages;
    uint64_t undone, takes;
} domt_kv_counter;

/* Begin a client that sends by `peer`, or free a client; the peer belongs to the caller. */
void domt_kv_client_begin(domt_kv_client *client, uint32_t number, domus_peer *peer);
void domt_kv_client_end(domt_kv_client *client);

/* Send a command that is drawn by chance, and write down the answer that the model expects. */
void domt_kv_send_random_command(domt_sweep *sweep, domt_kv_client *client,
                                 domt_kv_counter *counter);

/* Send QUIT, or bytes that are no RESP; the store reads nothing behind them. */
void domt_kv_send_quit_or_wrong_bytes(domt_sweep *sweep, domt_kv_client *client);

/* Send only the first bytes of a command. */
void domt_kv_send_part_of_command(domt_kv_client *client);

/* Compare the bytes that the client has received with the expected ones, and remove them. */
void domt_kv_check_answers(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Send a round of several commands that is drawn by chance: a transaction, a command that waits, or
 * messages between clients (kv_rounds.c). */
void domt_kv_send_random_round(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter);

/* Returns whether all answers that the client expects have come. */
bool domt_kv_has_all_answers(const domt_kv_client *client);

/* --- words of a client: they write its next command, and what it will hear (kv_rounds.c) ---------
 */

/* Marks are bytes in `expected` that stand for an answer which the model cannot know, or that tell
 * something about the answers behind them. No value contains these bytes. */
enum {
    DOMT_KV_A_NUMBER = 1, /* stands for a number that the common counter gives */
    /* stands for the answer to HELLO, up to its last element, an empty array */
    DOMT_KV_A_HELLO,
    /* stands for the number of the common counter that follows the client's last one */
    DOMT_KV_THE_NEXT,
    DOMT_KV_A_COUNT, /* stands for any integer */
    /* stands for the answer to EXEC: a number of the common counter, or null */
    DOMT_KV_PERHAPS,
    /* stands for an element of the common queue with the queue's name, or for null */
    DOMT_KV_A_PIECE,
    DOMT_KV_BEGIN,      /* an answer begins, and before it messages of other clients may come */
    DOMT_KV_MAY_END,    /* if the client had finished by now, no more bytes may come */
    DOMT_KV_HEARS = 14, /* from here on the client may receive messages of other clients */
    DOMT_KV_IS_DEAF     /* from here on the client receives no messages of other clients */
};

static inline bool domt_kv_is_mark_in_expected(char byte)
{
    return (byte >= DOMT_KV_A_NUMBER && byte <= DOMT_KV_MAY_END) || byte == DOMT_KV_HEARS ||
           byte == DOMT_KV_IS_DEAF;
}

void domt_kv_expect_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_expect_format(domt_kv_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void domt_kv_expect_null(domt_kv_client *client);
void domt_kv_expect_text(domt_kv_client *client, const domt_kv_text *text);

/* Expect the null array as the next answer. */
void domt_kv_expect_null_array(domt_kv_client *client);

/* Begin to write a command of `count` arguments, the first of which is its name. */
void domt_kv_begin_command(domt_kv_client *client, uint32_t count, const char *name);
void domt_kv_write_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_argument(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_text(domt_kv_client *client, const domt_kv_text *text);
void domt_kv_write_key(domt_kv_client *client, uint32_t key);

/* Send the command that was written, and empty the buffer for the next command. */
void domt_kv_send_command(domt_kv_client *client);

void domt_kv_text_clear(domt_kv_text *text);
void domt_kv_text_set(domt_kv_text *text, domt_kv_text value);

uint32_t domt_kv_draw_below(domt_sweep *sweep, uint32_t n);

/* Returns a value for a key, of random bytes and size, which the caller frees. */
domt_kv_text domt_kv_make_random_value(domt_sweep *sweep);

#endif
