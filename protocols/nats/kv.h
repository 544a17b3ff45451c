/* The actors of a bucket, and the doors between their files.
 *
 * A bucket is the stream "KV_" with its name behind it; the newest message with the subject
 * "$KV.bucket.key" is the value of the key, or says that it was deleted. The actor of the bucket
 * (kv_bucket.c) answers gets and changes itself. For each watch and each list it spawns an actor
 * (kv_watch.c), which has a consumer of its own on the server. */
#ifndef DOMI_PROTOCOLS_NATS_KV_H
#define DOMI_PROTOCOLS_NATS_KV_H

#include "protocols/nats/js.h"

#include <domus/nats_kv.h>

/* Bytes of the subject of a key or pattern, with a zero. */
#define DOMI_KV_SUBJECT_SIZE (DOMUS_NATS_KV_BUCKET_MAX + DOMUS_NATS_KV_KEY_MAX + 8)

/* The state of a bucket's actor. */
typedef struct domi_kv {
    domi_js js;
    uint64_t random;
    char bucket[DOMUS_NATS_KV_BUCKET_MAX + 1];
} domi_kv;

/* Bytes of the frames of the rows of gets and changes (kv_change.c). */
#define DOMI_KV_FRAME 64u

int domi_kv_serve_get(domus_stack *stack, void *self, const void *payload);
int domi_kv_serve_put(domus_stack *stack, void *self, const void *payload);

/* --- keys (kv_keys.c) ------------------------------------------------------------------------- */

bool domi_kv_is_bucket(const char *text);

/* Returns whether this is a key, or a pattern of keys. */
bool domi_kv_is_pattern(const char *text);

/* Make the subject of a key or pattern. Both were checked before. */
void domi_kv_make_subject(const char *bucket, const char *key, char subject[DOMI_KV_SUBJECT_SIZE]);

/* --- entries (kv_entry.c) --------------------------------------------------------------------- */

/* Make an entry of a message of the bucket's stream; it gets the bytes of the message. Returns 0;
 * -EPROTO when the subject is none of this bucket; -EMSGSIZE for a longer key than there may be,
 * which a client without bounds has stored. */
int domi_kv_read_entry(const char *bucket, const domus_nats_stream_message *message,
                       domus_nats_kv_entry *ret_entry);

/* --- watches (kv_watch.c, kv_told.c, kv_round.c) ---------------------------------------------- */

#define DOMI_KV_BACKOFF_MIN UINT64_C(10000000)
#define DOMI_KV_BACKOFF_MAX UINT64_C(5000000000)
#define DOMI_KV_ASIDE_MAX   (UINT32_C(8) << 20) /* bytes that may wait for their consumer */
#define DOMI_KV_ROUNDS_MAX  4u                  /* consumers that a list may need */

/* The keys of a list (kv_list.c). */
typedef struct domi_kv_keys {
    char *bytes;
    uint32_t *slots; /* where each key begins in `bytes`, at a place of its hash; 0: free */
    uint32_t size;
    uint32_t room;
    uint32_t slots_count; /* a power of two */
    uint32_t count;       /* with those that have lost their value */
} domi_kv_keys;

/* The state of the actor of a watch or list. */
typedef struct domi_kv_watch {
    domus_address client;
    domus_nats_kv_watch options; /* `to` is the watcher, and never nobody */
    uint64_t random;
    uint64_t round;        /* number of the consumer; the tag of its subscription */
    uint64_t subscription; /* 0: there is none */
    uint64_t next;         /* sequence of the next delivery of the consumer */
    uint64_t there;        /* entries that the round had to deliver when it began */
    uint64_t met;          /* entries that it has delivered; of a list, each key once */
    uint64_t last;         /* revision of the last entry that was told; 0: none was */
    uint64_t heard_ns;     /* when the server has sent something last */
    uint64_t backoff_ns;
    uint64_t aside;       /* bytes of the messages that are put aside */
    bool has_no_timer;    /* none begins the next round, so the next beat does */
    bool is_opening;      /* the consumer is being made; messages for it are put aside */
    bool is_live;         /* messages of the round are told */
    bool is_accepted;     /* the ask was answered */
    bool is_initial_told; /* the watcher has been told that the initial entries are there */
    bool is_list;
    domus_kept asked;               /* of a list: the ask, once it is kept */
    domi_kv_keys keys;              /* of a list: those that it has met in this round */
    uint64_t seed;                  /* of their hashes */
    char inbox[DOMI_JS_INBOX_SIZE]; /* of the round */
    char bucket[DOMUS_NATS_KV_BUCKET_MAX + 1];
} domi_kv_watch;

extern const domus_behaviour domi_kv_watch_behaviour;

/* Begin a round: subscribe to a new inbox, and make a consumer that delivers there what was not
 * told yet (kv_round.c). Returns as domus_ask(). */
int domi_kv_begin_round(domus_stack *stack, domi_kv_watch *watch);

/* End the round, if there is one: nothing more of it is told (kv_end.c). */
void domi_kv_end_round(domus_stack *stack, domi_kv_watch *watch);

/* End the round, and begin another one a little later. */
void domi_kv_retry(domus_stack *stack, domi_kv_watch *watch);

/* The event that begins it; no payload. */
extern const domus_type domi_kv_again_type;

/* Give up with `error`: the asker, or the watcher, gets it, and the actor ends. Returns `error`. */
int domi_kv_give_up(domus_stack *stack, domi_kv_watch *watch, int error);

/* Tell the watcher that the initial entries are there (kv_told.c). If it takes no more, the round
 * ends. Returns 0. */
int domi_kv_tell_initial(domus_stack *stack, domi_kv_watch *watch);

/* Handle a message of the round. */
int domi_kv_hear(domus_stack *stack, domi_kv_watch *watch, const domus_nats_message *message);

/* Answer a list with its keys, and end (kv_list.c). Returns 0. */
int domi_kv_end_list(domus_stack *stack, domi_kv_watch *watch);

/* Forget the keys of a list. */
void domi_kv_drop_list(domi_kv_watch *watch);

/* Add an entry to a list. Returns 0; -E2BIG; -ENOMEM. */
int domi_kv_add_to_list(domi_kv_watch *watch, const domus_nats_kv_entry *entry);

#endif
