/* The recorder: an actor that writes down what it handles, in order, and does what it is told.
 *
 *     note       'n' is written (send it as a notice)
 *     question   'a' is written; answered with an `answer` of the same number, or by `fail`
 *     inquiry    asks `to` the question `number`; 'r' is written when the answer comes, 'x' when it
 *                failed (then the number is the negative errno)
 *     tick       'e' is written (arm it as a timer)
 *     call       runs a function, as an agent does; nothing is written */
#ifndef DOMT_HOUSE_RECORDER_H
#define DOMT_HOUSE_RECORDER_H

#include "tests/support/house_world.h"

#define DOMT_LOG_MAX 16384

typedef struct domt_entry {
    char what;
    int64_t number;
} domt_entry;

typedef struct domt_log {
    uint32_t count;
    uint32_t mounts;
    uint32_t stops;
    domt_entry entries[DOMT_LOG_MAX];
} domt_log;

typedef struct domt_recorder {
    domt_log *log;
    /* 0, or the negative errno with which the recorder fails each question instead of an answer */
    int64_t fail;
} domt_recorder;

typedef struct domt_inquiry {
    domus_address to;
    int64_t number;
} domt_inquiry;

extern const domus_type domt_note;     /* a notice; payload: int64_t */
extern const domus_type domt_question; /* an ask; payload: int64_t */
extern const domus_type domt_answer;   /* the answer to a question; payload: int64_t */
/* a notice that makes the recorder ask; payload: domt_inquiry */
extern const domus_type domt_inquire;
extern const domus_type domt_tick; /* the event of a timer; payload: int64_t */

extern const domus_behaviour domt_recording;

/* Spawn a recorder on `home`, and run all homes until none has anything to do. The recorder of
 * domt_spawn_failing_recorder() answers each domt_question with -EIO. */
domus_address domt_spawn_recorder(domt_world *world, uint32_t home, domt_log *log);
domus_address domt_spawn_failing_recorder(domt_world *world, uint32_t home, domt_log *log);

/* Send a note or an inquiry from the thread of `from`, without a sender; a refusal fails the
 * test. */
void domt_send_note(domi_manager *from, domus_address to, int64_t number);
void domt_let_recorder_ask(domi_manager *from, domus_address asker, domus_address to,
                           int64_t number);

/* Return how many entries of the log have the letter `what`, and the sum of their numbers. */
uint32_t domt_log_count_letter(const domt_log *log, char what);
int64_t domt_log_sum_of_letter(const domt_log *log, char what);

/* Returns the letters of the log from entry `first` on as text, which is valid until the next
 * call. */
const char *domt_log_letters_from_entry(const domt_log *log, uint32_t first);

#endif
