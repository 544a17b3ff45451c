/* JSON: one table of fields reads a text into a struct, and writes one.
 *
 *   struct item { char sku[16]; uint32_t count; double price; };
 *   struct order {
 *       uint64_t id;
 *       uint32_t state;
 *       const char *note;
 *       struct item items[20];
 *       uint32_t item_count;
 *       domus_json_memory memory;
 *   };
 *   static const char *const states[] = {"open", "paid", NULL};
 *   static const domus_json_field item_fields[] = {
 *       {DOMUS_JSON_TEXT("sku", struct item, sku), .required = true},
 *       {DOMUS_JSON_UINT("count", struct item, count, 1, 100), .required = true},
 *       {DOMUS_JSON_REAL("price", struct item, price, 0, 1e6)},
 *   };
 *   static const domus_json_table item_table = DOMUS_JSON_TABLE(struct item, item_fields);
 *   static const domus_json_field order_fields[] = {
 *       {DOMUS_JSON_UINT("id", struct order, id, 0, UINT64_MAX), .required = true},
 *       {DOMUS_JSON_WORD("state", struct order, state, states)},
 *       {DOMUS_JSON_STRING("note", struct order, note, 2000)},
 *       {DOMUS_JSON_LIST("items", struct order, items, item_count, OBJECT(item_table))},
 *   };
 *   static const domus_json_table order_table = DOMUS_JSON_TABLE(struct order, order_fields);
 *
 *   struct order order;
 *   domus_json_error error;
 *   if (domus_json_read(&order_table, NULL, bytes, size, &order, &order.memory, &error) != 0)
 *       ... domus_json_explain(&error, text, sizeof text) ...
 *   ...
 *   domus_json_release(&order.memory);
 *
 * The text of such an error is "items[3].price: not a number (line 1, column 57)". All that a
 * struct points to lies in memory of the one domus_json_memory, so nothing else has to be freed.
 *
 * Reading is strict: RFC 8259 and no more, valid UTF-8, no field that the table does not have
 * (unless it `skips_unknown`), and none twice. It trusts no byte: each size is held against its
 * bound before memory is taken for it.
 *
 * JSON by hand is in domus/json_writer.h, and arrays that come in pieces in domus/json_feed.h.
 *
 * Thread-safety: any thread, also several at once with the same tables. */
#ifndef DOMUS_JSON_H
#define DOMUS_JSON_H

#include <domus/slice.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_JSON_FIELDS_MAX 64u /* most rows of a table, one for each field */
#define DOMUS_JSON_NAME_MAX   63u /* most bytes of the name of a field of an object */
#define DOMUS_JSON_DEPTH_MAX  32u /* most objects and arrays that lie within each other */
/* greatest bound on the number of elements of a list */
#define DOMUS_JSON_ELEMENTS_MAX (1u << 24)
/* most bytes of a text of JSON that is read whole */
#define DOMUS_JSON_BYTES_MAX (64u << 20)
/* most bytes of the path of an error; a longer one begins with "..." */
#define DOMUS_JSON_PATH_MAX 127u
/* most bytes of the words of an error (domus_json_error) */
#define DOMUS_JSON_WORDS_MAX 127u
/* bytes of room in which domus_json_explain() never cuts an error */
#define DOMUS_JSON_EXPLAIN_MAX 320u
/* default of bytes_max of domus_json_options */
#define DOMUS_JSON_BYTES_PRESET (1u << 20)
/* default of memory_max of domus_json_options */
#define DOMUS_JSON_MEMORY_PRESET (4u << 20)
/* memory for a text or a list is a multiple of so many bytes */
#define DOMUS_JSON_MEMORY_STEP 16u
/* bytes that each block of memory takes for the library itself */
#define DOMUS_JSON_MEMORY_BLOCK 32u

/* --- tables ----------------------------------------------------------------------------------- */

/* The kinds of values that a field may have. The macros of rows (DOMUS_JSON_UINT() and others)
 * choose one. */
typedef enum domus_json_kind {
    DOMUS_JSON_KIND_BOOL = 1,
    DOMUS_JSON_KIND_INT,
    DOMUS_JSON_KIND_UINT,
    DOMUS_JSON_KIND_REAL,
    DOMUS_JSON_KIND_TEXT,
    DOMUS_JSON_KIND_STRING,
    DOMUS_JSON_KIND_WORD,
    DOMUS_JSON_KIND_OBJECT,
    DOMUS_JSON_KIND_RAW,
} domus_json_kind;

/* How many values the member of a field has. */
typedef enum domus_json_shape {
    DOMUS_JSON_ONE,
    DOMUS_JSON_COUNTED, /* an array T member[n]; another member says how many elements are in use */
    DOMUS_JSON_POINTED, /* a pointer T *member to memory of its own; another member has the count */
} domus_json_shape;

typedef struct domus_json_table domus_json_table;

/* A value of any kind as it stands in the text, with all that is within it. */
typedef struct domus_json_raw {
    const char *text; /* the value's JSON as it stands in the text, with a zero behind it; NULL:
                         there is no value */
    uint32_t size;    /* bytes of the value's text, without the zero */
} domus_json_raw;

/* A row of a table: macros such as DOMUS_JSON_UINT() fill it, in the order of these members, as C++
 * wants. */
typedef struct domus_json_field {
    /* name of the field in JSON: printable, without '"' and '\\' */
    char name[DOMUS_JSON_NAME_MAX + 1];
    uint32_t name_size; /* length of the name in bytes */
    uint32_t offset;    /* offset of the field's member in the struct */
    uint32_t size;      /* bytes of the field's member, or of one element of it */

    uint8_t kind;          /* kind of the field's value, a domus_json_kind */
    uint8_t shape;         /* shape of the field's member, a domus_json_shape */
    uint8_t count_size;    /* size in bytes of the member that counts the elements of a list */
    uint32_t count_offset; /* offset of the member that counts the elements, an unsigned integer */
    uint32_t count_max;    /* most elements of the field, if it is a list */

    /* the least number (`low`) and the greatest (`high`) of the field; those of an INT as
     * int64_t */
    uint64_t low;
    uint64_t high;
    double real_low; /* the least and the greatest number of a field that is a REAL */
    double real_high;
    uint32_t bytes_max;       /* most bytes of a STRING, without its zero, or of a RAW */
    const char *const *words; /* the words of a field that is a WORD, with NULL at the end */
    const domus_json_table *table;

    /* whether the field may be absent, or null: then a bool at `has_offset` says whether it has a
     * value */
    bool has;
    uint32_t has_offset;

    bool required; /* whether an object without this field is refused */
    bool nullable; /* whether null is read as if the field were absent; with `has` it always is */
} domus_json_field;

/* A table: the fields of a struct. */
struct domus_json_table {
    const domus_json_field *fields;
    uint32_t count; /* number of the table's rows, 1..DOMUS_JSON_FIELDS_MAX */
    uint32_t size;  /* bytes of the struct that the table is for */

    /* The struct before anything is read into it, so fields that are absent have its values. NULL:
     * zeros; but an object that is a member of another object (not an element of a list) has the
     * values of the other object's preset. */
    const void *preset;
    bool skips_unknown; /* whether fields that have no row are passed over, and not refused */
};

/* A table made of an array of rows: DOMUS_JSON_TABLE(struct item, item_fields). `.preset` and
 * `.skips_unknown` may be given by DOMUS_JSON_TABLE_WITH(struct item, item_fields, .skips_unknown =
 * true). */
#define DOMUS_JSON_TABLE(type, rows)                                                               \
    {                                                                                              \
        .fields = (rows), .count = (uint32_t)(sizeof(rows) / sizeof(rows)[0]),                     \
        .size = (uint32_t)sizeof(type)                                                             \
    }
#define DOMUS_JSON_TABLE_WITH(type, rows, ...)                                                     \
    {                                                                                              \
        .fields = (rows), .count = (uint32_t)(sizeof(rows) / sizeof(rows)[0]),                     \
        .size = (uint32_t)sizeof(type), __VA_ARGS__                                                \
    }

/* Rows for one value. `.required = true`, `.nullable = true` and DOMUS_JSON_HAS() may follow; in
 * C++ DOMUS_JSON_HAS() comes before them. `name` is a literal. In C a member of another type does
 * not compile.
 *
 *   BOOL                bool
 *   INT(low, high)      int8_t to int64_t; a number with '.' or an exponent is no integer
 *   UINT(low, high)     uint8_t to uint64_t
 *   REAL(low, high)     double; any number
 *   TEXT                an array of char, with a zero behind the text; "\u0000" is refused in it
 *   STRING(most)        const char *; at most `most` bytes, with a zero behind them. "\u0000" is
 *                       refused in it. NULL: absent
 *   WORD(words)         an enum or an unsigned integer of 1, 2 or 4 bytes gets the index of the
 *                       word in `words`, an array with NULL at its end
 *   OBJECT(table)       a struct with a table of its own
 *   RAW(most)           domus_json_raw; at most `most` bytes */
#define DOMUS_JSON_BOOL(name, type, member) DOMUS_JSON_ONE_(name, type, member, BOOL)
#define DOMUS_JSON_INT(name, type, member, low, high)                                              \
    DOMUS_JSON_ONE_(name, type, member, INT(low, high))
#define DOMUS_JSON_UINT(name, type, member, low, high)                                             \
    DOMUS_JSON_ONE_(name, type, member, UINT(low, high))
#define DOMUS_JSON_REAL(name, type, member, low, high)                                             \
    DOMUS_JSON_ONE_(name, type, member, REAL(low, high))
#define DOMUS_JSON_TEXT(name, type, member) DOMUS_JSON_ONE_(name, type, member, TEXT)
#define DOMUS_JSON_STRING(name, type, member, most)                                                \
    DOMUS_JSON_ONE_(name, type, member, STRING(most))
#define DOMUS_JSON_WORD(name, type, member, words) DOMUS_JSON_ONE_(name, type, member, WORD(words))
#define DOMUS_JSON_OBJECT(name, type, member, table)                                               \
    DOMUS_JSON_ONE_(name, type, member, OBJECT(table))
#define DOMUS_JSON_RAW(name, type, member, most) DOMUS_JSON_ONE_(name, type, member, RAW(most))

/* A row for an array within the struct, whose length is the greatest number of elements. `count` is
 * a member, an unsigned integer. `sort` is the kind of the elements with its bounds, such as
 * UINT(0, 9). */
#define DOMUS_JSON_LIST(name, type, member, count, sort)                                           \
    DOMUS_JSON_NAMED_(name, type, member),                                                         \
        .size = DOMUS_JSON_SIZE_(((type *)NULL)->member[0], DOMUS_JSON_SORT_##sort),               \
        .kind = DOMUS_JSON_KIND_(DOMUS_JSON_SORT_##sort), .shape = DOMUS_JSON_COUNTED,             \
        DOMUS_JSON_COUNT_(type, count),                                                            \
        .count_max =                                                                               \
            (uint32_t)(sizeof(((type *)NULL)->member) / sizeof(((type *)NULL)->member[0])),        \
        DOMUS_JSON_REST_(DOMUS_JSON_SORT_##sort)

/* A row for an array that is a pointer in the struct: at most `most` elements. */
#define DOMUS_JSON_ARRAY(name, type, member, count, most, sort)                                    \
    DOMUS_JSON_NAMED_(name, type, member),                                                         \
        .size = DOMUS_JSON_SIZE_(((type *)NULL)->member[0], DOMUS_JSON_SORT_##sort),               \
        .kind = DOMUS_JSON_KIND_(DOMUS_JSON_SORT_##sort), .shape = DOMUS_JSON_POINTED,             \
        DOMUS_JSON_COUNT_(type, count), .count_max = (most),                                       \
        DOMUS_JSON_REST_(DOMUS_JSON_SORT_##sort)

/* An addition behind a row: the field has a value only if the bool `member` is true. */
#define DOMUS_JSON_HAS(type, member)                                                               \
    .has = sizeof(((type *)NULL)->member) == sizeof(bool),                                         \
    .has_offset = (uint32_t)offsetof(type, member)

/* Macros that the macros of rows are made of, not for programs: a sort is its kind, its word for
 * the type of the member, and what else its row has. */
#define DOMUS_JSON_SORT_BOOL (BOOL, B, .low = 0)
#define DOMUS_JSON_SORT_INT(least, most)                                                           \
    (INT, I, .low = (uint64_t)(int64_t)(least), .high = (uint64_t)(int64_t)(most))
#define DOMUS_JSON_SORT_UINT(least, most)    (UINT, U, .low = (least), .high = (most))
#define DOMUS_JSON_SORT_REAL(least, most)    (REAL, R, .real_low = (least), .real_high = (most))
#define DOMUS_JSON_SORT_TEXT                 (TEXT, T, .low = 0)
#define DOMUS_JSON_SORT_STRING(most)         (STRING, S, .bytes_max = (most))
#define DOMUS_JSON_SORT_WORD(list)           (WORD, U, .words = (list))
#define DOMUS_JSON_SORT_OBJECT(of)           (OBJECT, ANY, .table = &(of))
#define DOMUS_JSON_SORT_RAW(most)            (RAW, J, .bytes_max = (most))
#define DOMUS_JSON_KIND_(sort)               DOMUS_JSON_KIND_OF_ sort
#define DOMUS_JSON_KIND_OF_(kind, ...)       DOMUS_JSON_KIND_##kind
#define DOMUS_JSON_REST_(sort)               DOMUS_JSON_REST_OF_ sort
#define DOMUS_JSON_REST_OF_(kind, word, ...) __VA_ARGS__
#define DOMUS_JSON_WORD_(sort)               DOMUS_JSON_WORD_OF_ sort
#define DOMUS_JSON_WORD_OF_(kind, word, ...) DOMUS_JSON_IS_##word##_
#define DOMUS_JSON_NAMED_(field, type, member)                                                     \
    .name = "" field, .name_size = (uint32_t)(sizeof(field) - 1),                                  \
    .offset = (uint32_t)offsetof(type, member)
#define DOMUS_JSON_COUNT_(type, count)                                                             \
    .count_size = (uint8_t)sizeof(((type *)NULL)->count),                                          \
    .count_offset = (uint32_t)offsetof(type, count)
#define DOMUS_JSON_ONE_(name, type, member, sort)                                                  \
    DOMUS_JSON_NAMED_(name, type, member),                                                         \
        .size = DOMUS_JSON_SIZE_(((type *)NULL)->member, DOMUS_JSON_SORT_##sort),                  \
        .kind = DOMUS_JSON_KIND_(DOMUS_JSON_SORT_##sort), DOMUS_JSON_REST_(DOMUS_JSON_SORT_##sort)
#ifdef __cplusplus
#define DOMUS_JSON_SIZE_(value, sort) (uint32_t)sizeof(value)
#else
/* Returns the size of a member; if the member has another type than its row, this is an array of -1
 * elements, which does not compile. */
#define DOMUS_JSON_SIZE_(value, sort)                                                              \
    (uint32_t)(sizeof(value) + 0 * sizeof(char[DOMUS_JSON_WORD_(sort)(value) ? 1 : -1]))
#define DOMUS_JSON_IS_B_(value) _Generic(&(value), bool * : 1, default : 0)
#define DOMUS_JSON_IS_I_(value)                                                                    \
    _Generic(&(value), signed char * : 1, short * : 1, int * : 1, long * : 1, long long * : 1,     \
             default : 0)
#define DOMUS_JSON_IS_U_(value)                                                                    \
    _Generic(&(value), unsigned char * : 1, unsigned short * : 1, unsigned * : 1,                  \
             unsigned long * : 1, unsigned long long * : 1, default : 0)
#define DOMUS_JSON_IS_R_(value) _Generic(&(value), double * : 1, default : 0)
#define DOMUS_JSON_IS_T_(value)                                                                    \
    (_Generic(&(value)[0], char * : 1, default : 0) &&                                             \
     !__builtin_types_compatible_p(__typeof__(value), char *))
#define DOMUS_JSON_IS_S_(value)   _Generic(&(value), const char ** : 1, default : 0)
#define DOMUS_JSON_IS_J_(value)   _Generic(&(value), domus_json_raw * : 1, default : 0)
#define DOMUS_JSON_IS_ANY_(value) (sizeof(value) != 0)
#endif

/* Check a table and those in it, for a test or the start of a program: reading and writing rely on
 * what this finds right. It looks for names that are there twice, ranges that are empty or larger
 * than the member, words that are there twice, rows that reach beyond the struct or share bytes,
 * and objects whose struct has another size.
 * Returns 0; -EINVAL, and `error` says in one line which row is wrong. */
DOMUS_API int domus_json_check_table(const domus_json_table *table, char *error, size_t error_size);

/* --- reading ---------------------------------------------------------------------------------- */

/* Memory that a struct which was read points to. `{0}` is none. Copying the struct copies no
 * memory: one of the copies is the owner. */
typedef struct domus_json_memory {
    void *blocks;
} domus_json_memory;

/* Free what a struct points to. `memory` may be NULL, and a second call does nothing. */
DOMUS_API void domus_json_release(domus_json_memory *memory);

/* The first thing that is wrong in a text. No more than 24 bytes of the text are shown in `words`,
 * and of these only letters, digits and signs of ASCII. */
typedef struct domus_json_error {
    int error; /* a negative errno, as domus_json_read() returns it */
    /* column of the error's place in bytes, from 1; with `line` 0: no place */
    uint32_t column;
    uint64_t line;   /* line of the error's place, from 1; 0: no place */
    uint64_t offset; /* bytes of the text before the error's place */
    /* path of the value that is wrong, such as "items[3].price"; "": the whole */
    char path[DOMUS_JSON_PATH_MAX + 1];
    char words[DOMUS_JSON_WORDS_MAX + 1];
} domus_json_error;

/* Write an error as one line: "items[3].price: not a number (line 1, column 57)". At most
 * `size` bytes with the zero. Returns `text`, so that it may stand where a text is wanted. */
DOMUS_API const char *domus_json_explain(const domus_json_error *error, char *text, size_t size);

/* Returns the status of HTTP that tells a client of an error: 400 when the text is no JSON, 413
 * when it is too large, 503 when memory was short, and 422 when the values are not those of the
 * table. */
DOMUS_API int domus_json_status(const domus_json_error *error);

/* The bounds of a text that is read. Zeroed, they are the defaults. */
typedef struct domus_json_options {
    uint32_t bytes_max; /* most bytes of the text; 0 means 1 MiB; at most DOMUS_JSON_BYTES_MAX */
    /* most bytes of the blocks of memory that the struct may point to; 0 means 4 MiB. Each text and
     * list takes a multiple of DOMUS_JSON_MEMORY_STEP, and each block DOMUS_JSON_MEMORY_BLOCK
     * beside them */
    uint32_t memory_max;
    /* most objects and arrays that lie within each other; 0: DOMUS_JSON_DEPTH_MAX, which is also
     * the most */
    uint32_t depth_max;
} domus_json_options;

/* Read a text that is one object into the struct of a table, whatever that held.
 *
 * `options` may be NULL. `ret_memory` gets what the struct points to; it may be NULL if no row of
 * the table is a STRING, RAW or ARRAY. `ret_error` may be NULL; it is written only after an error.
 *
 * Ownership: the bytes stay the caller's, and nothing points to them. The memory is the caller's
 * until domus_json_release(). After an error the struct may hold anything, but no memory is left.
 * Returns 0; -EBADMSG when the text is no JSON (RFC 8259) or no UTF-8, a lone surrogate included;
 * -EPROTO when a value is of another kind than its row, or a field is missing, unknown or there
 * twice; -ERANGE when a number is out of its range or a word none of its list; -EMSGSIZE when a
 * text or list is longer than its bound, the depth is too great, or `memory_max` is reached; -EFBIG
 * above `bytes_max`; -ENOMEM; -EINVAL when memory is needed and `ret_memory` is NULL, or options
 * are out of their range. */
DOMUS_API int domus_json_read(const domus_json_table *table, const domus_json_options *options,
                              const void *bytes, size_t size, void *ret_value,
                              domus_json_memory *ret_memory, domus_json_error *ret_error);

/* Read a value from a slice, such as the body of a request. Returns as domus_json_read(). */
DOMUS_API int domus_json_read_slice(const domus_json_table *table,
                                    const domus_json_options *options, domus_slice bytes,
                                    void *ret_value, domus_json_memory *ret_memory,
                                    domus_json_error *ret_error);

/* Check whether a text is JSON, a value of any kind. In an object fields may be there twice.
 * Returns as domus_json_read(). */
DOMUS_API int domus_json_check(const domus_json_options *options, const void *bytes, size_t size,
                               domus_json_error *ret_error);

/* --- writing ---------------------------------------------------------------------------------- */

/* Append a struct as an object to `to`, without spaces, with its fields in the order of the table.
 * A field that has no value (its `has` is false, its STRING or RAW is NULL) is left out, or null if
 * it is `required` and may be null. Doubles are written so that they read back equal, -0 included.
 * A field that is left out reads back as its preset.
 *
 * Returns 0; -EINVAL when the struct is wrong (a TEXT without a zero, a count beyond its bound, a
 * required text that is NULL, a RAW that is no JSON) or nested deeper than DOMUS_JSON_DEPTH_MAX;
 * -ERANGE when a number is out of its range, a word is none, or a double is not finite; -EMSGSIZE
 * when a text is longer than its bound, and beyond the appender's bound; -EILSEQ when a text is no
 * UTF-8; -ENOMEM. After an error `ret_error` (which may be NULL) has the path and the words, and
 * the appender holds the part that was written before it, so drop that. */
DOMUS_API int domus_json_write(const domus_json_table *table, const void *value, domus_appender *to,
                               domus_json_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
