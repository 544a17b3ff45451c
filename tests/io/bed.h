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

/* The bed, as domt_bed_init() makes it, before each domt_bed_start(). */
extern domt_bed domt_bed_now;
static domt_bed *const bed = &domt_bed_now;

/* Fill the configuration with the defaults and 64 buffers of 256 B; change it before `start`.
 * Before the first test this was done, and after each domt_bed_end(). */
void domt_bed_init(void);

/* Make manager, io and actor. The second one returns 0, or what failed (only after
 * domi_memory_fail_after). */
void domt_bed_start(void);
int domt_bed_try_start(void);

/* Stop everything, in whatever state it is; holds that all buffers are back, nothing is queued, and
 * all slots and descriptors are free. Closes the other ends of all connections. */
void domt_bed_end(void);

/* Start with one connection: `ret_fd` gets the channel's end. */
void domt_bed_begin(int *ret_fd, int *ret_peer);

/* Spawn an actor, which the end of the bed stops; make an acceptor for the bed's actor, with a
 * listener, which is not spawned. */
domus_address domt_bed_spawn(const domus_behaviour *behaviour, const void *state);
struct domi_acceptor *domt_bed_listen(uint32_t backlog);

/* Take one turn: phases 1 and 2. */
void domt_bed_turn(void);

/* Let time pass, then take a turn; and settle. */
void domt_bed_pass(uint64_t ms);
void domt_bed_wait(uint64_t ms);

/* Make a connection over loopback, from 127.0.0.1 or 127.0.0.`host`; both ends are returned. A
 * peer's end lasts until the end of the bed, or until it hangs up. `ret_peer` may be NULL in all of
 * these. */
void domt_bed_pair(int *ret_ours, int *ret_peer);
void domt_bed_pair_from(uint8_t host, int *ret_ours, int *ret_peer);
void domt_bed_hang_up(int peer);

/* Hand `fd` to an actor; no turn. Returns as domi_channel_adopt(). */
int domt_bed_adopt(domus_address actor, int fd);

/* Make a connection for the bed's actor, or another one, and take a turn. Returns the channel's
 * end; `ret_peer` gets the other one. */
int domt_bed_connect(int *ret_peer);
int domt_bed_connect_to(domus_address actor, int *ret_peer);

/* Bring a text, or `size` times `byte`, for `fd`, with more to come, and take no turn; and take
 * one. */
void domt_bed_bring(int fd, const char *text);
void domt_bed_feed(int fd, char byte, uint32_t size);
void domt_bed_show(int fd, char byte, uint32_t size);

/* End the receive of `fd` with this result (0: the peer's FIN), and settle. */
void domt_bed_ends(int fd, int32_t result);

/* Complete the send of `fd` with this result, and take a turn. */
void domt_bed_sent(int fd, int32_t result);

/* Write `size` times `byte` on a channel, as its actor would. Returns what that returned. */
int domt_bed_write(domus_channel *channel, char byte, uint32_t size);

/* The text that was noted since the last call must be `expected`; at once, and when all has
 * settled. */
void domt_bed_noted(const char *expected);
void domt_bed_settled(const char *expected);

/* Put a message of `kind` (DOMI_NOTICE, DOMI_ASK or DOMI_EVENT) from nobody; `payload` has
 * type->size bytes. No turn. Returns what the put returned: -ESTALE when nobody lives there any
 * more. */
int domt_bed_put(domus_address to, uint32_t kind, const domus_type *type, const void *payload);

/* Put a notice, which must be taken, and take a turn. */
void domt_bed_tell(domus_address to, const domus_type *type, const void *payload);

/* Free what DOMT_BED_KEEP kept: the oldest `count`. */
void domt_bed_release(uint32_t count);

/* Cancels and what they hit come back, and turns are taken, until nothing is in flight any more
 * but the wake poll and receives that are not cancelled. */
void domt_bed_settle(void);

/* Whether a descriptor is open; settle, and hold that it is closed. */
bool domt_bed_is_open(int fd);
void domt_bed_closed(int fd);

/* Returns how the peer sees its connection: 'd' bytes wait, 'o' open, 'f' FIN, 'r' reset. */
char domt_bed_peer_sees(int peer);

#endif
