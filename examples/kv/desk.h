/* A desk on each thread: it knows the connections of its thread, counts for INFO, and serves CLIENT
 * LIST and CLIENT KILL. The connections of a thread and its clerk, an actor that others ask, never
 * leave that thread, so they share the desk without locks. */
#ifndef KV_DESK_H
#define KV_DESK_H

#include "kv.h"

extern domus_address kv_clerks[KV_THREADS_MAX];
extern uint32_t kv_clerk_count;
extern const domus_behaviour kv_clerk;

/* Add a connection to the desk of its thread, or remove it. */
void kv_desk_add_session(domus_stack *stack, struct kv_session *session);
void kv_desk_remove_session(struct kv_session *session);

/* Figures of shards and of desks, which are added up for INFO. */
struct kv_figures {
    /* figures of a shard: its keys and its memory */
    uint64_t keys, expiring, expired, hits, misses, used_bytes, waiting;
    /* figures of a desk: its connections */
    uint64_t clients, accepted, commands;
    uint64_t silent; /* number of shards on other nodes that did not answer */
};

enum kv_question_kind { KV_ASK_FIGURES, KV_RESET_FIGURES, KV_LIMIT_MEMORY };

/* The payload of an ask to shards and clerks (desk.c), whose answer is a struct kv_figures. */
struct kv_question {
    enum kv_question_kind kind;
    uint64_t value; /* for a question that sets a limit: the bytes that a shard may have */
};

extern const domus_type kv_question_type;
extern const domus_type kv_figures_type;

/* The handler of a shard for a kv_question. */
domus_handler kv_reply_with_figures_of_shard;

/* Ask all shards and clerks for their figures, and continue with `then`, where
 * kv_add_up_answered_figures() adds up the answers. */
int kv_ask_shards_and_clerks_and_wait(domus_stack *stack, const struct kv_question *question,
                                      domus_resumed *then);
/* Ask all shards and clerks for their figures, without waiting for the answers. */
int kv_ask_shards_and_clerks_only(domus_stack *stack, const struct kv_question *question);
/* Add up the figures in the answers to kv_ask_shards_and_clerks_and_wait(). Returns 0; the error of
 * an answer. In a cluster, shards that do not answer are counted instead, so that observers of a
 * node get the figures of the others. */
int kv_add_up_answered_figures(const domus_answer *answers, struct kv_figures *ret_sum);

#define KV_IDS_MOST 64u /* most ids of clients that one CLIENT LIST may name */

enum kv_search_kind {
    /* answered with the lines of CLIENT LIST for the connections that match, as a slice */
    KV_LIST_THEM,
    KV_END_THEM,  /* ends the connections that match; answered with their number, an integer */
    KV_FIND_THEM, /* finds a connection that matches; answered with a struct kv_found */
};

enum kv_client_type { KV_ANY_CLIENT, KV_NORMAL, KV_SUBSCRIBERS, KV_REPLICAS };

/* The payload of an ask to clerks about some connections: those that match all its members. */
struct kv_search {
    enum kv_search_kind kind;
    enum kv_client_type type;
    uint64_t but; /* id of a connection that does not match in any case; 0: none */
    /* number of ids in `ids`, one of which must match; 0: any connection matches */
    uint32_t id_count;
    char address[64], local[64]; /* texts of the endpoints that must match; "": any */
    uint64_t ids[KV_IDS_MOST];
};

/* The answer of a clerk to KV_FIND_THEM: whether its desk has such a connection. */
struct kv_found {
    bool is_there;
    uint32_t shard;
    domus_address who;
};
extern const domus_type kv_found_type;

/* Returns whether a connection matches all members of a search. */
bool kv_session_matches_search(const struct kv_session *session, const struct kv_search *search);

extern const domus_type kv_search_type;

int kv_ask_all_clerks_to_search(domus_stack *stack, const struct kv_search *search,
                                domus_resumed *then);

/* Write the line that CLIENT LIST has for a connection. Thread-safety: the thread of the
 * connection. */
void kv_write_client_line(const domus_stack *stack, const struct kv_session *session,
                          domus_appender *appender);

/* Returns the bytes that all keys may take together, which CONFIG SET changes; 0: no limit. */
uint64_t kv_memory_max(void);
uint64_t kv_memory_max_of_shard(void);

/* Returns the most connections that are accepted at a time, as text. */
const char *kv_text_of_most_clients(void);

/* Returns whether a connection may send the command DEBUG. */
bool kv_may_client_send_debug(const struct kv_session *session);

/* Write a number of bytes as Redis does for people, and read a number of bytes with a unit: 100,
 * 100k, 100mb; kb, mb and gb are powers of 1024, k, m and g of 1000. */
bool kv_read_bytes_with_unit(domus_slice word, uint64_t *ret_bytes);
void kv_print_bytes_with_unit(char text[32], uint64_t bytes);

#endif
