/* A section of a program's own in the configuration: its keys stand in the same file as those of
 * domus, and are read as strictly (domus/yaml.h).
 *
 * The program has a struct of numbers and texts, and one row of a constant table for each key.
 * Texts are arrays within the struct, so a copy of the struct is whole: it can be sent to actors by
 * value, and nothing in it has to be freed.
 *
 *   struct settings {
 *       uint64_t timeout_ns;
 *       uint32_t retries, room_count;
 *       bool verbose;
 *       char upstream[64], rooms[8][32];
 *   };
 *   static const domus_config_key keys[] = {
 *       {DOMUS_KEY("timeout", DURATION, struct settings, timeout_ns, 1000000, 60000000000, 0)},
 *       {DOMUS_KEY("retries", COUNT, struct settings, retries, 0, 10, 3)},
 *       {DOMUS_KEY_SWITCH("verbose", struct settings, verbose, false)},
 *       {DOMUS_KEY_TEXT("upstream", ADDRESS, struct settings, upstream, 1, NULL)},
 *       {DOMUS_KEY_TEXTS("rooms", NAME, struct settings, rooms, room_count, "lobby,garden")},
 *       {.path = NULL},
 *   };
 *   static const domus_section section = {.name = "chat", .keys = keys,
 *                                         .size = sizeof(struct settings)};
 *
 * A path with dots ("retry.max") is a key of a section within the section. */
#ifndef DOMUS_SECTION_H
#define DOMUS_SECTION_H

#include <domus/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* most rows of a section's table of keys, without the row that ends it */
#define DOMUS_SECTION_KEYS_MAX 64
/* most bytes of the program's struct */
#define DOMUS_SECTION_BYTES_MAX 65536
/* most bytes of the name of a section, and of each part of a path */
#define DOMUS_SECTION_NAME_MAX 31

typedef struct domus_section {
    /* Name of the section, which is its key at the top of the file: letters, digits, '-' and '_',
     * and no key of domus itself. */
    const char *name;
    /* Rows of the section, one for each key: their offsets are in the struct. A row without a path
     * marks the end. */
    const domus_config_key *keys;
    size_t size; /* bytes of the program's struct, which the rows fill */

    /* A function that checks what no row can, such as whether two values fit each other, when each
     * value by itself is right. A negative return means that something is wrong, and `error` then
     * gets one line that says what. It may be called several times, on the thread that reads. NULL:
     * there is no such check. */
    int (*check)(const void *values, char *error, size_t error_size);
} domus_section;

/* The words of a key whose value is true or false. */
static const char *const domus_switch_words[] = {"false", "true", NULL};

#define DOMUS_KEY_FIELD_(type, member)                                                             \
    .offset = (uint32_t)offsetof(type, member), .size = (uint32_t)sizeof(((type *)NULL)->member)

/* A row for a key whose value is a number: `sort` is COUNT, PERCENT, SHARE, DURATION (nanoseconds)
 * or SIZE (bytes), and the member is an unsigned integer of 1, 4 or 8 bytes. `low` and `high` are
 * the range, and `value` is the default. `.special`, `.power_of_two` and `.or_zero` may follow the
 * macro. */
#define DOMUS_KEY(name, sort, type, member, low, high, value)                                      \
    .path = (name), .kind = DOMUS_CONFIG_##sort, DOMUS_KEY_FIELD_(type, member), .minimum = (low), \
    .maximum = (high), .preset = (value)

/* A row for a key whose value is true or false; the member is a bool. */
#define DOMUS_KEY_SWITCH(name, type, member, value)                                                \
    .path = (name), .kind = DOMUS_CONFIG_WORD, DOMUS_KEY_FIELD_(type, member), .minimum = 0,       \
    .maximum = 1, .preset = (value), .words = domus_switch_words

/* A row for a key whose value is one of the words in `list`, an array with NULL at its end. The
 * member is an unsigned integer or an enum of 4 bytes and gets the index of the word; `value` is
 * the index of the default. */
#define DOMUS_KEY_WORD(name, type, member, list, value)                                            \
    .path = (name), .kind = DOMUS_CONFIG_WORD, DOMUS_KEY_FIELD_(type, member), .minimum = 0,       \
    .maximum = sizeof(list) / sizeof(list)[0] - 2, .preset = (value), .words = (list)

/* A row for a key whose value is a text: `sort` is TEXT (anything), NAME or ADDRESS, and the member
 * is an array of char, which holds the text with a NUL. `least` is the least length in bytes. With
 * the default NULL the user must give a text. `.secret = true` may follow the macro: then viewers
 * of the configuration (domus/config_shown.h) do not see the text. Viewers never see a text whose
 * path has "password", "secret" or "token" in it, in small letters or capitals. */
#define DOMUS_KEY_TEXT(name, sort, type, member, least, value)                                     \
    .path = (name), .kind = DOMUS_CONFIG_##sort, DOMUS_KEY_FIELD_(type, member),                   \
    .minimum = (least), .maximum = sizeof(((type *)NULL)->member) - 1, .preset_text = (value)

/* A row for a key whose value is a list of texts, none of them empty: the member is an array of
 * arrays of char, whose length is the greatest number of elements, and `count` is a member of type
 * uint32_t. The default is written as in an assignment, with commas between ("a,b"); NULL means an
 * empty list. A file has the list as YAML writes one. */
#define DOMUS_KEY_TEXTS(name, sort, type, member, count, value)                                    \
    .path = (name), .kind = DOMUS_CONFIG_##sort, DOMUS_KEY_FIELD_(type, member), .minimum = 1,     \
    .maximum = sizeof(((type *)NULL)->member[0]) - 1, .preset_text = (value),                      \
    .list_max = (uint32_t)(sizeof(((type *)NULL)->member) / sizeof(((type *)NULL)->member[0])),    \
    .count_offset = (uint32_t)offsetof(type, count)

#ifdef __cplusplus
}
#endif

#endif
