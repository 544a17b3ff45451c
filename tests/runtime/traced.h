/* Decodes traces for Perfetto (domus/trace.h) in tests: it reads the packets of each thread's
 * sequence, looks up the texts of the events, and checks what must hold for every trace. */
#ifndef DOMT_TRACED_H
#define DOMT_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMT_TRACED_TEXT   256
#define DOMT_TRACED_EVENTS 4096

typedef struct domt_traced_event {
    char thread[DOMT_TRACED_TEXT]; /* name of the track (the thread) that has the event */
    char type;                     /* type of the event: 'B' begin, 'E' end, 'I' instant */
    char text[DOMT_TRACED_TEXT];   /* text of the event; an end has the text of its begin */
    /* category of the event; an end has the category of its begin */
    char category[DOMT_TRACED_TEXT];
    uint64_t at_ns;
    uint32_t depth; /* number of open begins around the event on its track */
    uint64_t flow;  /* number of the flow that goes through the event; 0: none */
    bool is_last;   /* true: the flow ends with this event */
} domt_traced_event;

typedef struct domt_traced {
    uint32_t packets;
    uint32_t threads; /* number of tracks of threads in the trace */
    uint32_t events;  /* number of all events in the trace */
    uint32_t unended; /* number of begins in the trace that have no end */
    /* number of events that carry their text themselves, instead of its number */
    uint32_t named;
    uint64_t clock_ns; /* time of the trace's snapshot of the clock */
    char process[DOMT_TRACED_TEXT];
    /* the first events of the trace, thread after thread */
    domt_traced_event event[DOMT_TRACED_EVENTS];
} domt_traced;

/* Decode a trace. The test fails unless ends match begins, the times of a track never go back, each
 * number of a text was defined before on the same sequence, and each track is that of a thread. */
void domt_traced_decode(const uint8_t *bytes, size_t length, domt_traced *ret_traced);

/* Returns the trace's first event of this type with this text; NULL if there is none. */
const domt_traced_event *domt_traced_find_event(const domt_traced *traced, char type,
                                                const char *text);

/* Returns the first begin with the text `outer` on a thread that is directly followed by an event
 * with the text `inner`; NULL if there is none. */
const domt_traced_event *domt_traced_find_begin_around(const domt_traced *traced,
                                                       const char *thread, const char *outer,
                                                       const char *inner);

/* Returns the first event of this type with this text on a thread of the trace; NULL if there is
 * none. */
const domt_traced_event *domt_traced_find_event_on_thread(const domt_traced *traced,
                                                          const char *thread, char type,
                                                          const char *text);

/* Returns whether the last event with this text on a thread of the trace is a begin, so that it has
 * no end. */
bool domt_traced_is_last_span_open(const domt_traced *traced, const char *thread, const char *text);

/* Returns whether protobuf's compiler protoc, which can also decode, is installed; if not, a line
 * says so. */
bool domt_protoc_is_installed(void);

/* Let protoc decode the bytes of a trace by tests/runtime/trace.proto. Returns its text as one
 * line, valid until the next call. */
const char *domt_protoc_decode_trace(const uint8_t *bytes, size_t length);

#endif
