/* Picklers: the payload of a message becomes bytes, and payload again in another program.
 *
 * A program has one table of all types that may travel: a pickler for each, by a table of fields or
 * by two functions (domus/pickle_code.h). The bytes are MessagePack, so that programs in other
 * languages can read them.
 *
 *   struct item { uint32_t price; char name[32]; };
 *   struct order { uint64_t id; struct item *items; uint32_t item_count; domus_slice note; };
 *
 *   static const domus_pickle_field item_fields[] = {
 *       {DOMUS_PICKLE(1, struct item, price, UINT_RANGE(1, 100000, 1))},
 *       {DOMUS_PICKLE(2, struct item, name, TEXT("unnamed"))},
 *   };
 *   static const domus_pickle_table item_table = DOMUS_PICKLE_TABLE(struct item, item_fields);
 *   static const domus_pickle_field order_fields[] = {
 *       {DOMUS_PICKLE(1, struct order, id, UINT(0)), .required = true},
 *       {DOMUS_PICKLE_OWNED(2, struct order, items, item_count, 100, STRUCT(item_table))},
 *       {DOMUS_PICKLE(3, struct order, note, SLICE(4096))},
 *   };
 *   static const domus_pickle_table order_table = DOMUS_PICKLE_TABLE(struct order, order_fields);
 *   static void order_release(void *order) { domus_pickle_release(&order_table, order); }
 *   const domus_type order_type = {"order", sizeof(struct order), order_release};
 *
 *   static const domus_pickler picklers[] = {
 *       {.type = &order_type, .version = 1, .table = &order_table},
 *       {.type = NULL},
 *   };
 *
 * Versions: fields are told apart by their numbers. A reader passes over fields that it does not
 * know, and those that are missing get their defaults, so an older and a newer program understand
 * each other while no number gets another meaning. docs/pickling.md has the rules.
 *
 * Reading trusts no byte: a size is held against its bound, and against the bytes that are there,
 * before memory is taken for it. A refused message leaves nothing allocated, and the text of the
 * error names the field: "order.items[3].price: 300000 is not in 1..100000".
 *
 * Thread-safety: any thread, also several at once with the same tables; a domus_picklers is
 * constant from its making to its end. */
#ifndef DOMUS_PICKLE_H
#define DOMUS_PICKLE_H

#include <domus/actor.h>
#include <domus/endpoint.h>
#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_PICKLE_FIELDS_MAX 64u /* most rows of a table, one for each field */
/* the greatest number of a field, so that the number is one byte */
#define DOMUS_PICKLE_NUMBER_MAX 127u
/* most bytes of the name of a type of messages */
#define DOMUS_PICKLE_NAME_MAX 63u
/* most tables that lie in tables, and arrays in arrays that a function writes */
#define DOMUS_PICKLE_DEPTH_MAX 16u
/* greatest bound on the number of elements of a list */
#define DOMUS_PICKLE_ELEMENTS_MAX (1u << 24)
/* most values of an enum that a row may list */
#define DOMUS_PICKLE_WORDS_MAX 256u
/* most bytes of the address of an actor, as it is written */
#define DOMUS_PICKLE_ADDRESS_MAX 32u
/* most types of messages that the picklers of a program have */
#define DOMUS_PICKLERS_MAX 4096u
/* bytes of room for an error text that is hardly ever cut */
#define DOMUS_PICKLE_ERROR_MAX 256u

/* The types of extension in MessagePack by which an address of an actor, and an endpoint, are
 * written. */
#define DOMUS_PICKLE_EXT_ADDRESS  1
#define DOMUS_PICKLE_EXT_ENDPOINT 2

/* --- tables of fields ----------------------------------------------------------------------- */

/* The kinds of values that a field may have. The macros of rows (DOMUS_PICKLE() and others) choose
 * one. */
typedef enum domus_pickle_kind {
    DOMUS_PICKLE_KIND_BOOL = 1,
    DOMUS_PICKLE_KIND_INT,
    DOMUS_PICKLE_KIND_UINT,
    DOMUS_PICKLE_KIND_ENUM,
    DOMUS_PICKLE_KIND_REAL,
    DOMUS_PICKLE_KIND_TEXT,
    DOMUS_PICKLE_KIND_OWNED_TEXT,
    DOMUS_PICKLE_KIND_SLICE,
    DOMUS_PICKLE_KIND_ADDRESS,
    DOMUS_PICKLE_KIND_ENDPOINT,
    DOMUS_PICKLE_KIND_STRUCT,
} domus_pickle_kind;

/* How many values the member of a field has. */
typedef enum domus_pickle_shape {
    DOMUS_PICKLE_ONE,
    DOMUS_PICKLE_FIXED, /* an array T member[n], all of whose elements are in use */
    /* an array T member[n]; another member says how many elements are in use */
    DOMUS_PICKLE_COUNTED,
    /* a pointer T *member to memory of malloc(3); another member has the count */
    DOMUS_PICKLE_POINTED,
} domus_pickle_shape;

/* A value of an enum. A row without a word marks the end of a list. */
typedef struct domus_pickle_word {
    const char *word;
    int64_t value;
} domus_pickle_word;

typedef struct domus_pickle_table domus_pickle_table;

/* A row of a table: macros such as DOMUS_PICKLE() fill it, in the order of these members, as C++
 * wants. */
typedef struct domus_pickle_field {
    const char *name; /* name of the field's member, for the texts of errors; it is not written */
    uint32_t offset;  /* offset of the field's member in the struct */
    uint32_t size;    /* bytes of the field's member, or of one element of it */
    /* number of the field, 1..DOMUS_PICKLE_NUMBER_MAX, by which rows are sorted */
    uint8_t number;
    char member; /* the type of the member as the compiler sees it, a letter; 0: not known */

    uint8_t shape; /* shape of the field's member, a domus_pickle_shape */
    /* place of the elements as the compiler sees it: 'a' an array, 'p' a pointer; 0: not known */
    char elements;
    uint8_t count_size;    /* size in bytes of the member that counts the elements */
    uint32_t count_offset; /* offset of the member that counts the elements, an unsigned integer */
    uint32_t count_max;    /* most elements of the field's member */

    uint8_t kind; /* kind of the field's value, a domus_pickle_kind */
    /* whether `low` and `high` bound the number; otherwise only its member's type does */
    bool ranged;
    bool as_words; /* whether the value, an enum, is written as its word */
    /* most bytes of a value that is an owned text (without its zero) or a slice */
    uint32_t bytes_max;

    /* The least number, the greatest one, and the default: of a UINT as they are, of other kinds as
     * int64_t. */
    uint64_t low;
    uint64_t high;
    uint64_t preset;
    double preset_real;
    /* default of a value that is a text; NULL: "", or for an owned text NULL */
    const char *preset_text;
    const domus_pickle_word *words; /* the values that an enum may have, up to one without a word */
    const domus_pickle_table *table;

    /* whether a message without the field is refused; never for a field with `has` */
    bool required;
    /* bytes of the bool at `has_offset` that says whether the field is there; 0: the field is
     * always there */
    uint8_t has;
    uint32_t has_offset;
} domus_pickle_field;

/* A table: the fields of a struct. */
struct domus_pickle_table {
    const domus_pickle_field *fields;
    uint32_t count; /* number of the table's rows */
    uint32_t size;  /* bytes of the struct that the table is for */
};

/* A table made of an array of rows: DOMUS_PICKLE_TABLE(struct item, item_fields). */
#define DOMUS_PICKLE_TABLE(type, rows)                                                             \
    {                                                                                              \
        .fields = (rows), .count = (uint32_t)(sizeof(rows) / sizeof(rows)[0]),                     \
        .size = (uint32_t)sizeof(type)                                                             \
    }

/* A row for one member: {DOMUS_PICKLE(3, struct item, price, UINT(0))}. The number is the name of
 * the field in the bytes: it is never changed, and never used again for another field. `sort` is:
 *
 *   BOOL(value)               bool
 *   INT(value)                int8_t to int64_t, and all other signed integers
 *   INT_RANGE(low, high, value)
 *   UINT(value)               uint8_t to uint64_t, and all other unsigned integers
 *   UINT_RANGE(low, high, value)
 *   ENUM(list, value)         an enum or integer, whose values are those of a list of
 *                             domus_pickle_word; written as its number
 *   WORD(list, value)         the same, written as its word; both forms are read for both sorts
 *   REAL(value)               float or double
 *   TEXT(value)               an array of char, with a zero behind the text
 *   OWNED_TEXT(most, value)   char *, from malloc(3), or NULL; at most `most` bytes
 *   SLICE(most)               domus_slice; at most `most` bytes
 *   ADDRESS                   domus_address
 *   ENDPOINT                  domus_endpoint, without the scope, which is a number of one machine
 *   STRUCT(table)             a struct with a table of its own
 *
 * `value` is the default, that of a text NULL or a constant. Slices are empty and addresses
 * nobody's by default. In C the compiler tells whether the member has such a type, and
 * domus_picklers_new() refuses the row otherwise; in C++ only its size is looked at. */
#define DOMUS_PICKLE(field_number, type, field, sort)                                              \
    DOMUS_PICKLE_MEMBER_(field_number, type, field, ((type *)NULL)->field), DOMUS_PICKLE_##sort

/* A row for a member that is an array: T member[n]. All its elements are written. If fewer are
 * read, the others get their default; more are refused with -EMSGSIZE. */
#define DOMUS_PICKLE_ARRAY(field_number, type, field, sort)                                        \
    DOMUS_PICKLE_MEMBER_(field_number, type, field, ((type *)NULL)->field[0]),                     \
        DOMUS_PICKLE_SHAPE_(FIXED, type, field), .count_max = DOMUS_PICKLE_COUNT_(type, field),    \
                                                 DOMUS_PICKLE_##sort

/* A row for a member that is an array of which `count`, another member, an unsigned integer, says
 * how many elements are in use. The other elements are not written, and zero when they were
 * read. */
#define DOMUS_PICKLE_LIST(field_number, type, field, count, sort)                                  \
    DOMUS_PICKLE_MEMBER_(field_number, type, field, ((type *)NULL)->field[0]),                     \
        DOMUS_PICKLE_SHAPE_(COUNTED, type, field), DOMUS_PICKLE_COUNTER_(type, count),             \
        .count_max = DOMUS_PICKLE_COUNT_(type, field), DOMUS_PICKLE_##sort

/* A row for a member that is a pointer to `count` elements in memory of malloc(3), at most `most`;
 * NULL if there are none. */
#define DOMUS_PICKLE_OWNED(field_number, type, field, count, most, sort)                           \
    DOMUS_PICKLE_MEMBER_(field_number, type, field, ((type *)NULL)->field[0]),                     \
        DOMUS_PICKLE_SHAPE_(POINTED, type, field), DOMUS_PICKLE_COUNTER_(type, count),             \
        .count_max = (most), DOMUS_PICKLE_##sort

/* An addition behind a row: the field may be absent, and this member, a bool, says whether it is
 * there. An absent field is not written; when it is read, its member has the default. */
#define DOMUS_PICKLE_HAS(type, field)                                                              \
    .has = (uint8_t)sizeof(((type *)NULL)->field), .has_offset = (uint32_t)offsetof(type, field)

#define DOMUS_PICKLE_BOOL(value)                                                                   \
    .kind = DOMUS_PICKLE_KIND_BOOL, .preset = (uint64_t)((value) ? 1 : 0)
#define DOMUS_PICKLE_INT(value) .kind = DOMUS_PICKLE_KIND_INT, .preset = (uint64_t)(int64_t)(value)
#define DOMUS_PICKLE_INT_RANGE(least, most, value)                                                 \
    .kind = DOMUS_PICKLE_KIND_INT, .ranged = true, .low = (uint64_t)(int64_t)(least),              \
    .high = (uint64_t)(int64_t)(most), .preset = (uint64_t)(int64_t)(value)
#define DOMUS_PICKLE_UINT(value) .kind = DOMUS_PICKLE_KIND_UINT, .preset = (uint64_t)(value)
#define DOMUS_PICKLE_UINT_RANGE(least, most, value)                                                \
    .kind = DOMUS_PICKLE_KIND_UINT, .ranged = true, .low = (uint64_t)(least),                      \
    .high = (uint64_t)(most), .preset = (uint64_t)(value)
#define DOMUS_PICKLE_ENUM(list, value)                                                             \
    .kind = DOMUS_PICKLE_KIND_ENUM, .preset = (uint64_t)(int64_t)(value), .words = (list)
#define DOMUS_PICKLE_WORD(list, value)                                                             \
    .kind = DOMUS_PICKLE_KIND_ENUM, .as_words = true, .preset = (uint64_t)(int64_t)(value),        \
    .words = (list)
#define DOMUS_PICKLE_REAL(value) .kind = DOMUS_PICKLE_KIND_REAL, .preset_real = (value)
#define DOMUS_PICKLE_TEXT(value) .kind = DOMUS_PICKLE_KIND_TEXT, .preset_text = (value)
#define DOMUS_PICKLE_OWNED_TEXT(most, value)                                                       \
    .kind = DOMUS_PICKLE_KIND_OWNED_TEXT, .bytes_max = (most), .preset_text = (value)
#define DOMUS_PICKLE_SLICE(most)      .kind = DOMUS_PICKLE_KIND_SLICE, .bytes_max = (most)
#define DOMUS_PICKLE_ADDRESS          .kind = DOMUS_PICKLE_KIND_ADDRESS
#define DOMUS_PICKLE_ENDPOINT         .kind = DOMUS_PICKLE_KIND_ENDPOINT
#define DOMUS_PICKLE_STRUCT(of_table) .kind = DOMUS_PICKLE_KIND_STRUCT, .table = &(of_table)

#define DOMUS_PICKLE_COUNT_(type, field)                                                           \
    (uint32_t)(sizeof(((type *)NULL)->field) / sizeof(((type *)NULL)->field[0]))
#define DOMUS_PICKLE_COUNTER_(type, count)                                                         \
    .count_size = (uint8_t)sizeof(((type *)NULL)->count),                                          \
    .count_offset = (uint32_t)offsetof(type, count)
#define DOMUS_PICKLE_MEMBER_(field_number, type, field, value)                                     \
    .name = #field, .offset = (uint32_t)offsetof(type, field), .size = (uint32_t)sizeof(value),    \
    .number = (field_number), .member = DOMUS_PICKLE_TYPE_(value)
#define DOMUS_PICKLE_SHAPE_(of, type, field)                                                       \
    .shape = DOMUS_PICKLE_##of, .elements = DOMUS_PICKLE_WHERE_(((type *)NULL)->field)
#ifdef __cplusplus
#define DOMUS_PICKLE_TYPE_(value)   0
#define DOMUS_PICKLE_WHERE_(member) 0
#else
#define DOMUS_PICKLE_WHERE_(member)                                                                \
    (__builtin_types_compatible_p(__typeof__(member), __typeof__(&(member)[0])) ? 'p' : 'a')
#define DOMUS_PICKLE_TYPE_(value)                                                                  \
    _Generic(&(value),                                                                             \
        bool *: 'b',                                                                               \
        signed char *: 'i',                                                                        \
        short *: 'i',                                                                              \
        int *: 'i',                                                                                \
        long *: 'i',                                                                               \
        long long *: 'i',                                                                          \
        unsigned char *: 'u',                                                                      \
        unsigned short *: 'u',                                                                     \
        unsigned *: 'u',                                                                           \
        unsigned long *: 'u',                                                                      \
        unsigned long long *: 'u',                                                                 \
        float *: 'r',                                                                              \
        double *: 'r',                                                                             \
        char **: 't',                                                                              \
        domus_slice *: 's',                                                                        \
        domus_address *: 'a',                                                                      \
        domus_endpoint *: 'e',                                                                     \
        default: 0)
#endif

/* Free all that a struct owns by its table: owned texts, slices, pointed lists, and what their
 * elements own. The pointers become zero, so a second call does nothing. This is all that the
 * `release` of most types has to do. */
DOMUS_API void domus_pickle_release(const domus_pickle_table *table, void *value);

/* Check a table and those in it. domus_picklers_new() does so for the tables of its picklers; this
 * is for tables that only functions of a user give to domus_pickle_put_struct().
 * Returns 0; -EINVAL, and `error` says in one line which row is wrong. */
DOMUS_API int domus_pickle_check(const domus_pickle_table *table, char *error, size_t error_size);

/* --- the types of a program ----------------------------------------------------------------- */

/* The writer and the reader that the functions of a pickler use (domus/pickle_code.h). */
typedef struct domus_pickle_writer domus_pickle_writer;
typedef struct domus_pickle_reader domus_pickle_reader;

/* How one type of message is written and read: by a table, or by both functions, or, if its
 * payload has no bytes, by neither. */
typedef struct domus_pickler {
    /* the type of the messages; NULL marks the end of an array of picklers */
    const domus_type *type;
    /* name of the type in the bytes of its messages, 1..DOMUS_PICKLE_NAME_MAX bytes, the same in
     * all programs; NULL: type->name */
    const char *name;
    uint32_t version; /* the version in which messages of the type are written, from 1 */
    uint32_t oldest;  /* the oldest version of such messages that is read, 1..version; 0 means 1 */
    const domus_pickle_table *table;

    /* A function that writes one value by the functions of domus/pickle_code.h. Returns 0 or a
     * negative errno. It must not block, and may be called again for the same payload. */
    int (*write)(domus_pickle_writer *writer, const void *payload);
    /* A function that reads one value, which was written by `version`, into the payload, which is
     * zeroed. Returns 0 or a negative errno. After an error the library calls the type's `release`
     * for what was read until then, so `release` must do nothing for zeros. */
    int (*read)(domus_pickle_reader *reader, void *payload, uint32_t version);

    /* A function that checks what no row can, such as whether two fields fit each other, after each
     * read. A negative errno refuses the message, and `error` then gets one line that says why.
     * NULL: there is no such check. */
    int (*check)(const void *payload, uint32_t version, char *error, size_t error_size);
} domus_pickler;

typedef struct domus_picklers domus_picklers;

/* Make the index of the types of a program: `list` is an array, whose end is a row with a NULL
 * type. The array and its tables must stay as they are until domus_picklers_free(). Everything is
 * checked here, so that nothing has to be checked later: each table, that each type and each name
 * is there once, that no two names have the same hash, and that a type which owns something has a
 * `release`. Finding a pickler takes the same time for any number of them.
 *
 * Returns 0; -EINVAL, and `error` says what is wrong; -E2BIG with more than DOMUS_PICKLERS_MAX;
 * -ENOMEM. */
DOMUS_API int domus_picklers_new(const domus_pickler *list, char *error, size_t error_size,
                                 domus_picklers **ret_picklers);

/* Free an index of types. NULL is allowed, and does nothing. */
DOMUS_API void domus_picklers_free(domus_picklers *picklers);

/* Returns the number that stands for a name in the bytes: FNV-1a of 64 bits. */
DOMUS_API uint64_t domus_pickle_hash(const char *name);

/* Returns the pickler of a type, or of the type with this hash of its name; NULL: there is none. */
DOMUS_API const domus_pickler *domus_pickler_of_type(const domus_picklers *picklers,
                                                     const domus_type *type);
DOMUS_API const domus_pickler *domus_pickler_of_hash(const domus_picklers *picklers, uint64_t hash);

/* --- messages ------------------------------------------------------------------------------- */

/* Defaults of the bounds of a message. */
#define DOMUS_PICKLE_BYTES_PRESET  (UINT32_C(1) << 20)
#define DOMUS_PICKLE_MEMORY_PRESET (UINT32_C(4) << 20)
#define DOMUS_PICKLE_SHARE_PRESET  1024u

/* The bounds of a message, and how addresses of actors become bytes. Zeroed, the bounds are the
 * defaults, and addresses are refused. */
typedef struct domus_pickle_context {
    /* most bytes of one message, both written and read; 0: DOMUS_PICKLE_BYTES_PRESET; at most
     * DOMUS_SLICE_MAX */
    uint32_t bytes_max;
    /* most bytes of memory that reading one message may take for owned texts, pointed lists and
     * copies of slices; 0: DOMUS_PICKLE_MEMORY_PRESET */
    uint32_t memory_max;
    /* The least bytes of a slice that shares the page of the message that is read, which lives as
     * long as the slice; a shorter slice is a copy. 0: DOMUS_PICKLE_SHARE_PRESET; 1: all share. */
    uint32_t share_min;

    /* A function that writes an address as at most DOMUS_PICKLE_ADDRESS_MAX bytes. It is not called
     * for `(domus_address){0}`. Returns the number of bytes, at least 1, or a negative errno. NULL:
     * -EOPNOTSUPP. */
    int (*write_address)(void *context, domus_address address, unsigned char *bytes);
    /* A function that reads an address. Returns 0 or a negative errno. NULL: -EOPNOTSUPP. */
    int (*read_address)(void *context, const unsigned char *bytes, size_t size,
                        domus_address *ret_address);
    void *context; /* argument that `write_address` and `read_address` get */
} domus_pickle_context;

/* Append a message to `to`: the hash of its name, its version and its payload. `context` may be
 * NULL.
 *
 * Ownership: the payload stays the caller's, with all that it owns.
 * Returns 0; -ENOENT when the type has no pickler; -EINVAL when the payload is wrong (a text
 * without a zero, a count beyond its bound, a NULL with a count); -ERANGE when a number or enum is
 * out of its range; -EMSGSIZE above `bytes_max`, the bound of a field, or the appender's own
 * bound; -EOPNOTSUPP and what the callbacks return; -ENOMEM. After an error `error` (which may be
 * NULL if its size is 0) says in one line what was wrong, and the appender holds what it held
 * before, except after -ENOMEM, which it keeps as after domus_append(). */
DOMUS_API int domus_pickle(const domus_picklers *picklers, const domus_pickle_context *context,
                           const domus_type *type, const void *payload, domus_appender *to,
                           char *error, size_t error_size);

/* Write a message, as domus_pickle() appends it, into a buffer of the caller; `ret_size` gets the
 * number of bytes. Returns as domus_pickle(); -EMSGSIZE beyond `size`. */
DOMUS_API int domus_pickle_into(const domus_picklers *picklers, const domus_pickle_context *context,
                                const domus_type *type, const void *payload, void *buffer,
                                size_t size, size_t *ret_size, char *error, size_t error_size);

/* A message as bytes, whose type and version are known. */
typedef struct domus_pickled {
    const domus_pickler *pickler;
    uint32_t version; /* version in which the message was written, of its type */
    uint32_t at;      /* offset of the message's payload in `bytes` */
    domus_slice bytes;
} domus_pickled;

/* Look which message the bytes are. Then the caller has room made for pickler->type->size bytes,
 * for instance by domus_message_new(), and calls domus_unpickle().
 *
 * Ownership: the bytes stay the caller's.
 * Returns 0; -ENOENT when no pickler has this name; -EPROTONOSUPPORT when the version is older than
 * the `oldest` of the pickler; -EBADMSG when the bytes are no message; -EMSGSIZE above
 * `bytes_max`. `error` as of domus_pickle(). */
DOMUS_API int domus_pickled_open(const domus_picklers *picklers,
                                 const domus_pickle_context *context, domus_slice bytes,
                                 domus_pickled *ret_pickled, char *error, size_t error_size);

/* Read the payload of a message into `payload`, whatever that held.
 *
 * Ownership: the bytes stay the caller's. The payload owns what it points to, and the `release` of
 * its type frees it. After an error the payload is zeroed, and nothing is left to free.
 * Returns 0; -EBADMSG when the bytes are not MessagePack, are cut off, or go on behind the payload,
 * when a field has another kind of value than its row, is there twice, or is required and missing;
 * -ERANGE when a number does not fit; -EMSGSIZE when a text, a slice or a list has more than its
 * bound, or all together more than `memory_max`; -EOPNOTSUPP for an address without a callback;
 * -ENOMEM; and what the callbacks and functions of the program return. `error` as of
 * domus_pickle(). */
DOMUS_API int domus_unpickle(const domus_pickled *pickled, const domus_pickle_context *context,
                             void *payload, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
