/* A service of lines, and actors that ask the service (askers). Each line is asked only once, by
 * one asker. Each ask has one outcome: the right answer, an error, or the answer to another line,
 * which the asker counts as wrong. */
#ifndef DOMT_ASKERS_H
#define DOMT_ASKERS_H

#include <domus/domus.h>

#include <stdatomic.h>

/* Behaviour of the service's channels: it answers each line with the same line, at once or after
 * some milliseconds, so answers may change their order. */
extern const domus_behaviour domt_line_server;

/* Behaviour of the channels that connect to the service of lines, with at most 4 asks under way. */
extern const domus_behaviour domt_line_channel;

/* Tells an asker which service to ask, and how often. An asker starts with it. */
typedef struct domt_asking {
    domus_address to;
    uint32_t id;         /* number of the asker, with which its lines begin */
    uint32_t at_a_time;  /* number of the asker's asks that are under way at the same time */
    uint32_t each;       /* how many asks follow one another in each of the `at_a_time` places */
    uint64_t timeout_ns; /* time-out of each of the asker's asks; 0: none */
} domt_asking;

/* a notice with a domt_asking, which lets an asker begin */
extern const domus_type domt_asking_type;
extern const domus_behaviour domt_asker;

/* Numbers of asks of all askers: sent, answered rightly, failed, and answered wrongly. */
extern _Atomic uint64_t domt_asked, domt_answered, domt_failed, domt_wrong;

#endif
