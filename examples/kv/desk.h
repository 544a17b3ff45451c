/* A desk on each thread: it knows the connections of its thread, counts for INFO, and works for
 * CLIENT LIST and KILL. The connections of a thread and its clerk, an actor that others ask, never
 * leave that thread, so they share the desk without locks. */
#ifndef KV_DESK_H
#define KV_DESK_H

#include "kv.h"

extern domus_address kv_clerks[KV_THREADS_MAX];
extern uint32_t kv_clerk_count;
extern const domus_behaviour kv_clerk;

/* Put a connection on the desk of its thread, and take it away. */
void kv_desk_enter(domus_stack *stack, struct kv_session *session);
void kv_desk_leave(struct kv_session *session);

/* Figures, of which those of all shards and desks are added up. */
struct kv_figures {
    uint64_t keys, expiring, expired, hits, misses, used_bytes, waiting; /* of a shard */
    uint64_t clients, accepted, commands;                                /* of a desk */
    uint64_t silent; /* shards on other nodes that did not answer */
};

enum kv_question_kind { KV_ASK_FIGURES, KV_RESET_FIGURES, KV_LIMIT_MEMORY };

/* An ask for shards and clerks, whose answer is a struct kv_figures. */
struct kv_question {
    enum kv_question_kind kind;
    uint64_t value; /* the bytes that a shard may have */
};

extern const domus_type kv_question_type;
extern const domus_type kv_figures_type;

/* A shard's answer. */
domus_handler kv_answer_question;

/* Ask all shards and clerks, and go on with `then`, to which kv_figures_sum() gives the sum. */
int kv_ask_all(domus_stack *stack, const struct kv_question *question, domus_resumed *then);
/* Ask them, and wait for nothing. */
int kv_ask_each(domus_stack *stack, const struct kv_question *question);
/* Returns 0; the error of an answer. In a cluster shards that do not answer are counted instead, so
 * that those who watch a node hear of the others. */
int kv_figures_sum(const domus_answer *answers, struct kv_figures *ret_sum);

#define KV_IDS_MOST 64u /* the most ids that one CLIENT LIST may ask for */

enum kv_search_kind {
    KV_LIST_THEM, /* the answer is the lines of CLIENT LIST, a slice */
    KV_END_THEM,  /* how many there were, an integer */
    KV_FIND_THEM, /* a struct kv_found */
};

enum kv_client_type { KV_ANY_CLIENT, KV_NORMAL, KV_SUBSCRIBERS, KV_REPLICAS };

/* An ask for clerks, about the connections that are all of this. */
struct kv_search {
    enum kv_search_kind kind;
    enum kv_client_type type;
    uint64_t but;                /* not this one; 0: none */
    uint32_t id_count;           /* 0: any */
    char address[64], local[64]; /* "": any */
    uint64_t ids[KV_IDS_MOST];
};

/* figures of a desk */
struct kv_found {
    bool is_there;
    uint32_t shard;
    domus_address who;
};
extern const domus_type kv_found_type;

/* Whether a connection is searched. */
bool kv_is_searched(const struct kv_session *session, const struct kv_search *search);

extern const domus_type kv_search_type;

int kv_ask_clerks(domus_stack *stack, const struct kv_search *search, domus_resumed *then);

/* Write the line of CLIENT LIST of a connection. Thread-safety: its thread. */
void kv_describe(const domus_stack *stack, const struct kv_session *session,
                 domus_appender *appender);

/* The bytes that all keys may take, which CONFIG SET changes; 0: no limit. */
uint64_t kv_memory_max(void);
uint64_t kv_memory_max_of_shard(void);

/* The connections that are accepted at most, as text. */
const char *kv_clients_max(void);

/* Whether a connection may send DEBUG. */
bool kv_may_debug(const struct kv_session *session);

/* Write bytes as Redis does for people, and read them with a unit: 100, 100k, 100mb; kb, mb and gb
 * are powers of 1024, k, m and g of 1000. */
bool kv_read_bytes(domus_slice word, uint64_t *ret_bytes);
void kv_print_bytes(char text[32], uint64_t bytes);

#endif
