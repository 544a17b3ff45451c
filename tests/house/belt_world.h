/* The world of the tests of belts: three managers, and an actor of manager 0 that records notes. */
#ifndef DOMT_HOUSE_BELT_WORLD_H
#define DOMT_HOUSE_BELT_WORLD_H

#include "house/message/belt.h"
#include "tests/house/recorder.h"

typedef struct domt_belt_world {
    domt_world world;
    domt_log logs[4];    /* the logs of up to four recorders; the first log is that of `actor` */
    domus_address actor; /* a recorder of manager 0, which writes into the first log */
} domt_belt_world;

extern domt_belt_world domt_belts;

/* Start the world, with rings of up to `slots` slots. */
void domt_belts_open_world(uint32_t slots);

domi_manager *domt_belts_manager_of_home(uint32_t index);

/* Returns the belt from manager 1 to manager 0, or NULL if nothing was ever sent over it. */
domi_belt *domt_belts_belt_from_1_to_0(void);

/* Send a note by manager `from` as domus_notice() does, with no actor as the sender. Returns the
 * result of the send. */
int domt_belts_send_note(uint32_t from, domus_address to, int64_t number);
int domt_belts_send_note_by_manager(domi_manager *from, domus_address to, int64_t number);

/* Send `count` notes from manager `from` to the actor, with numbers from `first` on; a refusal
 * fails the test. */
void domt_belts_send_notes(uint32_t from, int64_t first, uint32_t count);

/* Returns the word of the inbox of `actor`: its newest node and its depth. */
uint64_t domt_belts_inbox_word_of_actor(void);

/* Returns how many notices manager `from` has put on belts. */
uint64_t domt_belts_count_sent_by_belt(uint32_t from);

/* Check that the actor got `count` notes in order, from number `first` on. */
void domt_belts_expect_notes(int64_t first, uint32_t count);

/* Let the world settle, end it, and check the notes as domt_belts_expect_notes() does. */
void domt_belts_close_world(void);
void domt_belts_close_and_expect_notes(int64_t first, uint32_t count);

#endif
