/* Actors that ask a service of lines, each line by one of them and once, and the service. Whoever
 * gets the answer to another line than its own counts it as wrong, and each ask has one outcome. */
#ifndef DOMT_ASKERS_H
#define DOMT_ASKERS_H

#include <domus/domus.h>

#include <stdatomic.h>

/* The channel of a service: the answer to a line is the line, at once or after some ms, and not in
 * their order. */
extern const domus_behaviour domt_line_server;

/* The channel of its client. */
extern const domus_behaviour domt_line_channel;

/* Orders for an asker. */
typedef struct domt_asking {
    domus_address to;
    uint32_t id;         /* of the asker: the lines that it sends begin with it */
    uint32_t at_a_time;  /* asks that it has under way */
    uint32_t each;       /* how many asks follow one another in each of these */
    uint64_t timeout_ns; /* of each ask; 0: none */
} domt_asking;

extern const domus_type domt_asking_type; /* a notice that lets an asker begin */
extern const domus_behaviour domt_asker;

/* Sums over all askers. */
extern _Atomic uint64_t domt_asked, domt_answered, domt_failed, domt_wrong;

#endif
