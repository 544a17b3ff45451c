/* Actors that ask a service of lines, and the service. Each line is asked once, by one asker. An
 * asker that gets the answer to another line counts it as wrong, and each ask has one outcome. */
#ifndef DOMT_ASKERS_H
#define DOMT_ASKERS_H

#include <domus/domus.h>

#include <stdatomic.h>

/* A channel of the service: it answers each line with the same line, at once or after some ms, so
 * answers may change their order. */
extern const domus_behaviour domt_line_server;

/* A channel of the client. */
extern const domus_behaviour domt_line_channel;

/* The orders of an asker. */
typedef struct domt_asking {
    domus_address to;
    uint32_t id;         /* number of the asker: its lines begin with it */
    uint32_t at_a_time;  /* asks that the asker has under way at a time */
    uint32_t each;       /* asks that follow one another in each of these places */
    uint64_t timeout_ns; /* time-out of each ask; 0: none */
} domt_asking;

extern const domus_type domt_asking_type; /* a notice that lets an asker begin */
extern const domus_behaviour domt_asker;

/* Sums over all askers. */
extern _Atomic uint64_t domt_asked, domt_answered, domt_failed, domt_wrong;

#endif
