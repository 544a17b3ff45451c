/* One real ring for the tests of the backends, with 16 buffers of 256 B. It is io_uring, or epoll
 * where io_uring is refused, as under tests/support/without_uring; a test may change to that of the
 * simulated network. */
#ifndef DOMT_RING_H
#define DOMT_RING_H

#include "io/backend/backend.h"

#include <stdint.h>

#define DOMT_RING_BUFFERS     16u
#define DOMT_RING_BUFFER_SIZE 256u
#define DOMT_MS               UINT64_C(1000000)
#define DOMT_SECOND           (1000 * DOMT_MS)

extern const domi_backend *domt_backend;
extern void *domt_ring;
extern char domt_ring_memory[DOMT_RING_BUFFERS][DOMT_RING_BUFFER_SIZE];

/* Open the ring with places for so many operations and completions, and do not start it. */
void domt_ring_open_unstarted(uint32_t entries, uint32_t completions);

/* Open the ring, start it, and give it all buffers; domt_ring_begin_with_socket_pair() also makes a
 * pair of sockets. */
void domt_ring_begin_with_buffers(void);
void domt_ring_begin_with_socket_pair(int ends[2]);
void domt_ring_give_all_buffers(void);

/* Wait for the next completion; a completion that is missing fails the test here. */
domi_completion domt_ring_next_completion(void);

/* Check that the next completion is this one. */
void domt_ring_expect_completion(uint64_t user_data, int32_t result, uint16_t flags);

/* Close the ring, and the sockets of domt_make_socket_pair() that are open. */
void domt_ring_close_with_all_sockets(void);

/* Check that no completion comes for 10 ms. */
void domt_ring_expect_no_completion(void);

uint64_t domt_now_ns(void);

/* Use the ring of the simulated network from now on. */
void domt_ring_use_simulated_network(void);

/* Returns the time in which enters of the ring wait: that of the clock, or of the simulated
 * network. */
uint64_t domt_ring_now_ns(void);

/* Two connected Unix sockets, and the actions of a peer at one of them, which use no ring.
 * domt_receive_from_socket() returns the number of bytes that it has received, or a negative errno.
 * domt_fill_socket() sends until the socket is full, and returns how many bytes it took. */
void domt_make_socket_pair(int ends[2]);
void domt_send_text_to_socket(int fd, const char *text);
int domt_receive_from_socket(int fd, void *data, uint32_t size);
int64_t domt_fill_socket(int fd);
void domt_end_sending_of_socket(int fd);
void domt_close_socket(int fd);

#endif
