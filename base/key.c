/* The kinds of values that keys of the configuration have, their units and their ranges. */
#include "base/key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const domi_key_switch[] = {"false", "true", NULL};

uint64_t domi_key_get_number(const domus_config_key *key, const void *holder)
{
    const unsigned char *field = (const unsigned char *)holder + key->offset;
    uint64_t wide;
    uint32_t narrow;

    switch (key->size) {
    case 1:
        return *field;
    case 4:
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
}

const char *domi_key_get_text(const domus_config_key *key, const void *holder)
{
    const char *text;

    memcpy(&text, (const unsigned char *)holder + key->offset, sizeof text);
    return text;
}

void domi_key_store_value(const domus_config_key *key, void *holder, uint64_t number,
                          const char *text)
{
    unsigned char *field = (unsigned char *)holder + key->offset;
    uint64_t wide = key->inherits && number == 0 ? DOMUS_NONE : number;
    uint32_t narrow = (uint32_t)wide;

    if (domi_key_is_text(key))
        memcpy(field, &text, sizeof text);
    else if (key->size == 1)
        *field = (unsigned char)wide;
    else if (key->size == 4)
        memcpy(field, &narrow, sizeof narrow);
    else
        memcpy(field, &wide, sizeof wide);
}

/* Print `number` with the largest of the `units` of which it is a whole multiple. */
static void print_number_in_largest_unit(uint64_t number, const uint64_t *units,
                                         const char *const *names, char *text)
{
    size_t unit = 0;

    while (units[unit + 1] != 0 && number != 0 && number % units[unit + 1] == 0)
        unit++;
    snprintf(text, DOMI_KEY_TEXT_SIZE, "%" PRIu64 "%s", number / units[unit], names[unit]);
}

void domi_key_print_number(const domus_config_key *key, uint64_t number,
                           char text[DOMI_KEY_TEXT_SIZE])
{
    static const uint64_t times[] = {1,         DOMI_US, DOMI_MS, DOMI_SECOND, 60 * DOMI_SECOND,
                                     DOMI_HOUR, 0};
    static const char *const time_names[] = {"ns", "us", "ms", "s", "m", "h"};
    static const uint64_t sizes[] = {1, DOMI_KIB, DOMI_MIB, DOMI_GIB, 0};
    static const char *const size_names[] = {"B", "KiB", "MiB", "GiB"};

    if (key->kind == DOMUS_CONFIG_DURATION && number != 0)
        print_number_in_largest_unit(number, times, time_names, text);
    else if (key->kind == DOMUS_CONFIG_SIZE && number != 0)
        print_number_in_largest_unit(number, sizes, size_names, text);
    else if (key->kind == DOMUS_CONFIG_SHARE)
        snprintf(text, DOMI_KEY_TEXT_SIZE, "%" PRIu64 "%%", number);
    else if (key->kind == DOMUS_CONFIG_WORD && number <= key->maximum)
        snprintf(text, DOMI_KEY_TEXT_SIZE, "%s", key->words[number]);
    else
        snprintf(text, DOMI_KEY_TEXT_SIZE, "%" PRIu64, number);
}

int domi_key_check_number(const domus_config_key *key, uint64_t number, char *error, size_t size)
{
    char low[DOMI_KEY_TEXT_SIZE], high[DOMI_KEY_TEXT_SIZE], found[DOMI_KEY_TEXT_SIZE];

    if ((key->special != NULL && number == key->special_number) || (key->or_zero && number == 0))
        return 0;
    domi_key_print_number(key, number, found);
    if (number < key->minimum || number > key->maximum) {
        domi_key_print_number(key, key->minimum, low);
        domi_key_print_number(key, key->maximum, high);
        snprintf(error, size, "must be %s%s%s%s..%s, is %s",
                 key->special != NULL ? key->special : "", key->special != NULL ? " or " : "",
                 key->or_zero ? "0 or " : "", low, high, found);
        return -EINVAL;
    }
    if (key->power_of_two && (number & (number - 1)) != 0) {
        snprintf(error, size, "must be a power of two, is %s", found);
        return -EINVAL;
    }
    return 0;
}

int domi_key_check_number_in_holder(const domus_config_key *key, const void *holder, char *error,
                                    size_t size)
{
    uint64_t number = domi_key_get_number(key, holder);

    if (!key->inherits)
        return domi_key_check_number(key, number, error, size);
    if (number == 0)
        return 0;
    return domi_key_check_number(key, number != DOMUS_NONE ? number : 0, error, size);
}
