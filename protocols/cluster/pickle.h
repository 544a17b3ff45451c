/* The writer and the reader of a pickled message, and the functions that the files of the pickler
 * call of each other.
 *
 * Both are on the stack of domus_pickle() or domus_unpickle(). Their members are set one by one,
 * because most of their bytes are memory for a fault, which few messages have. */
#ifndef DOMI_PROTOCOLS_CLUSTER_PICKLE_H
#define DOMI_PROTOCOLS_CLUSTER_PICKLE_H

#include "protocols/cluster/pickle_fault.h"
#include <domus/pickle_code.h>

#include <errno.h>
#include <string.h>

/* The arrays and maps that a user's pickling function has begun, and how many values each of them
 * still needs. Tables do not need this, because they count their own fields. */
typedef struct domi_nest {
    uint32_t depth;
    uint64_t left[DOMUS_PICKLE_DEPTH_MAX + 1];
} domi_nest;

static inline void domi_nest_begin_with_one_value_left(domi_nest *nest)
{
    nest->depth = 0;
    nest->left[0] = 1;
}

/* Count a value that belongs to the innermost begun array or map, and is itself the head of `count`
 * values. Returns 0; -EINVAL when no value was announced; -EMSGSIZE when it is nested too deep. */
static inline int domi_nest_count_value_or_open_array(domi_nest *nest, uint64_t count)
{
    if (nest->left[nest->depth] == 0)
        return -EINVAL;
    if (count != 0) {
        if (nest->depth == DOMUS_PICKLE_DEPTH_MAX)
            return -EMSGSIZE;
        nest->left[nest->depth]--;
        nest->left[++nest->depth] = count;
        return 0;
    }
    nest->left[nest->depth]--;
    while (nest->depth != 0 && nest->left[nest->depth] == 0)
        nest->depth--;
    return 0;
}

static inline bool domi_nest_is_no_value_left(const domi_nest *nest)
{
    return nest->depth == 0 && nest->left[0] == 0;
}

struct domus_pickle_writer {
    /* place at which the writer writes its next byte; the bytes from `at` up to `end` are free */
    char *at;
    char *end;
    char *begin; /* first of the written bytes that `appender` does not know yet */
    /* appender that gets the written bytes; NULL: they go into a buffer that does not grow */
    domus_appender *appender;
    uint32_t left; /* bytes that the message may still have, counted from `begin` */
    const domus_pickle_context *context;
    domi_nest nest;
    domi_pickle_fault fault;
};

/* One value of MessagePack as the reader has read it, or the head of an array or a map. */
typedef struct domi_pickle_token {
    domus_pickle_value value;
    int32_t ext; /* type of the extension, if the token is one */
    /* size of the token: bytes of the body, elements of an array, or keys of a map, each with
     * its value */
    uint32_t size;
    const unsigned char *body; /* body of the token, if it is a text, bytes or an extension */
    union {
        /* the token's value: an integer (a negative one as int64_t), or 0 or 1 for a boolean */
        uint64_t number;
        double real;
    } is;
} domi_pickle_token;

struct domus_pickle_reader {
    const unsigned char *at; /* place of the next byte that the reader reads */
    const unsigned char *end;
    domus_slice bytes;
    const unsigned char *data; /* the bytes of the slice `bytes`, from their begin */
    /* The last token that was read. It is a member because a function with such a variable of its
     * own, whose address is taken, would check its stack at each call. */
    domi_pickle_token token;
    const domus_pickle_context *context;
    uint32_t memory_left;
    domi_nest nest;
    domi_pickle_fault fault;
};

/* Make room for `size` bytes at the writer's `at`. Returns 0, or the error, which is also recorded
 * as the message's fault. */
int domi_pickle_make_room_to_write(domus_pickle_writer *writer, size_t size);

/* Write one struct; write one field of a struct; write the value of a field, or one element of an
 * array. Each returns 0 or an error, and the fault then has the path from this struct, field or
 * value to the wrong place. */
int domi_pickle_put_struct(domus_pickle_writer *writer, const domus_pickle_table *table,
                           const void *value);

/* Write values that a call of msgpack-c is not enough for, with callbacks of the context and with
 * bounds. */
int domi_pickle_put_address(domus_pickle_writer *writer, domus_address address);
int domi_pickle_put_endpoint(domus_pickle_writer *writer, const domus_endpoint *endpoint);
int domi_pickle_put_text_of_size(domus_pickle_writer *writer, const char *text, size_t size);
int domi_pickle_put_bytes(domus_pickle_writer *writer, const void *bytes, size_t size);

/* Read one struct by its table into zeroed memory. If this fails, that memory owns what was read
 * until then. */
int domi_pickle_get_struct(domus_pickle_reader *reader, const domus_pickle_table *table,
                           void *value);

/* Set the member of a field that the message does not have to its default. `value` is the
 * struct. */
int domi_pickle_set_missing_to_default(domus_pickle_reader *reader, const domus_pickle_field *field,
                                       void *value);

/* Read one value of a message. `ret_value` is untouched after an error. */
int domi_pickle_get_owned_text(domus_pickle_reader *reader, uint32_t most, char **ret_text);
/* Copy a text of the message into memory of malloc(3), which the caller owns then. */
int domi_pickle_copy_text(domus_pickle_reader *reader, const void *bytes, size_t size,
                          char **ret_text);
int domi_pickle_get_slice(domus_pickle_reader *reader, uint32_t most, domus_slice *ret_slice);
int domi_pickle_get_address(domus_pickle_reader *reader, domus_address *ret_address);
int domi_pickle_get_endpoint(domus_pickle_reader *reader, domus_endpoint *ret_endpoint);
int domi_pickle_get_text_into_array(domus_pickle_reader *reader, char *buffer, size_t size);
int domi_pickle_get_real(domus_pickle_reader *reader, double *ret_value);

/* Skip one value of the message, with all values that belong to it as elements or keys. */
int domi_pickle_skip_value(domus_pickle_reader *reader);

/* Count memory that is allocated for the message against its bound `memory_max`. */
int domi_pickle_charge_memory_of_message(domus_pickle_reader *reader, uint64_t bytes);

/* Returns whether the structs of a table own memory. */
bool domi_pickle_does_table_own_memory(const domus_pickle_table *table);

/* Returns the hash of the name of a pickler, which must be in the list of `picklers`. */
uint64_t domi_pickle_hash_of_listed_pickler(const domus_picklers *picklers,
                                            const domus_pickler *pickler);

/* Check one pickler of a program's list, and its table. Returns 0; -EINVAL, and `error` tells
 * why. */
int domi_pickler_check(const domus_pickler *pickler, char *error, size_t error_size);

/* Returns the name under which a pickler's messages travel. */
static inline const char *domi_pickler_name_on_wire(const domus_pickler *pickler)
{
    return pickler->name != NULL ? pickler->name : pickler->type->name;
}

/* Load and store an unsigned integer of `size` bytes, 1, 2, 4 or 8, which is a member of a
 * struct. */
static inline uint64_t domi_load_unsigned_member(const void *from, uint32_t size)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;

    switch (size) {
    case 1:
        return *(const uint8_t *)from;
    case 2:
        memcpy(&two, from, sizeof two);
        return two;
    case 4:
        memcpy(&four, from, sizeof four);
        return four;
    default:
        memcpy(&eight, from, sizeof eight);
        return eight;
    }
}

static inline void domi_store_unsigned_member(void *to, uint32_t size, uint64_t value)
{
    uint32_t four = (uint32_t)value;
    uint16_t two = (uint16_t)value;

    switch (size) {
    case 1:
        *(uint8_t *)to = (uint8_t)value;
        break;
    case 2:
        memcpy(to, &two, sizeof two);
        break;
    case 4:
        memcpy(to, &four, sizeof four);
        break;
    default:
        memcpy(to, &value, sizeof value);
    }
}

/* Load a signed integer of `size` bytes, which is a member of a struct. */
static inline int64_t domi_load_signed_member(const void *from, uint32_t size)
{
    uint64_t value = domi_load_unsigned_member(from, size);

    switch (size) {
    case 1:
        return (int8_t)value;
    case 2:
        return (int16_t)value;
    case 4:
        return (int32_t)value;
    default:
        return (int64_t)value;
    }
}

/* Return the greatest integer of `size` bytes, for unsigned members and for signed ones. */
static inline uint64_t domi_greatest_unsigned_of_size(uint32_t size)
{
    return UINT64_MAX >> (64 - 8 * size);
}

static inline int64_t domi_greatest_signed_of_size(uint32_t size)
{
    return (int64_t)(UINT64_MAX >> (65 - 8 * size));
}

#endif
