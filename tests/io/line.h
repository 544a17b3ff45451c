/* Lines: channels that are actors with a state of their own, and note what they are called for.
 *
 * The owner has the state of a line, too, so that channels can share it; its name is z. Lines are
 * named by letters from a on, in the order of their mounts. Each note is a letter for the line
 * and one for the function: m mount, o open, r read, n note, c close, s stop. */
#ifndef DOMT_LINE_H
#define DOMT_LINE_H

#include "tests/io/bed.h"

typedef struct domt_line {
    char name;
    uint32_t bytes; /* bytes that it has read */
} domt_line;

typedef struct domt_lines {
    domus_address owner;   /* the lines are its channels */
    domus_address watcher; /* an actor that watches, on the same thread */
    char told[256];        /* what the lines have noted: "am ao " */
    int mount_result;      /* what the functions of the lines return */
    int note_result;
    uint32_t answers;   /* conversations that have gone on */
    uint32_t cancelled; /* and of these, those that were cancelled */
    uint32_t downs;     /* ends that the watcher has heard of */
    int down_reason;    /* the reason of the last end that the watcher has heard of */
} domt_lines;

extern domt_lines domt_lines_now;

/* Behaviours of owners: of lines; of lines whose conversations go on; of lines that share the
 * owner's state. */
extern const domus_behaviour domt_owner_of_lines;
extern const domus_behaviour domt_owner_of_lasting;
extern const domus_behaviour domt_owner_of_sharing;
extern const domus_behaviour
    domt_owner_with_rules; /* owns lines; an actor that fails below it makes it fail, too */

extern const domus_type domt_note_type; /* a line notes it */
extern const domus_type domt_nap_type;  /* a line sleeps for 9 ms; bytes that are "5": for 5 ms */
extern const domus_type domt_escalate_type;
extern const domus_type domt_bear_type;  /* makes a line spawn a child whose mount fails */
extern const domus_type domt_link_type;  /* a line links itself to the address */
extern const domus_type domt_watch_type; /* the watcher watches the address */

/* Make a thread with an owner and a watcher; end it, and check that nothing is left. */
void domt_lines_begin(const domus_behaviour *owner);
void domt_lines_end(void);

/* Make a connection, also one that comes by a proxy. Returns the address of its line. */
domus_address domt_lines_connect(int *ret_fd, int *ret_peer);
domus_address domt_lines_connect_by(bool is_proxied, int *ret_fd, int *ret_peer);

/* Put a notice, which must be taken. */
void domt_lines_put(domus_address to, const domus_type *type, const void *payload);

/* Put a notice, and take a turn. Returns what the put returned. */
int domt_lines_notice(domus_address to, const domus_type *type, const void *payload);

/* Bring bytes for `fd`, and take a turn. */
void domt_lines_bring(int fd, const char *bytes);

/* The notes since the last call must be `expected`; at once, and when all has settled. */
void domt_lines_told(const char *expected);
void domt_lines_settled(const char *expected);

#endif
