/* The keys of the configuration whose values are tried (keys.h). */
#include "tools/domus/tune/keys.h"

#include <ctype.h>
#include <string.h>

#define PARTS_MAX 16 /* most parts of a key's path, at which it is split for YAML */

/* The table of keys that are tried, with values around the default of each. The default itself is
 * tried as today's value, so it is not among them. In the path of a pool's key `*` stands for the
 * pool's name. */
static const struct row {
    const char *path;
    const char *values;
} table[] = {
    {"scheduler.ioRatio", "20,35,65,80"},
    {"scheduler.minBudget", "20us,100us,250us,1ms"},
    {"scheduler.maxBudget", "2ms,5ms,20ms,50ms"},
    {"scheduler.maxMessagesPerRun", "8,16,32,128"},
    {"scheduler.beltSlots", "0,256,4096,16384"},
    {"scheduler.steal.floor", "1,8,16,64"},
    {"scheduler.steal.aggression", "32,64,256,1024"},
    {"scheduler.steal.minRun", "0,1us,5us,20us"},
    {"scheduler.steal.patience", "1024,8192,131072"},
    {"scheduler.idle.spin", "0,20us,50us,200us"},
    {"scheduler.idle.standIn", "0,20us,500us"},
    {"io.buffers.size", "2KiB,8KiB,16KiB"},
    {"io.buffers.count", "256,2048,8192"},
    {"pools.*.throughput", "8,16,32,256"},
};
#define ROWS (sizeof table / sizeof table[0])

/* --- names ------------------------------------------------------------------------------------ */

static bool store_why_key_is_refused(tune_keys *keys, const char *what, const char *name)
{
    snprintf(keys->error, sizeof keys->error, "'%.120s' %s", name, what);
    return false;
}

static bool is_valid_path_of_key(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && (i == 0 || strchr("._-", name[i]) == NULL))
            return false;
    }
    return length > 0 && length < TUNE_KEY_SIZE && name[length - 1] != '.' &&
           strstr(name, "..") == NULL;
}

/* Returns whether a name means a path of the table: it is the whole path, or its end behind a dot.
 * In a pool's path `*` stands for any name. */
static bool is_name_path_or_its_end(const char *name, const char *path)
{
    const char *star = strchr(path, '*');
    size_t length = strlen(name), whole = strlen(path);

    if (star != NULL) {
        size_t before = (size_t)(star - path), after = strlen(star + 1);
        return length > before + after && strncmp(name, path, before) == 0 &&
               strcmp(name + length - after, star + 1) == 0 &&
               memchr(name + before, '.', length - before - after) == NULL;
    }
    return length <= whole && strcmp(path + whole - length, name) == 0 &&
           (length == whole || path[whole - length - 1] == '.');
}

/* Returns the only row of the table that a name means; NULL if there is none, or several. */
static const struct row *find_only_row_that_name_means(const char *name, size_t *ret_found)
{
    const struct row *row = NULL;

    *ret_found = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (is_name_path_or_its_end(name, table[i].path)) {
            row = &table[i];
            ++*ret_found;
        }
    }
    return *ret_found == 1 ? row : NULL;
}

static tune_key *find_key_by_path(tune_keys *keys, const char *path)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->each[i].path, path) == 0)
            return &keys->each[i];
    }
    return NULL;
}

/* Returns the key with this path, emptied of the values to try; it is added if it was not there.
 * NULL: there is no room. */
static tune_key *add_key_or_empty_its_values(tune_keys *keys, const char *path)
{
    tune_key *key = find_key_by_path(keys, path);

    if (key == NULL && keys->count < TUNE_KEYS_MAX)
        key = &keys->each[keys->count++];
    if (key != NULL) {
        key->count = 0;
        snprintf(key->path, sizeof key->path, "%s", path);
    }
    return key;
}

/* --- values ----------------------------------------------------------------------------------- */

static bool is_valid_text_of_value(const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isprint((unsigned char)value[i]))
            return false;
    }
    return length > 0 && length < TUNE_VALUE_SIZE;
}

static bool has_key_value(const tune_key *key, const char *value, size_t length)
{
    for (size_t i = 0; i < key->count; i++) {
        if (strlen(key->values[i]) == length && strncmp(key->values[i], value, length) == 0)
            return true;
    }
    return false;
}

static bool add_values_to_key(tune_keys *keys, tune_key *key, const char *values)
{
    for (const char *at = values;; at++) {
        size_t length = strcspn(at, ",");
        if (!is_valid_text_of_value(at, length) || has_key_value(key, at, length))
            return store_why_key_is_refused(
                keys, "has a value that is empty, too long or there twice", values);
        if (key->count == TUNE_VALUES_MAX)
            return store_why_key_is_refused(keys, "has more than 16 values", key->path);
        snprintf(key->values[key->count++], TUNE_VALUE_SIZE, "%.*s", (int)length, at);
        at += length;
        if (*at == '\0')
            return true;
    }
}

static bool add_key_with_values(tune_keys *keys, const char *path, const char *values)
{
    tune_key *key = add_key_or_empty_its_values(keys, path);

    return key != NULL ? add_values_to_key(keys, key, values)
                       : store_why_key_is_refused(keys, "is one key more than 16", path);
}

/* --- adding keys, and showing candidates ------------------------------------------------------ */

static bool add_key_with_values_of_table(tune_keys *keys, const char *name)
{
    size_t found;
    const struct row *row = find_only_row_that_name_means(name, &found);

    if (!is_valid_path_of_key(name))
        return store_why_key_is_refused(keys, "is no key", name);
    if (row == NULL)
        return store_why_key_is_refused(
            keys,
            found == 0 ? "is no key with values of its own: name them by --values"
                       : "is the end of several keys",
            name);
    const char *path = strchr(row->path, '*') != NULL ? name : row->path;
    if (find_key_by_path(keys, path) != NULL)
        return store_why_key_is_refused(keys, "is there twice", path);
    return add_key_with_values(keys, path, row->values);
}

bool tune_keys_add_comma_list_of_names(tune_keys *keys, const char *names)
{
    char name[TUNE_KEY_SIZE];

    for (const char *at = names;; at++) {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (length >= sizeof name)
            return store_why_key_is_refused(keys, "is no key", name);
        if (!add_key_with_values_of_table(keys, name))
            return false;
        at += length;
        if (*at == '\0')
            return true;
    }
}

bool tune_keys_set_values_to_try(tune_keys *keys, const char *text)
{
    char name[TUNE_KEY_SIZE];
    size_t found, length = strcspn(text, "=");

    snprintf(name, sizeof name, "%.*s", (int)length, text);
    if (text[length] == '\0' || length >= sizeof name || !is_valid_path_of_key(name))
        return store_why_key_is_refused(keys, "is not KEY=VALUE,VALUE", text);
    const struct row *row = find_only_row_that_name_means(name, &found);
    if (found > 1)
        return store_why_key_is_refused(keys, "is the end of several keys", name);
    const char *path = row != NULL && strchr(row->path, '*') == NULL ? row->path : name;
    return add_key_with_values(keys, path, text + length + 1);
}

void tune_keys_add_all_of_table(tune_keys *keys)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strchr(table[i].path, '*') == NULL && find_key_by_path(keys, table[i].path) == NULL)
            (void)add_key_with_values(keys, table[i].path, table[i].values);
    }
}

void tune_keys_write_key_equals_value(const tune_keys *keys, const tune_point *point, size_t key,
                                      char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s=%s", keys->each[key].path,
             keys->each[key].values[point->choice[key] - 1]);
}

void tune_keys_describe_candidate(const tune_keys *keys, const tune_point *point, char *ret_text,
                                  size_t size)
{
    size_t used = 0;

    snprintf(ret_text, size, "today's values");
    for (size_t i = 0; i < keys->count && used < size; i++) {
        const tune_key *key = &keys->each[i];
        const char *path = strncmp(key->path, "scheduler.", 10) == 0 ? key->path + 10 : key->path;
        if (point->choice[i] != 0)
            used += (size_t)snprintf(ret_text + used, size - used, "%s%s=%s", used > 0 ? " " : "",
                                     path, key->values[point->choice[i] - 1]);
    }
}

/* --- YAML ------------------------------------------------------------------------------------- */

/* Split the path of a key at its dots. Returns the number of its parts. */
static size_t split_path_into_parts(const char *path, char *ret_copy, char *ret_parts[PARTS_MAX])
{
    size_t count = 0;
    char *rest = ret_copy;

    snprintf(ret_copy, TUNE_KEY_SIZE, "%s", path);
    while (rest != NULL && count < PARTS_MAX - 1)
        ret_parts[count++] = strsep(&rest, ".");
    if (rest != NULL)
        ret_parts[count++] = rest;
    return count;
}

bool tune_keys_is_key_of_pool_or_listener(const tune_keys *keys, size_t key)
{
    const char *path = keys->each[key].path;

    return strncmp(path, "pools.", 6) == 0 || strncmp(path, "listeners.", 10) == 0;
}

/* Returns whether a candidate's value of a key has to be written in the YAML. */
static bool must_value_be_in_yaml(const tune_keys *keys, const tune_point *point, size_t key)
{
    return point->choice[key] != 0 && !tune_keys_is_key_of_pool_or_listener(keys, key);
}

/* Returns whether a value must be quoted in YAML, because YAML or the configuration's reader could
 * take it for something else. */
static bool needs_value_quotes(const char *value)
{
    return value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-/%")] != '\0' ||
           !isalnum((unsigned char)value[0]);
}

static void print_value_as_yaml(const char *value, FILE *out)
{
    if (!needs_value_quotes(value)) {
        (void)fprintf(out, " %s\n", value);
        return;
    }
    (void)fputs(" '", out);
    for (; *value != '\0'; value++)
        (void)fprintf(out, "%s%c", *value == '\'' ? "'" : "", *value);
    (void)fputs("'\n", out);
}

/* Print the parts of a key's path that differ from those of the path before it, as YAML. */
static void print_yaml_of_path_parts_that_differ(char *const *parts, size_t count, size_t same,
                                                 const char *value, FILE *out)
{
    for (size_t i = same; i < count; i++)
        (void)fprintf(out, "%*s%s:%s", (int)i * 2, "", parts[i], i + 1 < count ? "\n" : "");
    print_value_as_yaml(value, out);
}

/* Print keys with the same first parts together as YAML, in whatever order the user has named
 * them. */
static void print_yaml_of_keys_with_same_section(const tune_keys *keys, const tune_point *point,
                                                 size_t first, uint32_t *done, FILE *out)
{
    char copies[2][TUNE_KEY_SIZE], *parts[2][PARTS_MAX];
    size_t counts[2] = {0, 0}, now = 0;

    /* The key to be printed next is the one with the most parts in common with the last one. */
    for (size_t next = first, same = 0; next < keys->count; now = 1 - now) {
        counts[now] = split_path_into_parts(keys->each[next].path, copies[now], parts[now]);
        print_yaml_of_path_parts_that_differ(parts[now], counts[now], same,
                                             keys->each[next].values[point->choice[next] - 1], out);
        *done |= 1u << next;
        size_t best = 0, found = keys->count;
        for (size_t i = 0; i < keys->count; i++) {
            if (!must_value_be_in_yaml(keys, point, i) || (*done & 1u << i) != 0)
                continue;
            size_t alike = 0;
            counts[1 - now] =
                split_path_into_parts(keys->each[i].path, copies[1 - now], parts[1 - now]);
            while (alike < counts[now] && alike < counts[1 - now] &&
                   strcmp(parts[now][alike], parts[1 - now][alike]) == 0)
                alike++;
            if (alike > best) {
                best = alike;
                found = i;
            }
        }
        next = found;
        same = best;
    }
}

void tune_keys_write_yaml(const tune_keys *keys, const tune_point *point, FILE *out)
{
    uint32_t done = 0;

    for (size_t i = 0; i < keys->count; i++) {
        if (must_value_be_in_yaml(keys, point, i) && (done & 1u << i) == 0)
            print_yaml_of_keys_with_same_section(keys, point, i, &done, out);
    }
}
