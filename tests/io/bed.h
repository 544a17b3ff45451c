/* A thread's io without a thread: a manager, its io on the fake backend, one channels actor that
 * records its calls, and a turn that the test takes by hand at a time that it sets.
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

/* How the bed's actor handles the bytes that it reads. */
typedef enum domt_bed_mode {
    DOMT_BED_DROP, /* the actor frees the buffers that it reads */
    DOMT_BED_ECHO, /* the actor writes the bytes back */
    DOMT_BED_KEEP, /* the actor keeps each buffer until the test frees it */
} domt_bed_mode;

typedef struct domt_bed {
    domus_config config;
    domi_manager *managers[1];
    domi_manager manager;
    domi_io io;
    domt_fake *fake;
    domus_address actor;
    domt_bed_mode mode;
    int open_result; /* results that on_open, on_read and on_end return */
    int read_result;
    int end_result;
    /* result of the actor's last write; an echo returns it unless read_result is set */
    int write_result;
    bool close_on_read;
    bool reset_on_end;
    bool ignore_end;
    /* record of the calls of the actor's functions, as "A+ A(bytes) A. A-(0) ": open, read, end,
     * close */
    char note[DOMT_BED_NOTE_MAX];
    uint32_t note_length;
    uint32_t opened;
    uint32_t closed;
    uint64_t read_bytes;
    /* bytes that domus_channel_queued() counted in the last on_close */
    uint64_t unsent_bytes;
    uint32_t failures; /* number of failures that the library has logged */
    /* the first 64 channels by name; NULL when the channel is closed */
    domus_channel *channels[64];
    domus_buffer *kept[DOMT_BED_KEPT_MAX];
    uint32_t kept_count;
} domt_bed;

/* The state of the present bed: domt_bed_set_defaults() resets it before each domt_bed_start(). */
extern domt_bed domt_bed_now;
static domt_bed *const bed = &domt_bed_now;

/* Fill the configuration with the defaults and 64 buffers of 256 B; a test may change it before
 * `start`. This was done before the first test, and is done after each domt_bed_end(). */
void domt_bed_set_defaults(void);

/* Make manager, io and actor. domt_bed_try_start() returns 0 or the error (only after
 * domi_memory_fail_allocation_after()). */
void domt_bed_start(void);
int domt_bed_try_start(void);

/* Stop everything, in whatever state it is. Checks that all buffers are back, nothing is queued,
 * and all slots and descriptors are free. Closes the peers' ends of all connections. */
void domt_bed_end(void);

/* Start the bed with one connection: `ret_fd` gets the channel's end. */
void domt_bed_start_with_connection(int *ret_fd, int *ret_peer);

/* Spawn an actor, which the end of the bed stops; or make an acceptor for the bed's actor, with a
 * listener, and do not spawn it. */
domus_address domt_bed_spawn_actor(const domus_behaviour *behaviour, const void *state);
struct domi_acceptor *domt_bed_make_acceptor(uint32_t backlog);

/* Take one turn of the thread: phases 1 and 2. */
void domt_bed_take_turn(void);

/* Let time pass and take a turn; domt_bed_pass_ms_and_settle() also settles. */
void domt_bed_pass_ms(uint64_t ms);
void domt_bed_pass_ms_and_settle(uint64_t ms);

/* Make a connection over loopback, from 127.0.0.1 or 127.0.0.`host`, and return the descriptors of
 * both ends; no channel has ours yet. A peer's end lasts until the end of the bed, or until it
 * hangs up. `ret_peer` may be NULL in all of these. */
void domt_bed_make_connection(int *ret_ours, int *ret_peer);
void domt_bed_make_connection_from(uint8_t host, int *ret_ours, int *ret_peer);
void domt_bed_close_peer(int peer);

/* Hand the connection `fd` to an actor, without a turn. Returns the result of
 * domi_channel_adopt_connection(). */
int domt_bed_adopt_connection(domus_address actor, int fd);

/* Make a connection for the bed's actor, or for another one, and take a turn. Returns the channel's
 * end; `ret_peer` gets the peer's. */
int domt_bed_connect_to_own_actor(int *ret_peer);
int domt_bed_connect_to_actor(domus_address actor, int *ret_peer);

/* Complete the receive of `fd` with a text, or with `size` times `byte`, so that it goes on;
 * without a turn, or with one. */
void domt_bed_bring_text(int fd, const char *text);
void domt_bed_bring_bytes(int fd, char byte, uint32_t size);
void domt_bed_bring_bytes_and_turn(int fd, char byte, uint32_t size);

/* End the receive of `fd` with this result (0: the peer's FIN), and settle the bed. */
void domt_bed_end_receive(int fd, int32_t result);

/* Complete the send of `fd` with this result, and take a turn. */
void domt_bed_complete_send(int fd, int32_t result);

/* Write `size` times `byte` on a channel, as its actor would. Returns the result of the write. */
int domt_bed_write_bytes(domus_channel *channel, char byte, uint32_t size);

/* Check that the calls recorded since the last check are `expected`: domt_bed_expect_calls() at
 * once, domt_bed_settle_and_expect_calls() after a settle. */
void domt_bed_expect_calls(const char *expected);
void domt_bed_settle_and_expect_calls(const char *expected);

/* Put a message of `kind` (DOMI_NOTICE, DOMI_ASK or DOMI_EVENT) from nobody, without a turn;
 * `payload` has type->size bytes. Returns the result of the put: -ESTALE when the actor has
 * ended. */
int domt_bed_put_message(domus_address to, uint32_t kind, const domus_type *type,
                         const void *payload);

/* Put a notice, which must be taken, and take a turn. */
void domt_bed_put_notice_and_turn(domus_address to, const domus_type *type, const void *payload);

/* Free the oldest `count` buffers that the actor keeps (DOMT_BED_KEEP). */
void domt_bed_free_kept_buffers(uint32_t count);

/* Complete cancels and the operations that they end, and take turns, until only the wake poll and
 * receives that are not cancelled are in flight. */
void domt_bed_settle(void);

/* domt_bed_is_descriptor_open() returns whether a descriptor is open.
 * domt_bed_settle_and_expect_closed() settles the bed, and checks that the descriptor is closed. */
bool domt_bed_is_descriptor_open(int fd);
void domt_bed_settle_and_expect_closed(int fd);

/* Returns how the peer sees its connection: 'd' bytes wait, 'o' open, 'f' FIN, 'r' reset. */
char domt_bed_state_seen_by_peer(int peer);

#endif
