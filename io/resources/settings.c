/* Checks options of channels by the table of their keys, and makes settings of channels from
 * them. */
#include "io/resources/settings.h"

#include "base/check.h"
#include "base/key.h"
#include "base/memory.h"
#include "io/resources/listener_counts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* size in bytes of an error message without the path of its key, with its NUL */
#define MESSAGE_SIZE 256

#define OPTION_ROW(name, sort, section_field, field, low, high, value, zero)                       \
    {.path = (name),                                                                               \
     .kind = DOMUS_CONFIG_##sort,                                                                  \
     .offset = (uint32_t)offsetof(domus_channel_options, field),                                   \
     .size = (uint32_t)sizeof(((domus_channel_options *)NULL)->field),                             \
     .minimum = (low),                                                                             \
     .maximum = (high),                                                                            \
     .or_zero = (zero),                                                                            \
     .words = DOMI_CHANNEL_KEY_WORDS(sort),                                                        \
     .inherits = true},

static const domus_config_key keys[] = {DOMI_CHANNEL_KEYS(OPTION_ROW)};

#define KEYS_COUNT (sizeof keys / sizeof keys[0])

/* Returns the value of one key of a channel's settings after the defaults are applied. */
static uint64_t resolve_value_of_option(uint64_t option, uint64_t of_section)
{
    if (option == 0)
        return of_section;
    return option != DOMUS_NONE ? option : 0;
}

void domi_settings_compute_all(const domus_config *config, const domus_channel_options *options,
                               domi_channel_settings *ret_settings)
{
    static const domus_channel_options none = {0};

    if (options == NULL)
        options = &none;
#define RESOLVE_ROW(name, sort, section_field, field, low, high, value, zero)                      \
    ret_settings->field = resolve_value_of_option(options->field, config->section_field);
    DOMI_CHANNEL_KEYS(RESOLVE_ROW)
    ret_settings->listener = (domus_address){NULL, 0};
    ret_settings->listener_name[0] = '\0';
    ret_settings->users = DOMI_SETTINGS_UNCOUNTED;
    ret_settings->row = DOMI_LISTENER_NO_ROW;
}

bool domi_settings_compute_anew(const domus_config *config, const domus_channel_options *options,
                                domi_channel_settings *settings)
{
    domi_channel_settings now;
    bool differs = false;

    domi_settings_compute_all(config, options, &now);
#define RENEW_ROW(name, sort, section_field, field, low, high, value, zero)                        \
    differs |= settings->field != now.field;                                                       \
    settings->field = now.field;
    DOMI_CHANNEL_KEYS(RENEW_ROW)
    return differs;
}

domus_channel_options domi_options_for_connected_peer(const domus_channel_options *options)
{
    domus_channel_options own = {0};

    if (options != NULL)
        own = *options;
    if (own.first_byte_timeout_ns == 0)
        own.first_byte_timeout_ns = DOMUS_NONE;
    if (own.rate_min_bytes == 0)
        own.rate_min_bytes = DOMUS_NONE;
    return own;
}

domus_channel_options domi_options_for_datagrams(const domus_channel_options *options)
{
    domus_channel_options own = {0};

    if (options != NULL)
        own = *options;
    if (own.idle_timeout_ns == 0)
        own.idle_timeout_ns = DOMUS_NONE;
    if (own.age_max_ns == 0)
        own.age_max_ns = DOMUS_NONE;
    own.first_byte_timeout_ns = DOMUS_NONE;
    own.rate_min_bytes = DOMUS_NONE;
    return own;
}

/* Write into the error that the value of `greater` is less than the value of `lesser`. */
static void write_error_about_relation(const char *lesser, uint64_t least, uint64_t most,
                                       char *error, size_t error_size)
{
    char low[DOMI_KEY_TEXT_SIZE], high[DOMI_KEY_TEXT_SIZE];

    /* the row of the first key prints the values of both, because all these keys are sizes */
    domi_key_print_number(&keys[0], least, low);
    domi_key_print_number(&keys[0], most, high);
    snprintf(error, error_size, "must be at least %s (%s), is %s", lesser, low, high);
}

int domi_settings_check_relations(const domus_config *config, const domus_channel_options *options,
                                  char *error, size_t error_size, const char **ret_path)
{
    domi_channel_settings settings;

    if (options->send_low_bytes == 0 && options->send_high_bytes == 0 &&
        options->send_max_bytes == 0)
        /* nothing to check: the values of the configuration alone were checked when it was read */
        return 0;
    domi_settings_compute_all(config, options, &settings);
    if (settings.send_low_bytes > settings.send_high_bytes) {
        write_error_about_relation("channel.sendLow", settings.send_low_bytes,
                                   settings.send_high_bytes, error, error_size);
        *ret_path = "sendHigh";
        return -EINVAL;
    }
    if (settings.send_high_bytes > settings.send_max_bytes) {
        write_error_about_relation("channel.sendHigh", settings.send_high_bytes,
                                   settings.send_max_bytes, error, error_size);
        *ret_path = "sendMax";
        return -EINVAL;
    }
    return 0;
}

int domi_settings_check_options(const domus_config *config, const domus_channel_options *options,
                                char *error, size_t error_size)
{
    char message[MESSAGE_SIZE];
    const char *path = NULL;
    int result = 0;

    for (size_t i = 0; i < KEYS_COUNT && result == 0; i++) {
        path = keys[i].path;
        result = domi_key_check_number_in_holder(&keys[i], options, message, sizeof message);
    }
    if (result == 0)
        result = domi_settings_check_relations(config, options, message, sizeof message, &path);
    if (result != 0 && error_size != 0)
        snprintf(error, error_size, "channel.%s: %s", path, message);
    return result;
}

/* True if no option of the channel is set. */
static bool is_no_option_set(const domus_channel_options *options)
{
    for (size_t i = 0; i < KEYS_COUNT; i++)
        if (domi_key_get_number(&keys[i], options) != 0)
            return false;
    return true;
}

/* Make new settings for the options of a channel, which may be NULL. */
static int make_settings_from_options(const domus_config *config,
                                      const domus_channel_options *options,
                                      domi_channel_settings **ret_settings)
{
    int result = options != NULL ? domi_settings_check_options(config, options, NULL, 0) : 0;

    if (result != 0)
        return result;
    domi_channel_settings *settings = domi_memory_new(sizeof *settings);
    if (settings == NULL)
        return -ENOMEM;
    domi_settings_compute_all(config, options, settings);
    settings->users = 1;
    *ret_settings = settings;
    return 0;
}

int domi_settings_make_or_share(const domus_config *config, domi_channel_settings *fallback,
                                const domus_channel_options *options,
                                const struct domus_pipeline_stage *front,
                                domi_channel_settings **ret_settings)
{
    if (front == NULL && (options == NULL || is_no_option_set(options))) {
        *ret_settings = domi_settings_add_user(fallback);
        return 0;
    }
    int result = make_settings_from_options(config, options, ret_settings);
    if (result == 0)
        (*ret_settings)->front = front;
    return result;
}

int domi_settings_make_for_listener(const domus_config *config,
                                    const domus_channel_options *options, const char *name,
                                    domi_channel_settings **ret_settings)
{
    int result = make_settings_from_options(config, options, ret_settings);

    if (result == 0)
        domi_settings_set_listener_name(*ret_settings, name != NULL ? name : "");
    return result;
}

void domi_settings_set_listener_name(domi_channel_settings *settings, const char *name)
{
    snprintf(settings->listener_name, sizeof settings->listener_name, "%s", name);
}

void domi_settings_remove_user(domi_channel_settings *settings)
{
    if (settings == NULL || settings->users == DOMI_SETTINGS_UNCOUNTED)
        return;
    DOMI_CHECK(settings->users != 0);
    if (--settings->users == 0)
        domi_memory_free(settings);
}
