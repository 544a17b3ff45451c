/* Duels: two threads on two CPUs come to a barrier, then each does its half at once; who wrote
 * before it looked must not miss what the other wrote before it looked. A machine that is busy gets
 * fewer rounds. */
#ifndef DOMT_HOUSE_DUEL_H
#define DOMT_HOUSE_DUEL_H

#include <stdint.h>

typedef enum domt_side { DOMT_LEFT, DOMT_RIGHT } domt_side;

/* The actions of both sides in a round. When both are done, `both_missed` judges the round and
 * makes everything ready again. */
typedef struct domt_duel {
    void (*act[2])(void *context);
    uint32_t (*both_missed)(void *context); /* how often */
    void *context;
} domt_duel;

/* Play the rounds of a duel. Returns how often both sides missed. */
uint64_t domt_duel_hold(const char *name, const domt_duel *duel);

#endif
