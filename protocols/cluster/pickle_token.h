/* Reads the head of one value of MessagePack, and the body of all values but arrays and maps.
 *
 * msgpack-c has two readers, and neither is bounded: msgpack_unpack_next() allocates as many
 * objects as an array or a map announces before it has seen one of them (5 bytes make it allocate 8
 * GiB), and the templates behind it, by which this could be bounded, are no documented interface.
 * This reader allocates nothing, reads each byte once, and never leaves the bytes from `at` up to
 * `end`. Its byte order functions are msgpack-c's. Its tests compare it with msgpack-c's reader. */
#ifndef DOMI_PROTOCOLS_CLUSTER_PICKLE_TOKEN_H
#define DOMI_PROTOCOLS_CLUSTER_PICKLE_TOKEN_H

#include "protocols/cluster/pickle.h"

/* Read a token of more than one byte into `reader->token`; domi_pickle_token_read_next() reads
 * short ones. */
int domi_pickle_token_read_next_of_any_kind(domus_pickle_reader *reader);

/* Record the fault that the token is of another kind than `wanted`, which names a kind. Returns
 * -EBADMSG. */
int domi_pickle_token_refuse_kind(domus_pickle_reader *reader, const char *wanted)
    __attribute__((cold));

/* Read the next token into `reader->token`. Returns 0; -EBADMSG when it is invalid, or announces
 * more than the bytes that are left could hold. */
static inline int domi_pickle_token_read_next(domus_pickle_reader *reader)
{
    if (reader->at != reader->end && *reader->at < 0x80) {
        reader->token.value = DOMUS_PICKLE_UNSIGNED;
        reader->token.is.number = *reader->at++;
        return 0;
    }
    return domi_pickle_token_read_next_of_any_kind(reader);
}

#endif
