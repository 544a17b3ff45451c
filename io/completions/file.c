/* Tries operations on files in the ring of a thread.
 *
 * A try does only what the kernel can do without waiting, so the enter that submits it also
 * completes it, and the kernel never makes a worker thread. The tries of a ring are in a list,
 * because a ring that has failed completes nothing, and because a thread that ends must leave none
 * behind. Owner thread. */
#include "io/completions/file.h"

#include "base/check.h"

static uint64_t make_user_data_of_try(const domi_file_try *attempt)
{
    return (uint64_t)DOMI_OP_FILE << 56 | (uintptr_t)attempt;
}

static bool may_ring_try_files(const domi_io *io)
{
    return io != NULL && io->failed == 0 && io->backend->file_read != NULL;
}

static void add_to_list_of_tries(domi_io *io, domi_file_try *attempt)
{
    attempt->place = &io->tries;
    attempt->next = io->tries;
    if (attempt->next != NULL)
        attempt->next->place = &attempt->next;
    io->tries = attempt;
}

bool domi_file_begin_try_read(domi_io *io, domi_file_try *attempt, int fd, void *data,
                              uint32_t size, uint64_t position)
{
    if (!may_ring_try_files(io))
        return false;
    add_to_list_of_tries(io, attempt);
    io->backend->file_read(io->ring, fd, data, size, position, make_user_data_of_try(attempt));
    return true;
}

bool domi_file_begin_try_write(domi_io *io, domi_file_try *attempt, int fd, const void *data,
                               uint32_t size, uint64_t position)
{
    if (!may_ring_try_files(io))
        return false;
    add_to_list_of_tries(io, attempt);
    io->backend->file_write(io->ring, fd, data, size, position, make_user_data_of_try(attempt));
    return true;
}

bool domi_file_begin_try_open(domi_io *io, domi_file_try *attempt, int directory, const char *path,
                              const struct open_how *how)
{
    if (!may_ring_try_files(io))
        return false;
    add_to_list_of_tries(io, attempt);
    io->backend->file_open(io->ring, directory, path, how, make_user_data_of_try(attempt));
    return true;
}

void domi_file_handle_try_result(domi_io *io, domi_file_try *attempt, int result)
{
    DOMI_CHECK(*attempt->place == attempt);
    *attempt->place = attempt->next;
    if (attempt->next != NULL)
        attempt->next->place = attempt->place;
    attempt->ended(io, attempt, result);
}

void domi_file_fail_all_tries(domi_io *io, int error)
{
    while (io->tries != NULL)
        domi_file_handle_try_result(io, io->tries, error);
}
