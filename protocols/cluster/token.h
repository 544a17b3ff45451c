/* Reads the head of one value of MessagePack, and the body of all but arrays and maps.
 *
 * msgpack-c has two readers, and neither is bounded: msgpack_unpack_next() makes room for as many
 * objects as an array or a map announces before it has seen one of them (5 bytes make it take
 * 8 GiB), and the templates behind it, which would let us bound that, are no documented interface.
 * This reader takes no memory, looks at each byte once, and never leaves [at, end). The byte orders
 * are msgpack-c's. Its tests hold it against msgpack-c's reader. */
#ifndef DOMI_PROTOCOLS_CLUSTER_TOKEN_H
#define DOMI_PROTOCOLS_CLUSTER_TOKEN_H

#include "protocols/cluster/pickle.h"

typedef struct domi_token {
    domus_pickle_value value;
    int32_t ext;   /* the type of an extension */
    uint32_t size; /* bytes of the body; elements of an array; of a map keys with their values */
    const unsigned char *body; /* of a text, of bytes and of an extension */
    union {
        uint64_t number; /* of an integer: a negative one as int64_t; of a boolean 0 or 1 */
        double real;
    } is;
} domi_token;

/* Read a token that is more than one byte. */
int domi_token_read(domus_pickle_reader *reader, domi_token *ret_token);

/* Say that a token is of another kind than `wanted`. Returns -EBADMSG. */
int domi_token_refuse(domus_pickle_reader *reader, const domi_token *token, const char *wanted)
    __attribute__((cold));

/* Read the next token. Returns 0; -EBADMSG when it is none, or more is announced than the bytes
 * that are left could hold. */
static inline int domi_token_next(domus_pickle_reader *reader, domi_token *ret_token)
{
    if (reader->at != reader->end && *reader->at < 0x80) {
        ret_token->value = DOMUS_PICKLE_UNSIGNED;
        ret_token->is.number = *reader->at++;
        return 0;
    }
    return domi_token_read(reader, ret_token);
}

#endif
