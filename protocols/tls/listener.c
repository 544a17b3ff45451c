/* TLS in front of listeners, and of connections to servers: a context from the settings of a
 * listener, or of the cluster, in the configuration (domus/front.h).
 *
 * A listener writes its files in lists with commas. Errors of a context begin with a file or with a
 * field of its settings, and those of a front with the key in which the user has written it. */
#include <domus/tls.h>

#include "protocols/tls/settings.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define REASON_SIZE 512u
#define HOST_SIZE   254u /* bytes of the name of a server, with a NUL */

/* A list of a key, taken apart. */
typedef struct domi_tls_list {
    uint32_t count;
    char *items[DOMUS_TLS_CERTIFICATES_MAX + 1]; /* up to a NULL */
    char *text;                                  /* a copy of the key's, which the items are in */
} domi_tls_list;

/* The lists of a listener, and the settings that they are a part of. */
typedef struct domi_tls_lists {
    domi_tls_list certs, keys, alpn, authorities; /* the last one has one element, or none */
    domus_tls_certificate certificates[DOMUS_TLS_CERTIFICATES_MAX];
    domus_tls_settings settings;
    const char *authorities_key; /* the key of `authorities` */
} domi_tls_lists;

/* The state of a front: its context, and the stage in front of its connections. */
typedef struct domi_tls_front {
    domus_tls *tls;
    char host[HOST_SIZE]; /* of servers; "": nothing was said */
    domus_tls_options options;
    domus_pipeline_stage stages[2];
    domi_tls_lists lists; /* name the key of an error */
} domi_tls_front;

/* --- lists ------------------------------------------------------------------------------------ */

static bool is_blank(const char *text)
{
    return text == NULL || text[0] == '\0';
}

static const char *text_or_null(const char *text)
{
    return is_blank(text) ? NULL : text;
}

/* Cut blanks from both ends. */
static char *trim_blanks(char *text)
{
    size_t size = strlen(text);

    while (size != 0 && text[size - 1] == ' ')
        text[--size] = '\0';
    return text + strspn(text, " ");
}

/* Take a list apart, whose elements are divided by commas. `list` has been cleared. */
static int split_list(const domi_tls_report *report, const char *key, const char *from,
                      domi_tls_list *list)
{
    if (is_blank(from))
        return 0;
    list->text = OPENSSL_strdup(from);
    if (list->text == NULL)
        return domi_tls_say(report, -ENOMEM, key, "no memory");
    for (char *rest = list->text; rest != NULL;) {
        char *item = strsep(&rest, ",");
        if (list->count == DOMUS_TLS_CERTIFICATES_MAX)
            return domi_tls_say(report, -EINVAL, key, "more than 64");
        item = trim_blanks(item);
        if (item[0] == '\0')
            return domi_tls_say(report, -EINVAL, key, "an element is empty");
        list->items[list->count++] = item;
    }
    list->items[list->count] = NULL;
    return 0;
}

static void free_lists(domi_tls_lists *lists)
{
    OPENSSL_free(lists->certs.text);
    OPENSSL_free(lists->keys.text);
    OPENSSL_free(lists->alpn.text);
    OPENSSL_free(lists->authorities.text);
}

static int take_certificates(const domi_tls_report *report, domi_tls_lists *lists)
{
    if (lists->certs.count == 0)
        return domi_tls_say(report, -EINVAL, "tls.certFile", "is missing");
    if (lists->keys.count != 0 && lists->keys.count != lists->certs.count)
        return domi_tls_say(report, -EINVAL, "tls.keyFile",
                            "has to have as many files as certFile");
    for (uint32_t i = 0; i < lists->certs.count; i++)
        lists->certificates[i] = (domus_tls_certificate){
            lists->certs.items[i], lists->keys.count != 0 ? lists->keys.items[i] : NULL};
    return 0;
}

/* Make settings, whose texts are those of `lists` and of the listener. */
static int read_listener(const domus_listener_config *listener, const domi_tls_report *report,
                         domi_tls_lists *lists)
{
    const bool omits = listener->tls.clients_may_omit != 0;
    lists->authorities_key = "tls.clientCaFile";
    int error = split_list(report, "tls.certFile", listener->tls.cert_files, &lists->certs);

    if (error == 0)
        error = split_list(report, "tls.keyFile", listener->tls.key_files, &lists->keys);
    if (error == 0)
        error = split_list(report, "tls.alpn", listener->tls.alpn, &lists->alpn);
    if (error == 0)
        error = split_list(report, "tls.clientCaFile", listener->tls.client_ca_file,
                           &lists->authorities);
    if (error == 0 && lists->authorities.count > 1)
        error = domi_tls_say(report, -EINVAL, "tls.clientCaFile", "has to be one file");
    if (error == 0)
        error = take_certificates(report, lists);
    if (error == 0 && omits && lists->authorities.count == 0)
        error = domi_tls_say(report, -EINVAL, "tls.clients", "needs clientCaFile");
    if (error != 0)
        return error;
    lists->settings = (domus_tls_settings){
        .role = DOMUS_ROLE_SERVER,
        .certificates = lists->certificates,
        .certificates_count = lists->certs.count,
        .ca_file = lists->authorities.items[0],
        .verify = omits ? DOMUS_TLS_VERIFY_OPTIONAL : DOMUS_TLS_VERIFY_DEFAULT,
        .min_version = listener->tls.min_version == 0 ? DOMUS_TLS_1_2 : DOMUS_TLS_1_3,
        .ciphers = text_or_null(listener->tls.ciphers),
        .cipher_suites = text_or_null(listener->tls.cipher_suites),
        .alpn = lists->alpn.count != 0 ? (const char *const *)lists->alpn.items : NULL};
    return 0;
}

/* Let a list have one element, the name of a file, or none. A comma is a part of the name. */
static int take_file(const domi_tls_report *report, const char *key, const char *from,
                     domi_tls_list *list)
{
    if (is_blank(from))
        return 0;
    list->text = OPENSSL_strdup(from);
    if (list->text == NULL)
        return domi_tls_say(report, -ENOMEM, key, "no memory");
    list->items[0] = list->text;
    list->count = 1;
    return 0;
}

/* Make settings of a client. */
static int read_servers(const domus_servers_tls_config *settings, const domi_tls_report *report,
                        domi_tls_lists *lists)
{
    lists->authorities_key = "tls.caFile";
    int error = take_file(report, "tls.certFile", settings->cert_file, &lists->certs);

    if (error == 0)
        error = take_file(report, "tls.keyFile", settings->key_file, &lists->keys);
    if (error == 0)
        error = take_file(report, "tls.caFile", settings->ca_file, &lists->authorities);
    if (error == 0 && lists->certs.count == 0 && lists->keys.count != 0)
        error = domi_tls_say(report, -EINVAL, "tls.keyFile", "needs certFile");
    if (error == 0 && lists->certs.count != 0)
        error = take_certificates(report, lists);
    if (error != 0)
        return error;
    lists->settings = (domus_tls_settings){
        .role = DOMUS_ROLE_CLIENT,
        .certificates = lists->certificates,
        .certificates_count = lists->certs.count,
        .ca_file = lists->authorities.items[0],
        .min_version = settings->min_version == 0 ? DOMUS_TLS_1_2 : DOMUS_TLS_1_3,
        .ciphers = text_or_null(settings->ciphers),
        .cipher_suites = text_or_null(settings->cipher_suites)};
    return 0;
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Returns whether a reason is about this subject: "SUBJECT: ...". */
static bool is_reason_about(const char *reason, const char *subject)
{
    size_t size = strlen(subject);

    return strncmp(reason, subject, size) == 0 && reason[size] == ':';
}

static bool is_reason_about_element(const char *reason, const domi_tls_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (is_reason_about(reason, list->items[i]))
            return true;
    return false;
}

/* Say a reason of a context with the key of the listener that it is about. */
static int say_with_key(const domi_tls_report *report, int error, const domi_tls_lists *lists,
                        const char *reason)
{
    static const struct {
        const char *field, *key;
    } fields[] = {{"alpn", "tls.alpn"},
                  {"ciphers", "tls.ciphers"},
                  {"cipher_suites", "tls.cipherSuites"},
                  {"min_version", "tls.minVersion"}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (is_reason_about(reason, fields[i].field))
            return domi_tls_say(report, error, fields[i].key, reason + strlen(fields[i].field) + 2);
    if (is_reason_about_element(reason, &lists->keys))
        return domi_tls_say(report, error, "tls.keyFile", reason);
    if (is_reason_about_element(reason, &lists->certs))
        return domi_tls_say(report, error, "tls.certFile", reason);
    if (is_reason_about_element(reason, &lists->authorities))
        return domi_tls_say(report, error, lists->authorities_key, reason);
    return domi_tls_say(report, error, "tls", reason);
}

/* --- contexts --------------------------------------------------------------------------------- */

/* Make the context of settings that were read, unless that has failed with `error`. */
static int make_context(int error, const domi_tls_report *report, domi_tls_lists *lists,
                        domus_tls **ret_tls)
{
    char reason[REASON_SIZE];

    if (error != 0)
        return error;
    error = domus_tls_new(&lists->settings, reason, sizeof reason, ret_tls);
    return error != 0 ? say_with_key(report, error, lists, reason) : 0;
}

int domus_tls_new_of_listener(const domus_listener_config *listener, char *error, size_t error_size,
                              domus_tls **ret_tls)
{
    const domi_tls_report report = {error, error_size};
    domi_tls_lists *lists = OPENSSL_zalloc(sizeof *lists);

    if (lists == NULL)
        return domi_tls_say(&report, -ENOMEM, "tls", "no memory");
    int result = make_context(read_listener(listener, &report, lists), &report, lists, ret_tls);
    free_lists(lists);
    OPENSSL_free(lists);
    return result;
}

/* --- the front -------------------------------------------------------------------------------- */

static void close_front(void *state)
{
    domi_tls_front *front = state;

    if (front == NULL)
        return;
    domus_tls_free(front->tls);
    free_lists(&front->lists);
    OPENSSL_free(front);
}

/* Make the context and the stages of a front whose settings were read, unless that has failed with
 * `error`; then the front is freed. */
static int finish_front(domi_tls_front *front, int error, const domi_tls_report *report,
                        void **ret_state, const domus_pipeline_stage **ret_stages)
{
    error = make_context(error, report, &front->lists, &front->tls);
    if (error != 0) {
        close_front(front);
        return error;
    }
    front->lists.settings =
        (domus_tls_settings){0}; /* the settings point to texts of the configuration */
    front->options.tls = front->tls;
    front->stages[0] = (domus_pipeline_stage){&domus_tls_stage, &front->options};
    *ret_state = front;
    *ret_stages = front->stages;
    return 0;
}

static int open_front(const domus_listener_config *listener, char *error, size_t error_size,
                      void **ret_state, const domus_pipeline_stage **ret_stages)
{
    const domi_tls_report report = {error, error_size};

    *ret_state = NULL;
    *ret_stages = NULL;
    if (is_blank(listener->tls.cert_files))
        return 0;
    domi_tls_front *front = OPENSSL_zalloc(sizeof *front);
    if (front == NULL)
        return domi_tls_say(&report, -ENOMEM, "tls", "no memory");
    return finish_front(front, read_listener(listener, &report, &front->lists), &report, ret_state,
                        ret_stages);
}

static int open_servers(const domus_servers_tls_config *settings, char *error, size_t error_size,
                        void **ret_state, const domus_pipeline_stage **ret_stages)
{
    const domi_tls_report report = {error, error_size};
    const char *host = text_or_null(settings->server_name);

    *ret_state = NULL;
    *ret_stages = NULL;
    if (!settings->enabled)
        return 0;
    if (host != NULL && (strlen(host) >= HOST_SIZE || host[0] == '.'))
        return domi_tls_say(&report, -EINVAL, "tls.serverName", "not the name of a server");
    domi_tls_front *front = OPENSSL_zalloc(sizeof *front);
    if (front == NULL)
        return domi_tls_say(&report, -ENOMEM, "tls", "no memory");
    if (host != NULL) {
        memcpy(front->host, host, strlen(host) + 1);
        front->options.host = front->host;
    }
    return finish_front(front, read_servers(settings, &report, &front->lists), &report, ret_state,
                        ret_stages);
}

static int reload_front(void *state, char *error, size_t error_size)
{
    const domi_tls_report report = {error, error_size};
    domi_tls_front *front = state;
    char reason[REASON_SIZE];
    int result = domus_tls_reload(front->tls, reason, sizeof reason);

    return result != 0 ? say_with_key(&report, result, &front->lists, reason) : 0;
}

const domus_front domus_tls_front = {open_front, reload_front, close_front, open_servers};
