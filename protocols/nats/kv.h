/* The actors of a bucket, and the functions that their files call of each other.
 *
 * A bucket is the stream "KV_" with its name behind it; the newest message with the subject
 * "$KV.bucket.key" has the value of the key, or says that it was deleted. The actor of the bucket
 * (kv_bucket.c) handles gets and changes itself. For each watch and each list it spawns an actor
 * (kv_watch.c), which has its own consumer on the server. */
#ifndef DOMI_PROTOCOLS_NATS_KV_H
#define DOMI_PROTOCOLS_NATS_KV_H

#include "protocols/nats/js.h"

#include <domus/nats_kv.h>

/* Bytes of the subject of a key or of a pattern of keys, with the zero at its end. */
#define DOMI_KV_SUBJECT_SIZE (DOMUS_NATS_KV_BUCKET_MAX + DOMUS_NATS_KV_KEY_MAX + 8)

/* The state of a bucket's actor. */
typedef struct domi_kv {
    domi_js js;
    uint64_t random;
    char bucket[DOMUS_NATS_KV_BUCKET_MAX + 1];
} domi_kv;

/* Bytes of the frames of the DOMUS_SEQUENCEs that serve gets and changes (kv_change.c). */
#define DOMI_KV_FRAME 64u

int domi_kv_serve_get_of_key(domus_stack *stack, void *self, const void *payload);
int domi_kv_serve_change_of_key(domus_stack *stack, void *self, const void *payload);

/* --- keys (kv_keys.c) ------------------------------------------------------------------------- */

bool domi_kv_is_valid_bucket_name(const char *text);

/* Returns whether a text is a valid key, or a valid pattern of keys. */
bool domi_kv_is_valid_key_pattern(const char *text);

/* Make the subject of a key or pattern of keys. The caller has checked bucket and key. */
void domi_kv_make_subject_of_key(const char *bucket, const char *key,
                                 char subject[DOMI_KV_SUBJECT_SIZE]);

/* --- entries (kv_entry.c) --------------------------------------------------------------------- */

/* Make an entry from a message of the bucket's stream; the entry gets the bytes of the message.
 * Returns 0; -EPROTO for a subject that is not of this bucket; -EMSGSIZE for a key that is too
 * long, which another client without this bound has stored. */
int domi_kv_read_entry_of_message(const char *bucket, const domus_nats_stream_message *message,
                                  domus_nats_kv_entry *ret_entry);

/* --- watches (kv_watch.c, kv_told.c, kv_round.c) ---------------------------------------------- */

#define DOMI_KV_BACKOFF_MIN UINT64_C(10000000)
#define DOMI_KV_BACKOFF_MAX UINT64_C(5000000000)
/* bytes of a watch's messages that may wait until the consumer is made, at most */
#define DOMI_KV_ASIDE_MAX (UINT32_C(8) << 20)
/* rounds that a list of keys may need before it fails; each round is a consumer */
#define DOMI_KV_ROUNDS_MAX 4u

/* The keys that a list has got so far (kv_list.c). */
typedef struct domi_kv_keys {
    char *bytes;
    uint32_t *slots; /* hash table: a slot has the offset of a key in `bytes`, or 0 if it is free */
    uint32_t size;
    uint32_t room;
    uint32_t slots_count; /* number of slots in the hash table, a power of two */
    uint32_t count; /* number of keys in the table, including keys that were deleted meanwhile */
} domi_kv_keys;

/* The state of an actor that serves a watch or a list. */
typedef struct domi_kv_watch {
    domus_address client;
    domus_nats_kv_watch options; /* options of the watch, in which `to` is always an actor */
    uint64_t random;
    /* number of the current round and its consumer, and the tag of its subscription */
    uint64_t round;
    uint64_t subscription; /* number of the subscription of the current round; 0: there is none */
    uint64_t next;         /* sequence number that the consumer's next delivery must have */
    uint64_t there;        /* number of entries that existed when the current round began */
    /* number of entries that the current round has delivered; in a list each key counts once */
    uint64_t met;
    /* revision of the last entry that was sent to the watcher; 0: none was sent */
    uint64_t last;
    uint64_t heard_ns; /* time at which the server has last sent something to this watch */
    uint64_t backoff_ns;
    uint64_t aside; /* bytes of the messages that were put aside until the consumer is made */
    /* there was no timer for the next round, so the next heartbeat check begins that round */
    bool has_no_timer;
    bool is_opening;      /* the round's consumer is being made, and its messages are put aside */
    bool is_live;         /* the round's consumer is made, and its messages are handled */
    bool is_accepted;     /* the ask for the watch was answered, or the ask for the list was kept */
    bool is_initial_told; /* the watcher was told that all initial entries have come */
    bool is_list;
    domus_kept asked;               /* for a list: the kept ask, which its keys will answer */
    domi_kv_keys keys;              /* for a list: the keys that have come in this round */
    uint64_t seed;                  /* seed of the hashes of `keys` */
    char inbox[DOMI_JS_INBOX_SIZE]; /* inbox to which the consumer of the current round delivers */
    char bucket[DOMUS_NATS_KV_BUCKET_MAX + 1];
} domi_kv_watch;

extern const domus_behaviour domi_kv_watch_behaviour;

/* Begin a round: subscribe to a new inbox, and make a consumer that delivers there the entries
 * which were not sent to the watcher yet (kv_round.c). Returns as domus_ask(). */
int domi_kv_begin_watch_round(domus_stack *stack, domi_kv_watch *watch);

/* End the current round of a watch, if there is one: no further message of it is handled
 * (kv_end.c). */
void domi_kv_unsubscribe_and_end_round(domus_stack *stack, domi_kv_watch *watch);

/* End the current round of a watch, and begin another one after a short delay, which grows. */
void domi_kv_end_round_and_begin_next_later(domus_stack *stack, domi_kv_watch *watch);

/* The event, without a payload, on which a watch begins its next round. */
extern const domus_type domi_kv_again_type;

/* Give up a watch or list with `error`: its asker or its watcher gets the error, and its actor
 * ends. Returns `error`. */
int domi_kv_stop_watch_and_tell_error(domus_stack *stack, domi_kv_watch *watch, int error);

/* Tell the watcher that all initial entries have come (kv_told.c). If it accepts no notice, the
 * round ends. Returns 0. */
int domi_kv_tell_end_of_initial_entries(domus_stack *stack, domi_kv_watch *watch);

/* Handle a message that the server has delivered in the current round of a watch. */
int domi_kv_take_entry_or_status_of_round(domus_stack *stack, domi_kv_watch *watch,
                                          const domus_nats_message *message);

/* Answer the ask for a list with the keys, and end the actor of the list (kv_list.c). Returns 0. */
int domi_kv_answer_list_and_stop_watch(domus_stack *stack, domi_kv_watch *watch);

/* Free the keys that a list has got. */
void domi_kv_free_keys_of_list(domi_kv_watch *watch);

/* Add the key of an entry to a list, or remove it if the entry is a delete. Returns 0; -E2BIG;
 * -ENOMEM. */
int domi_kv_add_entry_to_list(domi_kv_watch *watch, const domus_nats_kv_entry *entry);

#endif
