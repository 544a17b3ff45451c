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
    uint32_t bytes; /* bytes that the line has read */
} domt_line;

typedef struct domt_lines {
    domus_address owner;   /* owner of the lines */
    domus_address watcher; /* an actor that watches, on the same thread */
    char told[256];        /* calls that were recorded: "am ao " */
    int mount_result;      /* results of the functions of the lines */
    int note_result;
    uint32_t answers;   /* conversations that have gone on */
    uint32_t cancelled; /* those of `answers` that were cancelled */
    uint32_t downs;     /* ends that the watcher was told of */
    int down_reason;    /* reason of the last end that the watcher was told of */
} domt_lines;

extern domt_lines domt_lines_now;

/* Behaviours of owners: of lines; of lines whose conversations go on; of lines that share the
 * owner's state. */
extern const domus_behaviour domt_owner_of_lines;
extern const domus_behaviour domt_owner_of_lasting;
extern const domus_behaviour domt_owner_of_sharing;
extern const domus_behaviour
    domt_owner_with_rules; /* owns lines, and fails with an actor below it */

extern const domus_type domt_note_type; /* makes a line record the notice */
extern const domus_type domt_nap_type;  /* makes a line sleep for 9 ms, or 5 ms for the bytes "5" */
extern const domus_type domt_escalate_type;
extern const domus_type domt_bear_type;  /* makes a line spawn a child whose mount fails */
extern const domus_type domt_link_type;  /* makes a line link itself to the address */
extern const domus_type domt_watch_type; /* makes the watcher watch the address */

/* Make a thread with an owner and a watcher; end it, and check that nothing is left. */
void domt_lines_begin(const domus_behaviour *owner);
void domt_lines_end(void);

/* Make a connection, directly or through a proxy. Returns the address of its line. */
domus_address domt_lines_connect(int *ret_fd, int *ret_peer);
domus_address domt_lines_connect_by(bool is_proxied, int *ret_fd, int *ret_peer);

/* Put a notice; a refusal fails the test. */
void domt_lines_put(domus_address to, const domus_type *type, const void *payload);

/* Put a notice, and take a turn. Returns the result of the put. */
int domt_lines_notice(domus_address to, const domus_type *type, const void *payload);

/* Bring bytes for `fd`, and take a turn. */
void domt_lines_bring(int fd, const char *bytes);

/* Check that the calls recorded since the last check are `expected`; at once, or when all has
 * settled. */
void domt_lines_told(const char *expected);
void domt_lines_settled(const char *expected);

#endif
