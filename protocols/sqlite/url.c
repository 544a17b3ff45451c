/* Reads the url of a database (domus/sqlite.h). It is strict: a url is refused if it is ambiguous,
 * or if a parameter has another meaning elsewhere. */
#include "protocols/sqlite/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEME "sqlite:"

/* Returns the value of a hexadecimal digit; -1 for any other character. */
static int value_of_hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)((at - digits) % 16) : -1;
}

static bool is_character_allowed_in_path(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-._~/:@!$'()*,;=&+", c) != NULL);
}

/* Decode the `size` bytes of a url's path. Returns NULL, or the text of an error. */
static const char *decode_path_of_url(const char *text, size_t size, char path[PATH_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];

        if (c == '%') {
            int high = size - i > 2 ? value_of_hex_digit(text[i + 1]) : -1;
            int low = high >= 0 ? value_of_hex_digit(text[i + 2]) : -1;
            if (low < 0)
                return "'%' needs two digits of base 16 behind it";
            c = (char)(high * 16 + low);
            if (c == '\0')
                return "%00 cannot be in a path";
            i += 2;
        } else if (!is_character_allowed_in_path(c)) {
            return "a byte of the path has to be written as %XX";
        }
        if (used == PATH_MAX - 1)
            return "the path is too long";
        path[used++] = c;
    }
    path[used] = '\0';
    return used != 0 ? NULL : "it names no file";
}

static bool is_equal_to_word(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

static const char *read_parameter_mode(const char *value, size_t size, domi_sqlite_place *place)
{
    place->makes_file = is_equal_to_word(value, size, "rwc");
    place->reads_only = is_equal_to_word(value, size, "ro");
    return place->makes_file || place->reads_only || is_equal_to_word(value, size, "rw")
               ? NULL
               : "mode is one of rwc, rw and ro";
}

static const char *read_parameter_synchronous(const char *value, size_t size,
                                              domi_sqlite_place *place)
{
    place->is_normal = is_equal_to_word(value, size, "normal");
    return place->is_normal || is_equal_to_word(value, size, "full")
               ? NULL
               : "synchronous is one of full and normal";
}

static const char *read_parameter_busy_timeout(const char *value, size_t size,
                                               domi_sqlite_place *place)
{
    uint32_t ms = 0;

    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9' || size > 7)
            return "busy_timeout is a number of milliseconds, 0..3600000";
        ms = ms * 10 + (uint32_t)(value[i] - '0');
    }
    if (size == 0 || ms > DOMI_SQLITE_BUSY_MS_MAX)
        return "busy_timeout is a number of milliseconds, 0..3600000";
    place->busy_ms = ms;
    return NULL;
}

static const struct parameter {
    const char *name;
    const char *(*read)(const char *value, size_t size, domi_sqlite_place *place);
} parameters[] = {
    {"mode", read_parameter_mode},
    {"synchronous", read_parameter_synchronous},
    {"busy_timeout", read_parameter_busy_timeout},
};

#define PARAMETERS (sizeof parameters / sizeof parameters[0])

/* Read one parameter of a url. `seen` has a bit for each parameter that was read before. */
static const char *read_parameter_of_url(const char *text, size_t size, uint32_t *seen,
                                         domi_sqlite_place *place)
{
    size_t name = strcspn(text, "=&");

    for (size_t i = 0; i < PARAMETERS; i++) {
        if (name >= size || !is_equal_to_word(text, name, parameters[i].name))
            continue;
        if (*seen & 1u << i)
            return "a parameter is there twice";
        *seen |= 1u << i;
        return parameters[i].read(text + name + 1, size - name - 1, place);
    }
    return "parameters are mode=, synchronous= and busy_timeout=";
}

static const char *read_parameters_of_url(const char *text, domi_sqlite_place *place)
{
    uint32_t seen = 0;

    for (;;) {
        size_t size = strcspn(text, "&");
        const char *wrong = read_parameter_of_url(text, size, &seen, place);
        if (wrong != NULL || text[size] == '\0')
            return wrong;
        text += size + 1;
    }
}

/* Read the part of a url that follows its scheme. Returns NULL, or the text of an error. */
static const char *read_place_behind_scheme(const char *rest, domi_sqlite_place *place)
{
    size_t size = strcspn(rest, "?");

    if (strchr(rest, '#') != NULL)
        return "a fragment, behind '#', has no meaning here";
    if (strncmp(rest, "//", 2) == 0) {
        if (rest[2] != '/')
            return "a file has no host: write sqlite:///PATH or sqlite:PATH";
        rest += 2;
        size -= 2;
    }
    if (rest[0] == ':') {
        place->is_memory = is_equal_to_word(rest, size, ":memory:");
        place->makes_file = false;
        if (!place->is_memory || rest[size] == '?')
            return "a database in memory is sqlite::memory:, without parameters";
        return NULL;
    }
    const char *wrong = decode_path_of_url(rest, size, place->path);
    if (wrong == NULL && place->path[strlen(place->path) - 1] == '/')
        wrong = "it names a directory";
    return wrong == NULL && rest[size] == '?' ? read_parameters_of_url(rest + size + 1, place)
                                              : wrong;
}

int domi_sqlite_read_url(const char *url, char *error, size_t error_size,
                         domi_sqlite_place *ret_place)
{
    domi_sqlite_place place = {.busy_ms = DOMI_SQLITE_BUSY_MS, .makes_file = true};
    const char *wrong = "it begins with sqlite:";

    if (strncmp(url, SCHEME, strlen(SCHEME)) == 0)
        wrong = read_place_behind_scheme(url + strlen(SCHEME), &place);
    if (wrong != NULL) {
        (void)snprintf(error, error_size, "url: %s", wrong);
        return -EINVAL;
    }
    *ret_place = place;
    return 0;
}

int domi_sqlite_make_path_absolute(domi_sqlite_place *place)
{
    char directory[PATH_MAX];

    if (place->is_memory || place->path[0] == '/')
        return 0;
    if (getcwd(directory, sizeof directory) == NULL)
        return -errno;
    size_t size = strlen(directory), more = strlen(place->path);
    if (size + 1 + more >= sizeof place->path)
        return -ENAMETOOLONG;
    memmove(place->path + size + 1, place->path, more + 1);
    memcpy(place->path, directory, size);
    place->path[size] = '/';
    return 0;
}
