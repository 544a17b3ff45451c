/* Lines: channels that are actors with a state of their own, and record the calls of their
 * functions.
 *
 * The owner has the state of a line, too, so that channels can share it; its name is z. Lines are
 * named by letters from a on, in the order of their mounts. Each record is a letter for the line
 * and one for the function: m mount, o open, r read, n notice, c close, s stop. */
#ifndef DOMT_LINE_H
#define DOMT_LINE_H

#include "tests/io/bed.h"

typedef struct domt_line {
    char name;
    uint32_t bytes; /* number of bytes that the line has read */
} domt_line;

typedef struct domt_lines {
    domus_address owner;   /* the actor to which all lines belong */
    domus_address watcher; /* the actor that watches others, on the same thread */
    char told[256];        /* record of the calls, as "am ao " */
    int mount_result;      /* results that on_mount and the handler of notices return */
    int note_result;
    uint32_t answers;   /* number of lines' conversations that have been resumed */
    uint32_t cancelled; /* number of those that were cancelled */
    uint32_t downs;     /* number of ends that the watcher was told of */
    int down_reason;    /* reason of the last end that the watcher was told of */
} domt_lines;

extern domt_lines domt_lines_now;

/* Behaviours of owners: of lines; of lines whose conversations go on; of lines that share the
 * owner's state. */
extern const domus_behaviour domt_owner_of_lines;
extern const domus_behaviour domt_owner_of_lasting;
extern const domus_behaviour domt_owner_of_sharing;
extern const domus_behaviour
    domt_owner_with_rules; /* an owner of lines that escalates each failure of an actor below it */

extern const domus_type domt_note_type; /* lets a line record the notice */
/* lets a line sleep for 9 ms, or for 5 ms if its bytes were "5" */
extern const domus_type domt_nap_type;
extern const domus_type domt_escalate_type;
extern const domus_type domt_bear_type;  /* lets a line spawn a child whose on_mount fails */
extern const domus_type domt_link_type;  /* lets a line link itself to the address in the notice */
extern const domus_type domt_watch_type; /* lets the watcher watch the address in the notice */

/* Make a bed with an owner and a watcher; or end it, and check that nothing is left. */
void domt_lines_begin_bed(const domus_behaviour *owner);
void domt_lines_end_bed(void);

/* Make a connection for a line, directly or through a proxy. Returns the address of the line. */
domus_address domt_lines_connect_line(int *ret_fd, int *ret_peer);
domus_address domt_lines_connect_line_maybe_proxied(bool is_proxied, int *ret_fd, int *ret_peer);

/* Put a notice for an actor; a refusal fails the test. */
void domt_lines_put_notice(domus_address to, const domus_type *type, const void *payload);

/* Put a notice for an actor, and take a turn. Returns the result of the put. */
int domt_lines_put_notice_and_turn(domus_address to, const domus_type *type, const void *payload);

/* Bring bytes for the line of `fd`, and take a turn. */
void domt_lines_bring_bytes(int fd, const char *bytes);

/* Check that the calls recorded since the last check are `expected`: domt_lines_expect_calls() at
 * once, domt_lines_settle_and_expect_calls() after a settle. */
void domt_lines_expect_calls(const char *expected);
void domt_lines_settle_and_expect_calls(const char *expected);

#endif
