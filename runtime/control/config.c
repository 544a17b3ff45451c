/* Defaults and checks of a configuration.
 *
 * domus_config_init(), the checks and the YAML reader all use the tables in
 * runtime/control/config_keys.c, so each number stands in one place only. Nothing here has a state.
 * Thread-safety: any thread. */
#include <domus/config.h>

#include "base/key.h"
#include "io/resources/networks.h"
#include "io/resources/settings.h"
#include "runtime/control/config_keys.h"
#include "runtime/os/cpus.h"
#include "runtime/pools/policies.h"

#include <arpa/inet.h>
#include <domus/endpoint.h>
#include <domus/text.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SHOWN_MAX 64 /* most characters of a wrong text that an error shows, escaped */
#define TEXT_SIZE      DOMI_KEY_TEXT_SIZE

static bool is_list_of_cpus_valid(const char *text)
{
    uint16_t cpus[DOMI_CPUS_MAX];

    return strcmp(text, "auto") == 0 || strcmp(text, "none") == 0 ||
           domi_cpus_parse_list(text, cpus, DOMI_CPUS_MAX) > 0;
}

static bool is_name_valid(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] ==
           '\0';
}

/* True if the text is the number of a port: decimal, without a sign and without leading zeros. */
static bool is_port_valid(const char *text)
{
    unsigned port = 0;

    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (unsigned)(*text - '0');
        if (port > 65535)
            return false;
    }
    return true;
}

/* True if the text is a numeric address with a port, or "unix:" with a path. Names are refused,
 * because a name would have to be looked up, and that blocks. */
static bool is_address_valid(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char host[DOMI_ADDRESS_BYTES_MAX + 1];
    const char *colon = strrchr(text, ':');
    int family = AF_INET;
    domus_endpoint endpoint;

    if (strncmp(text, "unix:", 5) == 0)
        return domus_endpoint_parse(text, &endpoint) == 0;
    if (colon == NULL || !is_port_valid(colon + 1))
        return false;
    size_t length = (size_t)(colon - text);
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        family = AF_INET6;
        text++;
        length -= 2;
    }
    /* the host's part of the address fits, because the caller has checked its length */
    memcpy(host, text, length);
    host[length] = '\0';
    return inet_pton(family, host, bytes) == 1;
}

static int check_text_of_key(const domus_config_key *key, const char *text, char *error,
                             size_t size)
{
    size_t length = text == NULL ? 0 : strlen(text);
    domi_networks networks;
    const char *wanted;
    bool valid;

    if (length != 0 && length < key->minimum) {
        snprintf(error, size, "must be at least %" PRIu64 " bytes long, is %zu", key->minimum,
                 length);
        return -EINVAL;
    }
    if (length < key->minimum || (text == NULL && key->preset_text == NULL)) {
        snprintf(error, size, "is missing or empty");
        return -EINVAL;
    }
    if (length > key->maximum) {
        snprintf(error, size, "must be at most %" PRIu64 " bytes long, is %zu", key->maximum,
                 length);
        return -EINVAL;
    }
    if (key->kind == DOMUS_CONFIG_TEXT || key->kind == DOMUS_CONFIG_TEXTS ||
        text == NULL) /* the key has no text, which is allowed for this key */
        return 0;
    if (key->kind == DOMUS_CONFIG_NETWORKS)
        return domi_networks_parse_list(text, &networks, error, size);
    if (key->kind == DOMUS_CONFIG_CPUS) {
        valid = is_list_of_cpus_valid(text);
        wanted = "auto, none or a list such as 0-3,8";
    } else if (key->kind == DOMUS_CONFIG_NAME) {
        valid = is_name_valid(text);
        wanted = "letters, digits, '-' and '_'";
    } else {
        valid = is_address_valid(text);
        wanted = "such as 127.0.0.1:7000 or [::1]:7000 (numbers only), or unix:PATH";
    }
    if (valid)
        return 0;
    char shown[TEXT_SHOWN_MAX + 1];
    (void)domus_text_escape(text, length, shown, sizeof shown);
    snprintf(error, size, "must be %s, is '%s'", wanted, shown);
    return -EINVAL;
}

static int check_value_of_key(const domus_config_key *key, uint64_t number, const char *text,
                              char *error, size_t size)
{
    return domi_key_is_text(key) ? check_text_of_key(key, text, error, size)
                                 : domi_key_check_number(key, number, error, size);
}

static int check_value_of_key_in_holder(const domus_config_key *key, const void *holder,
                                        char *error, size_t size)
{
    return domi_key_is_text(key)
               ? check_text_of_key(key, domi_key_get_text(key, holder), error, size)
               : domi_key_check_number_in_holder(key, holder, error, size);
}

/* A walk over all checks of a configuration, which counts the faults and gives each fault to
 * `report`. */
struct review {
    /* function that is called with each fault of the configuration */
    void (*report)(const domus_config_fault *fault, void *context);
    /* argument that `report` gets with each fault */
    void *context;
    size_t count; /* number of faults that were found so far */
};

static void count_and_report_fault(struct review *review, const domus_config_fault *fault)
{
    review->count++;
    review->report(fault, review->context);
}

static void report_fault_of_listener(struct review *review, size_t index,
                                     const domus_config_key *key, const char *message)
{
    char path[TEXT_SIZE];

    snprintf(path, sizeof path, "listeners[%zu].%s", index, key->path);
    count_and_report_fault(
        review,
        &(domus_config_fault){.key = key, .listener = index, .path = path, .message = message});
}

static void check_each_key(struct review *review, const domus_config *config)
{
    char message[2 * TEXT_SIZE];

    for (size_t i = 0; i < domi_config_key_count; i++)
        if (check_value_of_key_in_holder(&domi_config_keys[i], config, message, sizeof message) < 0)
            count_and_report_fault(review, &(domus_config_fault){.key = &domi_config_keys[i],
                                                                 .listener = SIZE_MAX,
                                                                 .path = domi_config_keys[i].path,
                                                                 .message = message});
}

/* Returns the key of domus_config that has this path, which must exist. */
static const domus_config_key *find_key_by_path(const char *path)
{
    size_t i = 0;

    while (strcmp(domi_config_keys[i].path, path) != 0)
        /* the loop ends without a bound, because each path in a table of relations is the path
         * of a key */
        i++;
    return &domi_config_keys[i];
}

static void check_relations_between_keys(struct review *review, const domus_config *config)
{
    char message[4 * TEXT_SIZE], low[TEXT_SIZE], high[TEXT_SIZE], factor[32];

    for (size_t i = 0; i < domi_config_relation_count; i++) {
        const domus_config_key *lesser = find_key_by_path(domi_config_relations[i].lesser);
        const domus_config_key *greater = find_key_by_path(domi_config_relations[i].greater);
        const uint32_t times = domi_config_relations[i].times;
        uint64_t least = domi_key_get_number(lesser, config),
                 most = domi_key_get_number(greater, config);
        /* if the product is greater than a uint64_t holds, the smaller key is out of its range, and
         * that was reported */
        uint64_t bound = least < UINT64_MAX / times ? least * times : least;

        if (most > bound || (most == bound && !domi_config_relations[i].strict))
            continue;
        domi_key_print_number(lesser, least, low);
        domi_key_print_number(greater, most, high);
        snprintf(factor, sizeof factor, "%u times ", times);
        snprintf(message, sizeof message, "must be %s %s%s (%s), is %s",
                 domi_config_relations[i].strict ? "more than" : "at least",
                 times > 1 ? factor : "", lesser->path, low, high);
        count_and_report_fault(review, &(domus_config_fault){.key = greater,
                                                             .other = lesser,
                                                             .listener = SIZE_MAX,
                                                             .path = greater->path,
                                                             .message = message});
    }
}

/* Returns the key of a listener that has this path, which must exist. */
static const domus_config_key *find_listener_key_by_path(const char *path)
{
    size_t i = 0;

    while (strcmp(domi_config_listener_keys[i].path, path) != 0)
        /* the loop ends without a bound, because each path in the table of settings is the path
         * of a listener's key */
        i++;
    return &domi_config_listener_keys[i];
}

/* Check the options of a listener's channels against each other. For an option that the listener
 * does not set, the value of the section `channel` counts. */
static void check_channel_options_of_listener(struct review *review, const domus_config *config,
                                              size_t index)
{
    char message[4 * TEXT_SIZE], path[TEXT_SIZE];
    const char *name;

    if (domi_settings_check_relations(config, &config->listeners[index].channel, message,
                                      sizeof message, &name) == 0)
        return;
    snprintf(path, sizeof path, "channel.%s", name);
    report_fault_of_listener(review, index, find_listener_key_by_path(path), message);
}

/* Two listeners must not have one name: for each later listener with the same name a fault is
 * reported. */
static void check_name_of_listener(struct review *review, const domus_config *config, size_t index)
{
    const domus_listener_config *listeners = config->listeners;
    char message[TEXT_SIZE];

    if (listeners[index].name == NULL || listeners[index].name[0] == '\0')
        return; /* the check of the listener's keys has reported already that the name is missing */
    for (size_t i = 0; i < index; i++) {
        if (listeners[i].name == NULL || strcmp(listeners[i].name, listeners[index].name) != 0)
            continue;
        snprintf(message, sizeof message, "must be unique, '%.63s' is taken by listeners[%zu]",
                 listeners[index].name, i);
        report_fault_of_listener(review, index, &domi_config_listener_keys[0], message);
        return;
    }
}

static void check_each_listener(struct review *review, const domus_config *config)
{
    char message[2 * TEXT_SIZE];
    bool missing = config->listener_count > 0 && config->listeners == NULL;

    if (missing || config->listener_count > DOMUS_LISTENERS_MAX) {
        snprintf(message, sizeof message, "must be 0..%d, %s %zu", DOMUS_LISTENERS_MAX,
                 missing ? "and not NULL, are" : "are", config->listener_count);
        count_and_report_fault(
            review,
            &(domus_config_fault){.listener = SIZE_MAX, .path = "listeners", .message = message});
        return;
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        for (size_t k = 0; k < domi_config_listener_key_count; k++)
            if (check_value_of_key_in_holder(&domi_config_listener_keys[k], &config->listeners[i],
                                             message, sizeof message) < 0)
                report_fault_of_listener(review, i, &domi_config_listener_keys[k], message);
        check_channel_options_of_listener(review, config, i);
        check_name_of_listener(review, config, i);
    }
}

/* Returns the first key of a pool whose value is wrong, with a message why; NULL if all are
 * right. */
static const domus_config_key *find_wrong_key_of_pool(const domus_config *config, size_t index,
                                                      char *message, size_t size)
{
    for (size_t k = 0; k < domi_config_pool_key_count; k++) {
        const domus_config_key *key = &domi_config_pool_keys[k];
        if (check_value_of_key_in_holder(key, &config->pools[index], message, size) < 0 ||
            (strcmp(key->path, "name") == 0 &&
             domi_pool_has_name_of_earlier_pool(config, index, message, size)) ||
            (strcmp(key->path, "policy") == 0 &&
             domi_policy_has_fault(&config->pools[index], message, size)))
            return key;
    }
    return NULL;
}

static void check_each_pool(struct review *review, const domus_config *config)
{
    char message[2 * TEXT_SIZE];
    char path[TEXT_SIZE];
    bool missing = config->pool_count > 0 && config->pools == NULL;

    if (missing || config->pool_count > DOMUS_POOLS_MAX) {
        snprintf(message, sizeof message, "must be 0..%d, %s %zu", DOMUS_POOLS_MAX,
                 missing ? "and not NULL, are" : "are", config->pool_count);
        count_and_report_fault(
            review,
            &(domus_config_fault){.listener = SIZE_MAX, .path = "pools", .message = message});
        return;
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        const domus_config_key *key = find_wrong_key_of_pool(config, i, message, sizeof message);
        if (key == NULL)
            continue;
        snprintf(path, sizeof path, "pools[%zu].%s", i, key->path);
        count_and_report_fault(
            review,
            &(domus_config_fault){.key = key, .listener = i, .path = path, .message = message});
    }
}

void domus_config_init(domus_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < domi_config_key_count; i++)
        domi_key_store_value(&domi_config_keys[i], config, domi_config_keys[i].preset,
                             domi_config_keys[i].preset_text);
}

/* The buffer of domus_config_check(), into which the first fault is written. */
struct first {
    char *error; /* buffer of the caller that gets the text of the first fault */
    size_t size; /* size in bytes of the caller's buffer `error` */
    bool kept;   /* whether the first fault has been written */
};

static void store_first_fault(const domus_config_fault *fault, void *context)
{
    struct first *first = context;

    if (!first->kept && first->size > 0)
        snprintf(first->error, first->size, "%s: %s", fault->path, fault->message);
    first->kept = true;
}

int domus_config_check(const domus_config *config, char *error, size_t error_size)
{
    struct first first = {.error = error, .size = error_size};

    return domus_config_check_all(config, store_first_fault, &first) == 0 ? 0 : -EINVAL;
}

const domus_config_key *domus_config_key_get(size_t index)
{
    return index < domi_config_key_count ? &domi_config_keys[index] : NULL;
}

const domus_config_key *domus_config_listener_key_get(size_t index)
{
    return index < domi_config_listener_key_count ? &domi_config_listener_keys[index] : NULL;
}

static const domus_config_key *find_key_of_table_by_path(const domus_config_key *keys, size_t count,
                                                         const char *path)
{
    for (size_t k = 0; k < count; k++) {
        if (strcmp(keys[k].path, path) == 0)
            return &keys[k];
    }
    return NULL;
}

const domus_config_key *domus_config_key_find(const domus_config *config, const char *path,
                                              size_t *ret_listener)
{
    static const char listeners[] = "listeners.";

    *ret_listener = SIZE_MAX;
    if (strncmp(path, listeners, sizeof listeners - 1) != 0)
        return find_key_of_table_by_path(domi_config_keys, domi_config_key_count, path);
    const char *name = path + sizeof listeners - 1;
    for (size_t i = 0; i < config->listener_count; i++) {
        size_t length = strlen(config->listeners[i].name);
        if (strncmp(name, config->listeners[i].name, length) != 0 || name[length] != '.')
            continue;
        *ret_listener = i;
        return find_key_of_table_by_path(domi_config_listener_keys, domi_config_listener_key_count,
                                         name + length + 1);
    }
    return NULL;
}

const domus_config_key *domus_config_pool_key_get(size_t index)
{
    return index < domi_config_pool_key_count ? &domi_config_pool_keys[index] : NULL;
}

int domus_config_key_put(const domus_config_key *key, void *holder, uint64_t number,
                         const char *text, char *error, size_t error_size)
{
    int result = check_value_of_key(key, number, text, error, error_size);

    if (result == 0)
        domi_key_store_value(key, holder, number, text);
    return result;
}

size_t domus_config_check_all(const domus_config *config,
                              void (*report_fault)(const domus_config_fault *fault, void *context),
                              void *context)
{
    struct review review = {.report = report_fault, .context = context};

    check_each_key(&review, config);
    check_relations_between_keys(&review, config);
    check_each_listener(&review, config);
    check_each_pool(&review, config);
    return review.count;
}
