/* Joins the program of domus_main() to a cluster: the options are made from the section `cluster`
 * of the configuration, from the files that it names, and from the program's own setup
 * (domus/front.h).
 *
 * Secrets are in memory only while the options are used, and are cleared then. No error text shows
 * the contents of a file. Any thread. */
#include <domus/cluster.h>

#include <domus/nats.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "cluster."

/* The buffer of the caller for an error text. */
typedef struct domi_joining_report {
    char *text;
    size_t size;
} domi_joining_report;

/* The options for domus_cluster_open() that were made, and the texts from files to which they
 * point. */
typedef struct domi_joining {
    domus_cluster_options options;
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    char password[DOMUS_NATS_SECRET_SIZE], token[DOMUS_NATS_SECRET_SIZE];
    char nkey_seed[DOMUS_NATS_SECRET_SIZE], jwt[DOMUS_NATS_JWT_SIZE];
} domi_joining;

/* Write the error text "cluster.KEY: REASON", and return `error`. */
static int report_error_of_key(const domi_joining_report *report, int error, const char *key,
                               const char *reason)
{
    if (report->size > 0)
        (void)snprintf(report->text, report->size, PREFIX "%s: %s", key, reason);
    return error;
}

static const char *text_or_null_if_empty(const char *text)
{
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Read up to `size` bytes of a file that has a secret. A pipe is refused, because the file is read
 * twice, and because a read from a pipe might wait for ever. Returns the number of bytes; a
 * negative errno. */
static ssize_t read_file_of_secret(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t got = 1;
    size_t used = 0;

    if (file < 0)
        return -errno;
    while (got != 0 && used < size) {
        got = read(file, text + used, size - used);
        if (got < 0 && errno != EINTR) {
            int error = -errno;
            (void)close(file);
            return error;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    (void)close(file);
    return (ssize_t)used;
}

/* Returns what is wrong with a secret that was read from a file, or NULL. White space at its end
 * was removed. */
static const char *find_fault_of_secret(const char *text, size_t size, size_t room)
{
    if (size == 0)
        return "it is empty";
    if (size == room)
        return "it is too long";
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return "it has more than one line, or bytes that are no text";
    }
    return NULL;
}

/* Read a secret, the only line of a file, if the configuration names a file. `ret_text` gets the
 * secret, which is stored in the `room` bytes at `text`. */
static int read_secret_from_file(const domi_joining_report *report, const char *key,
                                 const char *path, char *text, size_t room, const char **ret_text)
{
    char line[256];
    const char *fault;

    if (text_or_null_if_empty(path) == NULL)
        return 0;
    if (*ret_text != NULL)
        return report_error_of_key(report, -EINVAL, key,
                                   "the secret stands in the configuration, too");
    ssize_t got = read_file_of_secret(path, text, room);
    if (got < 0) {
        (void)snprintf(line, sizeof line, "%.150s: %s", path, strerrordesc_np((int)-got));
        return report_error_of_key(report, (int)got, key, line);
    }
    size_t size = (size_t)got;
    while (size != 0 && size < room && strchr(" \t\r\n", text[size - 1]) != NULL)
        size--;
    fault = find_fault_of_secret(text, size, room);
    if (fault != NULL) {
        (void)snprintf(line, sizeof line, "%.150s: %s", path, fault);
        return report_error_of_key(report, -EINVAL, key, line);
    }
    text[size] = '\0';
    *ret_text = text;
    return 0;
}

static int read_all_secrets_from_files(const domus_config *config,
                                       const domi_joining_report *report, domi_joining *joining)
{
    domus_cluster_options *options = &joining->options;
    int error =
        read_secret_from_file(report, "passwordFile", config->cluster.password_file,
                              joining->password, sizeof joining->password, &options->password);

    if (error == 0)
        error = read_secret_from_file(report, "tokenFile", config->cluster.token_file,
                                      joining->token, sizeof joining->token, &options->token);
    if (error == 0)
        error = read_secret_from_file(report, "nkeySeedFile", config->cluster.nkey_seed_file,
                                      joining->nkey_seed, sizeof joining->nkey_seed,
                                      &options->nkey_seed);
    if (error == 0)
        error = read_secret_from_file(report, "jwtFile", config->cluster.jwt_file, joining->jwt,
                                      sizeof joining->jwt, &options->jwt);
    return error;
}

/* --- options ---------------------------------------------------------------------------------- */

/* Make a name for a cluster that the configuration gives none: the program's name, with '-' for
 * bytes that are not allowed. */
static void name_cluster_by_program(const char *program, char name[DOMUS_CLUSTER_NAME_MAX + 1])
{
    (void)snprintf(name, DOMUS_CLUSTER_NAME_MAX + 1, "%s",
                   text_or_null_if_empty(program) != NULL ? program : "domus");
    for (char *at = name; *at != '\0'; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!is_letter && (*at < '0' || *at > '9') && *at != '_')
            *at = '-';
    }
}

/* Check that only one way to log in to the servers is given, with everything it needs. */
static int check_login_to_servers(const domus_cluster_options *options,
                                  const domi_joining_report *report)
{
    if (options->password != NULL && options->user == NULL)
        return report_error_of_key(report, -EINVAL, "user", "there is a password, and no user");
    if (options->jwt != NULL && options->nkey_seed == NULL)
        return report_error_of_key(report, -EINVAL, "nkeySeedFile", "there is a JWT, and no seed");
    if (options->token != NULL && options->user != NULL)
        return report_error_of_key(report, -EINVAL, "token", "there is a user, too");
    if (options->nkey_seed != NULL && (options->user != NULL || options->token != NULL))
        return report_error_of_key(report, -EINVAL, "nkeySeedFile",
                                   "there is a user or a token, too");
    return 0;
}

/* Make the options of the cluster from the section of the configuration and the program's setup. */
static int make_cluster_options(const domus_cluster_setup *setup, const domi_joining_report *report,
                                domi_joining *joining)
{
    const domus_config *config = setup->config;
    domus_cluster_options *options = &joining->options;

    *joining = (domi_joining){.name = ""};
    if (setup->options != NULL)
        *options = *setup->options;
    if (text_or_null_if_empty(config->cluster.name) != NULL)
        options->name = config->cluster.name;
    if (text_or_null_if_empty(options->name) == NULL) {
        name_cluster_by_program(setup->program, joining->name);
        options->name = joining->name;
    }
    options->node = text_or_null_if_empty(config->cluster.node);
    options->servers = text_or_null_if_empty(config->cluster.servers);
    options->user = text_or_null_if_empty(config->cluster.user);
    options->password = text_or_null_if_empty(config->cluster.password);
    options->token = text_or_null_if_empty(config->cluster.token);
    options->nkey_seed = options->jwt = NULL;
    options->front = setup->front;
    options->heartbeat_ns = config->cluster.heartbeat_ns;
    options->down_after_ns = config->cluster.down_after_ns;
    options->lease_ns = config->cluster.lease_ns;
    options->queued_max = config->cluster.queued_max_bytes;
    options->replicas = config->cluster.replicas;
    options->asks_max = config->cluster.asks_max;
    options->addresses_max = config->cluster.addresses_max;
    options->message_max = (uint32_t)config->cluster.message_max_bytes;
    int error = read_all_secrets_from_files(config, report, joining);
    return error != 0 ? error : check_login_to_servers(options, report);
}

/* Write an error text that begins with the key of the configuration before a reason of
 * domus_cluster_check(), which itself begins with the name of the key or field. Without a reason
 * there is no key. */
static int report_check_error_with_config_key(const domi_joining_report *report, int error,
                                              const char *reason)
{
    static const char seed[] = "nkey_seed: ";

    if (reason[0] == '\0') {
        if (report->size > 0)
            (void)snprintf(report->text, report->size, "cluster: %s", strerrordesc_np(-error));
        return error;
    }
    if (strncmp(reason, seed, sizeof seed - 1) == 0)
        return report_error_of_key(report, error, "nkeySeedFile", reason + sizeof seed - 1);
    if (report->size > 0)
        (void)snprintf(report->text, report->size, PREFIX "%s", reason);
    return error;
}

/* --- functions of the joiner ------------------------------------------------------------------ */

static int check_cluster_setup(const domus_cluster_setup *setup, char *error, size_t error_size)
{
    const domi_joining_report report = {error, error_size};
    char reason[256] = "";
    domi_joining joining;
    int result = make_cluster_options(setup, &report, &joining);

    if (result == 0) {
        result = domus_cluster_check(&joining.options, reason, sizeof reason);
        if (result != 0)
            (void)report_check_error_with_config_key(&report, result, reason);
    }
    explicit_bzero(&joining, sizeof joining);
    return result;
}

static int open_cluster_by_setup(struct domus_system *system, const domus_cluster_setup *setup,
                                 char *error, size_t error_size, struct domus_cluster **ret_cluster)
{
    const domi_joining_report report = {error, error_size};
    char reason[256] = "";
    domi_joining joining;
    int result = make_cluster_options(setup, &report, &joining);

    if (result == 0) {
        result = domus_cluster_open(system, &joining.options, reason, sizeof reason, ret_cluster);
        if (result != 0)
            (void)report_check_error_with_config_key(&report, result, reason);
    }
    explicit_bzero(&joining, sizeof joining);
    return result;
}

const domus_joiner domus_cluster_front = {
    .check = check_cluster_setup,
    .open = open_cluster_by_setup,
    .leave = domus_cluster_leave,
    .close = domus_cluster_close,
};
