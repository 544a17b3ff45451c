/* A thread's io without a thread: a manager, its io on the fake backend, one channels actor that
 * notes what it is told, and a turn that the test takes by hand at a time that it sets.
 *
 * Channels own real descriptors (one end of a connection over loopback), because they call
 * shutdown, ioctl and close on them; the other end shows the test what the peer would see. Names of
 * channels are letters, in the order in which they opened. */
#ifndef DOMT_IO_BED_H
#define DOMT_IO_BED_H

#include "house/message/manager.h"
#include "tests/io/turn.h"
#include "tests/support/fake_backend.h"

#define DOMT_BED_MS       UINT64_C(1000000)
#define DOMT_BED_NOTE_MAX 4096
#define DOMT_BED_KEPT_MAX 512u

/* How the actor handles the bytes that it reads. */
typedef enum domt_bed_mode {
    DOMT_BED_DROP, /* frees the buffers that it reads */
    DOMT_BED_ECHO, /* writes the bytes back */
    DOMT_BED_KEEP, /* keeps the buffer until the test frees it */
} domt_bed_mode;

typedef struct domt_bed {
    domus_config config;
    domi_manager *managers[1];
    domi_manager manager;
    domi_io io;
    domt_fake *fake;
    domus_address actor;
    domt_bed_mode mode;
    int open_result; /* what on_open, on_read and on_end return */
    int read_result;
    int end_result;
    int write_result; /* the result of the last write; echoes return it unless read_result is set */
    bool close_on_read;
    bool reset_on_end;
    bool ignore_end;
    char note[DOMT_BED_NOTE_MAX]; /* "A+ A(bytes) A. A-(0) ": open, read, end, close */
    uint32_t note_length;
    uint32_t opened;
    uint32_t closed;
    uint64_t read_bytes;
    uint64_t unsent_bytes;       /* what domus_channel_queued() said in the last on_close */
    uint32_t failures;           /* failures that the log was told of */
    domus_channel *channels[64]; /* by name, NULL when closed; the first 64 */
    domus_buffer *kept[DOMT_BED_KEPT_MAX];
    uint32_t kept_count;
} domt_bed;

/* Fill the configuration with the defaults and 64 buffers of 256 B; change it before `start`. */
void domt_bed_init(domt_bed *bed);

/* Make manager, io and actor. Returns 0, or what failed (only after domi_memory_fail_after). */
int domt_bed_start(domt_bed *bed);

/* Stop everything; holds that all buffers are back, all slots and descriptors free. */
void domt_bed_end(domt_bed *bed);

/* Start, after domt_bed_init(), with one connection: `ret_fd` gets the channel's end. */
void domt_bed_begin(domt_bed *bed, int *ret_fd, int *ret_peer);

/* End, and close the other end of that connection. */
void domt_bed_finish(domt_bed *bed, int peer);

/* Take one turn: phases 1 and 2. */
void domt_bed_turn(domt_bed *bed);

/* Let time pass, then take a turn. */
void domt_bed_pass(domt_bed *bed, uint64_t ms);

/* Make a connection over loopback; both ends are returned. */
void domt_bed_pair(int *ret_ours, int *ret_peer);

/* Hand `fd` to the actor; no turn. Returns as domi_channel_adopt(). */
int domt_bed_adopt(domt_bed *bed, int fd);

/* Make a connection for the actor. Returns the channel's end; `ret_peer` gets the other one. */
int domt_bed_connect(domt_bed *bed, int *ret_peer);

/* Bring `size` times `byte` for `fd`, with more to come, and take no turn. */
void domt_bed_feed(domt_bed *bed, int fd, char byte, uint32_t size);

/* The text that was noted since the last call must be `expected`. */
void domt_bed_noted(domt_bed *bed, const char *expected);

/* Put a message of `kind` (DOMI_NOTICE or DOMI_EVENT) from nobody; `payload` has type->size bytes.
 * No turn. Returns what the put returned: -ESTALE when nobody lives there any more. */
int domt_bed_put(domt_bed *bed, domus_address to, uint32_t kind, const domus_type *type,
                 const void *payload);

/* Put a notice, which must be taken, and take a turn. */
void domt_bed_tell(domt_bed *bed, domus_address to, const domus_type *type, const void *payload);

/* Free what DOMT_BED_KEEP kept: the oldest `count`. */
void domt_bed_release(domt_bed *bed, uint32_t count);

/* Cancels and what they hit come back, and turns are taken, until nothing is in flight any more
 * but the wake poll and receives that are not cancelled. */
void domt_bed_settle(domt_bed *bed);

bool domt_bed_is_open(int fd);

/* Returns how the peer sees its connection: 'd' bytes wait, 'o' open, 'f' FIN, 'r' reset. */
char domt_bed_peer_sees(int peer);

#endif
