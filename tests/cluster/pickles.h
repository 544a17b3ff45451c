/* Helpers of the tests of picklers: a struct with a member of each kind and shape, and messages
 * with given bytes. */
#ifndef DOMT_PICKLES_H
#define DOMT_PICKLES_H

#include <domus/pickle_code.h>

#define DOMT_ALL_TEXTS_MAX 7u
#define DOMT_ALL_PARTS_MAX 9u

typedef enum domt_color {
    DOMT_BLUE = -3,
    DOMT_RED = 1,
    DOMT_GREEN = 500,
} domt_color;

typedef struct domt_part {
    uint16_t id; /* a number from 1 to 60000 */
    char *text;
    uint8_t small[3];
    float ratio;
    domus_slice bytes;
} domt_part;

typedef struct domt_all {
    bool flag;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float small;
    double large;
    domt_color color;
    uint8_t mode; /* 0, 7 or 255, written as the words slow, fast and off */
    char text[8];
    char *owned; /* a text of at most 300 bytes */
    domus_slice slice;
    domus_address address;
    domus_endpoint endpoint;
    domt_part part;
    int16_t fixed[4];
    uint32_t listed[5];
    uint8_t listed_count;
    domt_part *parts;
    uint32_t part_count;
    char **texts;
    uint16_t text_count;
    char names[3][6];
    uint64_t name_count;
    domus_slice slices[2];
    bool bits[3];
    bool has_extra;
    int32_t extra; /* a number from -10 to 10 */
    bool has_inner;
    domt_part inner;
    domus_endpoint endpoints[2];
    uint8_t endpoint_count;
    double reals[2];
    domt_color colors[2];
    domus_address addresses[2];
} domt_all;

extern const domus_pickle_table domt_part_table;
extern const domus_pickle_table domt_all_table;
extern const domus_type domt_all_type;
extern const domus_pickler domt_all_picklers[];

/* A context in which an address is pickled as its own bytes, valid as long as its system exists. */
extern const domus_pickle_context domt_addresses;

/* Fill a struct with random members. `borders` 0: all members are least, 1: greatest, 2: empty, 3:
 * any. */
void domt_all_fill_at_random(domt_all *all, uint64_t seed, int borders);
bool domt_all_is_same_as_other(const domt_all *one, const domt_all *other);
void domt_all_free(domt_all *all);

/* Make picklers from a list of types, and check that this succeeds. */
domus_picklers *domt_make_picklers(const domus_pickler *list);

/* Pickle a payload, and check that this succeeds. Returns the bytes. */
domus_slice domt_pickle_payload(const domus_picklers *picklers, const domus_pickle_context *context,
                                const domus_type *type, const void *payload);

/* Make a message of a type with this name, whose payload has these bytes. */
domus_slice domt_make_pickled_message(const char *name, uint32_t version, const void *body,
                                      size_t size);

/* Unpickle a message. Returns the result of domus_pickled_open() or domus_unpickle(). */
int domt_unpickle_message(const domus_picklers *picklers, const domus_pickle_context *context,
                          domus_slice bytes, void *payload, char *error, size_t error_size);

/* Check that the first pickler of `list` reads this payload, and writes the same bytes for it. */
void domt_expect_payload_is_read_back(const domus_pickler *list, const void *body, size_t size);

/* Check that the first pickler of `list` refuses this payload with `error` and `text`. */
void domt_expect_payload_is_refused(const domus_pickler *list, const void *body, size_t size,
                                    int error, const char *text);

#endif
