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
    uint64_t keys, expiring, expired, hits, misses, used_bytes; /* of a shard */
    uint64_t clients, accepted, commands;                       /* of a desk */
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
/* Returns 0; the error of an answer. */
int kv_figures_sum(const domus_answer *answers, struct kv_figures *ret_sum);

enum kv_client_type { KV_ANY_CLIENT, KV_NORMAL_CLIENT, KV_LISTENING_CLIENT, KV_NO_CLIENT };

/* An ask for clerks: the lines of CLIENT LIST as a slice, or the number of connections that were
 * ended. */
struct kv_search {
    uint64_t id;      /* 0: any */
    uint64_t but;     /* not this one; 0: none */
    char address[64]; /* "": any */
    bool ends;        /* end those that are found; else list them */
    enum kv_client_type type;
};

extern const domus_type kv_search_type;

int kv_ask_clerks(domus_stack *stack, const struct kv_search *search, domus_resumed *then);

/* Write the line of CLIENT LIST of a connection. */
void kv_describe(const domus_stack *stack, const struct kv_session *session,
                 domus_appender *appender);

/* The bytes that all keys may take, which CONFIG SET changes; 0: no limit. */
uint64_t kv_memory_max(void);
void kv_set_memory_max(uint64_t bytes);
uint64_t kv_memory_max_of_shard(void);

/* Write bytes as Redis does for people. */
void kv_print_bytes(char text[32], uint64_t bytes);

#endif
