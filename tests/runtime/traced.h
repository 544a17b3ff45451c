/* A decoder of traces for tests: it reads the packets of a thread's sequence, looks up their texts,
 * and checks what must hold for each trace. */
#ifndef DOMT_TRACED_H
#define DOMT_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMT_TRACED_TEXT   256
#define DOMT_TRACED_EVENTS 4096

typedef struct domt_traced_event {
    char thread[DOMT_TRACED_TEXT];   /* name of the event's track */
    char type;                       /* 'B' begin, 'E' end, 'I' instant */
    char text[DOMT_TRACED_TEXT];     /* text of the event; for an end, that of its begin */
    char category[DOMT_TRACED_TEXT]; /* category of the event; for an end, that of its begin */
    uint64_t at_ns;
    uint32_t depth; /* number of begins around the event on its track */
    uint64_t flow;  /* number of the flow; 0: none */
    bool is_last;   /* the flow ends with this event */
} domt_traced_event;

typedef struct domt_traced {
    uint32_t packets;
    uint32_t threads;  /* number of tracks of threads */
    uint32_t events;   /* number of all events */
    uint32_t unended;  /* number of begins without an end */
    uint32_t named;    /* number of events that carry their text themselves */
    uint64_t clock_ns; /* the time of the clock's snapshot */
    char process[DOMT_TRACED_TEXT];
    domt_traced_event event[DOMT_TRACED_EVENTS]; /* the first events, thread after thread */
} domt_traced;

/* Decode a trace. Checks that ends match begins, that the times of a track never go back, that each
 * number of a text was defined before on the same sequence, and that each track is that of a
 * thread. */
void domt_traced_decode(const uint8_t *bytes, size_t length, domt_traced *ret_traced);

/* Returns the first event of a type with this text; NULL if there is none. */
const domt_traced_event *domt_traced_find(const domt_traced *traced, char type, const char *text);

/* Returns the first begin of `outer` on a thread with the event `inner` directly behind it; NULL if
 * there is none. */
const domt_traced_event *domt_traced_find_around(const domt_traced *traced, const char *thread,
                                                 const char *outer, const char *inner);

/* Returns the first event of a type with this text on a thread; NULL if there is none. */
const domt_traced_event *domt_traced_find_on(const domt_traced *traced, const char *thread,
                                             char type, const char *text);

/* Whether the last event of this text on a thread is a begin without an end. */
bool domt_traced_is_open(const domt_traced *traced, const char *thread, const char *text);

/* Whether protobuf's compiler, which is also a decoder, is installed; if not, a line says so. */
bool domt_protoc_is_there(void);

/* Let protoc decode the bytes by tests/runtime/trace.proto. Returns its text as one line, valid
 * until the next call. */
const char *domt_protoc_decode(const uint8_t *bytes, size_t length);

#endif
