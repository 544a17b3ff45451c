/* Files on the epoll backend: each operation is a system call that does not wait, made at once. Its
 * completion is shown by the next enter. Owner thread. */
#ifndef DOMI_IO_BACKEND_EPOLL_FILE_H
#define DOMI_IO_BACKEND_EPOLL_FILE_H

#include "io/backend/backend.h"

/* Implement file_read, file_write and file_open of the backend's table (domi_backend). */
void domi_epoll_file_read(void *ring, int fd, void *data, uint32_t size, uint64_t position,
                          uint64_t user_data);
void domi_epoll_file_write(void *ring, int fd, const void *data, uint32_t size, uint64_t position,
                           uint64_t user_data);
void domi_epoll_file_open(void *ring, int directory, const char *path, const struct open_how *how,
                          uint64_t user_data);

#endif
