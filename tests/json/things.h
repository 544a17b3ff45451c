/* A thing: a struct with a member of each kind and shape, which the tests of JSON read and
 * write. */
#ifndef DOMT_JSON_THINGS_H
#define DOMT_JSON_THINGS_H

#include <domus/json.h>

typedef struct part {
    uint32_t number;
    char name[8];
    const char *text;
    double numbers[2];
    uint8_t number_count;
} part;

typedef enum color { RED, GREEN, BLUE } color;

typedef struct thing {
    bool flag;
    int8_t i8;
    int64_t i64;
    uint8_t u8;
    uint64_t u64;
    uint32_t ranged;
    double real;
    char name[16];
    const char *text;
    color hue;
    uint8_t mode;
    domus_json_raw raw;
    part one;
    part parts[3];
    uint16_t part_count;
    part *many;
    uint32_t many_count;
    const char **texts;
    size_t text_count;
    char names[4][8];
    uint8_t name_count;
    domus_json_raw *raws;
    uint8_t raw_count;
    bool has_extra;
    uint32_t extra;
    const char *maybe;
    domus_json_memory memory;
} thing;

extern const domus_json_table part_table;
extern const domus_json_table thing_table;
/* the table of a thing with one difference: unknown fields are skipped */
extern const domus_json_table loose_table;

/* Read a thing from a text of JSON that ends with a zero. Returns as domus_json_read(). */
int thing_read_from_json(const char *text, thing *ret_thing, domus_json_error *ret_error);

/* Check that all members of two things have the same values. */
void thing_check_values_are_same(const thing *left, const thing *right);

/* A text of JSON that sets each member of a thing. */
extern const char thing_text[];

#endif
