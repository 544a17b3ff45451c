/* Keys of the configuration, as a table: how each is written, its range, its default, and where its
 * value lies in C. The library reads and checks a domus_config by these rows, and programs read
 * sections of their own by rows of the same form (domus/section.h). Constant. */
#ifndef DOMUS_CONFIG_KEY_H
#define DOMUS_CONFIG_KEY_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of value that a key holds, and how such a value is written. */
typedef enum domus_config_kind {
    DOMUS_CONFIG_COUNT,   /* values are numbers: "4096" */
    DOMUS_CONFIG_PERCENT, /* values are percentages: "50" or "50%" */
    DOMUS_CONFIG_SHARE,   /* values are percentages that have their sign: "50%" */
    /* values are times in nanoseconds: "500us"; units are ns, us, ms, s, m, h */
    DOMUS_CONFIG_DURATION,
    DOMUS_CONFIG_SIZE, /* values are sizes in bytes: "64KiB"; units are B, KiB, MiB, GiB */
    /* values are the key's `words`; as a number it is the index of the word */
    DOMUS_CONFIG_WORD,
    DOMUS_CONFIG_CPUS, /* values are CPUs as text: "auto", "none", "0-3,8" */
    DOMUS_CONFIG_NAME, /* values are names as text: letters, digits, '-' and '_' */
    /* values are addresses: "127.0.0.1:7000", "[::1]:7000"; numbers only, never looked up */
    DOMUS_CONFIG_ADDRESS,
    DOMUS_CONFIG_TEXT,     /* values are any text, such as the path of a file */
    DOMUS_CONFIG_NETWORKS, /* values are networks: "10.0.0.0/8, ::1, unix"; only for a listener */
    /* values are lists of texts: "a,b"; in a file also "[a, b]"; only for domus_config */
    DOMUS_CONFIG_TEXTS,
} domus_config_kind;

/* One key of the configuration. This row is the only place that holds the key's default and range.
 * A key that can be written in two ways (`system.threads`: a count, or a share) has two rows with
 * the same path, one after the other. */
typedef struct domus_config_key {
    /* path of the key as in YAML: "scheduler.ioRatio"; of a listener's key: "address" */
    const char *path;
    /* name of the field in C: "domus_config.scheduler.io_ratio"; NULL: not said */
    const char *field;
    domus_config_kind kind; /* kind of value that the key holds */
    /* offset of the field in domus_config, domus_listener_config or domus_pool_config */
    uint32_t offset;
    uint32_t size;    /* size of the field in bytes */
    uint64_t minimum; /* least value of the key; for a text its least length in bytes */
    /* greatest value of the key, at most UINT64_MAX - 1; for a text its greatest length in bytes */
    uint64_t maximum;
    uint64_t preset; /* default of a key whose value is a number */
    /* default of a key whose value is a text; NULL: the user must give one */
    const char *preset_text;
    /* a word for a number outside the range, such as "auto"; NULL: there is none */
    const char *special;
    /* the number that `special` stands for; users never write the number itself */
    uint64_t special_number;
    /* the words of a key of the kind DOMUS_CONFIG_WORD, with NULL at the end */
    const char *const *words;
    bool power_of_two; /* whether the value has to be a power of two */
    bool or_zero;      /* whether the value 0 is allowed, too, below the range */
    /* A list of texts, only in a program's own section: the greatest number of elements, and
     * the offset of their count, a uint32_t; 0: the key is no list. */
    uint32_t list_max;
    uint32_t count_offset;
    /* The field is one of domus_channel_options: 0 in it means that another value holds, and a 0
     * that a user writes is stored as DOMUS_NONE. */
    bool inherits;
    /* The value, which is a text, is a secret: it is never shown (domus/config_shown.h). */
    bool secret;
    /* The value may change while the system runs (domus_system_change() of domus/system.h); other
     * keys count at a start. */
    bool live;
} domus_config_key;

/* Row `index` of the table of keys, or NULL if there are not so many rows. The other two functions
 * read the tables of a listener's and of a pool's keys.
 * Thread-safety: any thread. */
DOMUS_API const domus_config_key *domus_config_key_get(size_t index);
DOMUS_API const domus_config_key *domus_config_listener_key_get(size_t index);
DOMUS_API const domus_config_key *domus_config_pool_key_get(size_t index);

/* Read `text` as a value of `key`, as users write it in YAML and in --set ("500us", "auto"). Its
 * range is not checked here. For a key whose value is a text the number is 0.
 *
 * Returns 0; -EINVAL when it is no such value: then `error` says what was expected, without the
 * path, and `ret_number` is as it was. Thread-safety: any thread. */
DOMUS_API int domus_config_key_read(const domus_config_key *key, const char *text,
                                    uint64_t *ret_number, char *error, size_t error_size);

/* Check a value against the range of `key`, then store it in `holder` (a domus_config, or for a key
 * of a listener a domus_listener_config). For a number the value is `number`, for a text it is
 * `text`. A text is not copied: it has to last as long as `holder` is used.
 *
 * Returns 0; -EINVAL when the value is wrong: then `error` says in what way, without the path, and
 * nothing is stored.
 * Thread-safety: any thread. */
DOMUS_API int domus_config_key_put(const domus_config_key *key, void *holder, uint64_t number,
                                   const char *text, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
