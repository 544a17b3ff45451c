/* Every key has a reader: a field of the configuration that only the configuration's own code reads
 * has no effect.
 *
 * The sources are searched as text, without comments and white space, for each field as C names it:
 * by the last two names of its path ("steal.floor" for scheduler.steal.floor), as it is always
 * written. */
#include <domus/config.h>

#include "tests/support/suite.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SOURCE_BYTES_MAX (4 * 1024 * 1024)

static char sources[SOURCE_BYTES_MAX];
static size_t sources_size;

/* Append `text` to the collected code of the sources, without comments and white space. */
static void add_code_without_comments(const char *text)
{
    while (*text != '\0' && sources_size + 1 < sizeof sources) {
        const char *end = NULL;

        if (strncmp(text, "/*", 2) == 0)
            end = strstr(text, "*/");
        if (end != NULL)
            text = end + 2;
        else if (isspace((unsigned char)*text))
            text++;
        else
            sources[sources_size++] = *text++;
    }
    sources[sources_size] = '\0';
}

static void add_code_of_file(const char *path)
{
    static char text[SOURCE_BYTES_MAX];
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    add_code_without_comments(text);
}

static void add_code_of_folder(const char *folder)
{
    char path[1024];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/%s", DOMT_SOURCE_DIR, folder);
    DIR *directory = opendir(path);
    ck_assert_msg(directory != NULL, "%s", path);
    while ((entry = readdir(directory)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        bool own =
            strcmp(folder, "runtime/control") == 0 && strncmp(entry->d_name, "config", 6) == 0;

        if (entry->d_type == DT_DIR && dot == NULL) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            add_code_of_folder(path);
        }
        if (dot == NULL || (strcmp(dot, ".c") != 0 && strcmp(dot, ".h") != 0) || own)
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", DOMT_SOURCE_DIR, folder, entry->d_name);
        add_code_of_file(path);
    }
    closedir(directory);
}

static void add_code_of_all_sources(void)
{
    static const char *const folders[] = {"base", "house", "io", "runtime", "config", "protocols"};

    sources_size = 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        add_code_of_folder(folders[i]);
}

static bool is_part_of_longer_word(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_';
}

/* Returns whether `name` stands in the collected code as a member: behind '.' or '->', or as the
 * field that DOMI_LIVE() reads, and not within a longer word. */
static bool is_field_read_by_code(const char *name)
{
    const char *at = sources;

    for (; (at = strstr(at, name)) != NULL; at++)
        if (at > sources && !is_part_of_longer_word(at[strlen(name)]) &&
            (at[-1] == '.' || at[-1] == '>' || (at[-1] == ',' && at[strlen(name)] == ')')))
            return true;
    return false;
}

/* Returns whether channel options can change the key's field: if so, the field is copied into
 * settings, and code reads the settings. */
static bool is_field_changed_by_channel_options(const domus_config_key *key)
{
    const domus_config_key *option;

    for (size_t row = 0; (option = domus_config_listener_key_get(row)) != NULL; row++)
        if (option->inherits && strcmp(option->path, key->path) == 0)
            return true;
    return false;
}

/* Returns whether code reads the key's field from the settings of a channel. */
static bool is_field_read_from_settings(const char *name)
{
    const char *last = strrchr(name, '.') + 1;
    const char *at = sources;

    /* A field of the settings may have more words in its name before the last word of the key's
     * field. */
    for (; (at = strstr(at, "settings->")) != NULL; at++) {
        const char *word = at + strlen("settings->");
        size_t size = 0;
        while (is_part_of_longer_word(word[size]))
            size++;
        if (size >= strlen(last) && strncmp(word + size - strlen(last), last, strlen(last)) == 0)
            return true;
    }
    return false;
}

DOMT_TEST(every_key_has_a_reader)
{
    const domus_config_key *key;
    char missing[2048] = "";

    add_code_of_all_sources();
    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++) {
        const char *name = key->field + strlen("domus_config.");
        /* The TLS front for the servers of a cluster gets its part of the configuration as a whole,
         * and reads the fields from there. */
        const bool is_given = strncmp(name, "cluster.tls.", 12) == 0;
        if (strncmp(name, "scheduler.steal", 15) == 0 || strncmp(name, "scheduler.idle", 14) == 0)
            name += strlen("scheduler.");
        if (is_field_changed_by_channel_options(key) || is_given
                ? !is_field_read_from_settings(name)
                : !is_field_read_by_code(name))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %s",
                     key->field);
    }
    ck_assert_msg(missing[0] == '\0', "nobody reads%s", missing);
}

/* `listeners` is an array, whose elements are reached by variables of any name, so only the last
 * word of a key's field is looked for. */
DOMT_TEST(every_key_of_a_listener_has_a_reader)
{
    add_code_of_all_sources();
    ck_assert(is_field_read_by_code("listeners"));
    ck_assert(is_field_read_by_code("listener_count"));
    ck_assert(is_field_read_by_code("name"));
    ck_assert(is_field_read_by_code("address"));
    ck_assert(is_field_read_by_code("backlog"));
    ck_assert(is_field_read_by_code("proxy_from"));
    ck_assert(is_field_read_by_code("tls.cert_files"));
    ck_assert(is_field_read_by_code("tls.key_files"));
    ck_assert(is_field_read_by_code("tls.alpn"));
    ck_assert(is_field_read_by_code("tls.client_ca_file"));
    ck_assert(is_field_read_by_code("tls.ciphers"));
    ck_assert(is_field_read_by_code("tls.cipher_suites"));
    ck_assert(is_field_read_by_code("tls.min_version"));
    ck_assert(is_field_read_by_code("tls.clients_may_omit"));
}

DOMT_SUITE(120)
