/* Numbered messages, for tests that count messages and check their order. */
#ifndef DOMT_CLUSTER_WORDS_H
#define DOMT_CLUSTER_WORDS_H

#include <domus/pickle.h>

typedef struct domt_word {
    uint32_t pair; /* number of a pair of sender and receiver */
    uint64_t number;
} domt_word;

extern const domus_type domt_notice_type, domt_ask_type, domt_answer_type;
extern const domus_pickler domt_word_picklers[]; /* picklers of the three types above */

/* The outcome of an ask, and how often it was handled. */
typedef struct domt_asking {
    uint8_t handled, answered;
    int error;
} domt_asking;

/* Returns how many asks of an array have not ended. */
uint32_t domt_count_unended_asks(const domt_asking *asks, uint32_t count);

#endif
