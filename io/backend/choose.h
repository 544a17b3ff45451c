/* The choice of a system's backend. Called before start. */
#ifndef DOMI_IO_BACKEND_CHOOSE_H
#define DOMI_IO_BACKEND_CHOOSE_H

#include "io/backend/backend.h"

/* Find the backend that io.backend asks for. With `auto` this is epoll if the kernel refuses
 * io_uring to this process, and then one line in `reason` says why and what to do; otherwise it is
 * io_uring, and `reason` is empty.
 *
 * Returns 0; a negative errno if memory or descriptors have run out, and then `reason` says so. */
int domi_backend_choose(const domus_config *config, char *reason, size_t reason_size,
                        const domi_backend **ret_backend);

#endif
