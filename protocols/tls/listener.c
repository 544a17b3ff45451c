/* TLS for listeners, and for connections to servers: makes a context from the settings that a
 * listener, or the cluster, has in the configuration (domus/front.h).
 *
 * A listener lists its files with commas between them. An error text of a context begins with a
 * file or a field of its settings; an error text of a front begins with the key in which the user
 * has written it. */
#include <domus/tls.h>

#include "protocols/tls/settings.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define REASON_SIZE 512u
#define HOST_SIZE   254u /* bytes of the name of a server, with its zero byte */

/* The elements of a configuration key whose value is a list. */
typedef struct domi_tls_list {
    uint32_t count;
    /* the elements of the list, with a NULL behind them */
    char *items[DOMUS_TLS_CERTIFICATES_MAX + 1];
    /* a copy of the key's value, in which the elements are texts */
    char *text;
} domi_tls_list;

/* The lists in the TLS settings of a listener, and the settings of a context that point into
 * them. */
typedef struct domi_tls_lists {
    /* lists of the keys; `authorities` has one element or none */
    domi_tls_list certs, keys, alpn, authorities;
    domus_tls_certificate certificates[DOMUS_TLS_CERTIFICATES_MAX];
    domus_tls_settings settings;
    /* name of the configuration key from which `authorities` was read */
    const char *authorities_key;
} domi_tls_lists;

/* The state of a front: its TLS context, and the stage that it puts in front of connections. */
typedef struct domi_tls_front {
    domus_tls *tls;
    /* the host to which a client's connections go, from the settings of servers; "": none was
     * given */
    char host[HOST_SIZE];
    domus_tls_options options;
    domus_pipeline_stage stages[2];
    domi_tls_lists lists; /* the lists of the settings; they tell which key an error is about */
} domi_tls_front;

/* --- lists ------------------------------------------------------------------------------------ */

static bool is_text_blank(const char *text)
{
    return text == NULL || text[0] == '\0';
}

static const char *text_or_null_if_blank(const char *text)
{
    return is_text_blank(text) ? NULL : text;
}

/* Remove blanks from both ends of a text. */
static char *trim_blanks(char *text)
{
    size_t size = strlen(text);

    while (size != 0 && text[size - 1] == ' ')
        text[--size] = '\0';
    return text + strspn(text, " ");
}

/* Split the value of a key into a list at its commas. `list` must be empty. */
static int split_list_at_commas(const domi_tls_report *report, const char *key, const char *from,
                                domi_tls_list *list)
{
    if (is_text_blank(from))
        return 0;
    list->text = OPENSSL_strdup(from);
    if (list->text == NULL)
        return domi_tls_write_reason_and_return_error(report, -ENOMEM, key, "no memory");
    for (char *rest = list->text; rest != NULL;) {
        char *item = strsep(&rest, ",");
        if (list->count == DOMUS_TLS_CERTIFICATES_MAX)
            return domi_tls_write_reason_and_return_error(report, -EINVAL, key, "more than 64");
        item = trim_blanks(item);
        if (item[0] == '\0')
            return domi_tls_write_reason_and_return_error(report, -EINVAL, key,
                                                          "an element is empty");
        list->items[list->count++] = item;
    }
    list->items[list->count] = NULL;
    return 0;
}

static void free_lists_of_settings(domi_tls_lists *lists)
{
    OPENSSL_free(lists->certs.text);
    OPENSSL_free(lists->keys.text);
    OPENSSL_free(lists->alpn.text);
    OPENSSL_free(lists->authorities.text);
}

static int set_certificates_of_settings(const domi_tls_report *report, domi_tls_lists *lists)
{
    if (lists->certs.count == 0)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "tls.certFile",
                                                      "is missing");
    if (lists->keys.count != 0 && lists->keys.count != lists->certs.count)
        return domi_tls_write_reason_and_return_error(report, -EINVAL, "tls.keyFile",
                                                      "has to have as many files as certFile");
    for (uint32_t i = 0; i < lists->certs.count; i++)
        lists->certificates[i] = (domus_tls_certificate){
            lists->certs.items[i], lists->keys.count != 0 ? lists->keys.items[i] : NULL};
    return 0;
}

/* Read the TLS settings of a listener. The texts in the settings belong to `lists` and to the
 * listener. */
static int read_listener_settings(const domus_listener_config *listener,
                                  const domi_tls_report *report, domi_tls_lists *lists)
{
    const bool omits = listener->tls.clients_may_omit != 0;
    lists->authorities_key = "tls.clientCaFile";
    int error =
        split_list_at_commas(report, "tls.certFile", listener->tls.cert_files, &lists->certs);

    if (error == 0)
        error = split_list_at_commas(report, "tls.keyFile", listener->tls.key_files, &lists->keys);
    if (error == 0)
        error = split_list_at_commas(report, "tls.alpn", listener->tls.alpn, &lists->alpn);
    if (error == 0)
        error = split_list_at_commas(report, "tls.clientCaFile", listener->tls.client_ca_file,
                                     &lists->authorities);
    if (error == 0 && lists->authorities.count > 1)
        error = domi_tls_write_reason_and_return_error(report, -EINVAL, "tls.clientCaFile",
                                                       "has to be one file");
    if (error == 0)
        error = set_certificates_of_settings(report, lists);
    if (error == 0 && omits && lists->authorities.count == 0)
        error = domi_tls_write_reason_and_return_error(report, -EINVAL, "tls.clients",
                                                       "needs clientCaFile");
    if (error != 0)
        return error;
    lists->settings = (domus_tls_settings){
        .role = DOMUS_ROLE_SERVER,
        .certificates = lists->certificates,
        .certificates_count = lists->certs.count,
        .ca_file = lists->authorities.items[0],
        .verify = omits ? DOMUS_TLS_VERIFY_OPTIONAL : DOMUS_TLS_VERIFY_DEFAULT,
        .min_version = listener->tls.min_version == 0 ? DOMUS_TLS_1_2 : DOMUS_TLS_1_3,
        .ciphers = text_or_null_if_blank(listener->tls.ciphers),
        .cipher_suites = text_or_null_if_blank(listener->tls.cipher_suites),
        .alpn = lists->alpn.count != 0 ? (const char *const *)lists->alpn.items : NULL};
    return 0;
}

/* Read the value of a key that is the name of one file, or empty, into a list. A comma is a part of
 * the name. */
static int copy_file_name_into_list(const domi_tls_report *report, const char *key,
                                    const char *from, domi_tls_list *list)
{
    if (is_text_blank(from))
        return 0;
    list->text = OPENSSL_strdup(from);
    if (list->text == NULL)
        return domi_tls_write_reason_and_return_error(report, -ENOMEM, key, "no memory");
    list->items[0] = list->text;
    list->count = 1;
    return 0;
}

/* Read the TLS settings of connections to servers, on the client side. */
static int read_client_settings(const domus_servers_tls_config *settings,
                                const domi_tls_report *report, domi_tls_lists *lists)
{
    lists->authorities_key = "tls.caFile";
    int error =
        copy_file_name_into_list(report, "tls.certFile", settings->cert_file, &lists->certs);

    if (error == 0)
        error = copy_file_name_into_list(report, "tls.keyFile", settings->key_file, &lists->keys);
    if (error == 0)
        error =
            copy_file_name_into_list(report, "tls.caFile", settings->ca_file, &lists->authorities);
    if (error == 0 && lists->certs.count == 0 && lists->keys.count != 0)
        error = domi_tls_write_reason_and_return_error(report, -EINVAL, "tls.keyFile",
                                                       "needs certFile");
    if (error == 0 && lists->certs.count != 0)
        error = set_certificates_of_settings(report, lists);
    if (error != 0)
        return error;
    lists->settings = (domus_tls_settings){
        .role = DOMUS_ROLE_CLIENT,
        .certificates = lists->certificates,
        .certificates_count = lists->certs.count,
        .ca_file = lists->authorities.items[0],
        .min_version = settings->min_version == 0 ? DOMUS_TLS_1_2 : DOMUS_TLS_1_3,
        .ciphers = text_or_null_if_blank(settings->ciphers),
        .cipher_suites = text_or_null_if_blank(settings->cipher_suites)};
    return 0;
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Returns whether an error text of a context is about `subject`, which it then has before ": ". */
static bool is_reason_about_subject(const char *reason, const char *subject)
{
    size_t size = strlen(subject);

    return strncmp(reason, subject, size) == 0 && reason[size] == ':';
}

static bool is_reason_about_element_of_list(const char *reason, const domi_tls_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (is_reason_about_subject(reason, list->items[i]))
            return true;
    return false;
}

/* Report the error text of a context under the key of the configuration that it is about. */
static int report_error_under_key_it_is_about(const domi_tls_report *report, int error,
                                              const domi_tls_lists *lists, const char *reason)
{
    static const struct {
        const char *field, *key;
    } fields[] = {{"alpn", "tls.alpn"},
                  {"ciphers", "tls.ciphers"},
                  {"cipher_suites", "tls.cipherSuites"},
                  {"min_version", "tls.minVersion"}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (is_reason_about_subject(reason, fields[i].field))
            return domi_tls_write_reason_and_return_error(report, error, fields[i].key,
                                                          reason + strlen(fields[i].field) + 2);
    if (is_reason_about_element_of_list(reason, &lists->keys))
        return domi_tls_write_reason_and_return_error(report, error, "tls.keyFile", reason);
    if (is_reason_about_element_of_list(reason, &lists->certs))
        return domi_tls_write_reason_and_return_error(report, error, "tls.certFile", reason);
    if (is_reason_about_element_of_list(reason, &lists->authorities))
        return domi_tls_write_reason_and_return_error(report, error, lists->authorities_key,
                                                      reason);
    return domi_tls_write_reason_and_return_error(report, error, "tls", reason);
}

/* --- contexts --------------------------------------------------------------------------------- */

/* Make the TLS context of a listener or client from settings that were read. If reading them has
 * failed, return its `error`. */
static int make_context_of_settings(int error, const domi_tls_report *report, domi_tls_lists *lists,
                                    domus_tls **ret_tls)
{
    char reason[REASON_SIZE];

    if (error != 0)
        return error;
    error = domus_tls_new(&lists->settings, reason, sizeof reason, ret_tls);
    return error != 0 ? report_error_under_key_it_is_about(report, error, lists, reason) : 0;
}

int domus_tls_new_of_listener(const domus_listener_config *listener, char *error, size_t error_size,
                              domus_tls **ret_tls)
{
    const domi_tls_report report = {error, error_size};
    domi_tls_lists *lists = OPENSSL_zalloc(sizeof *lists);

    if (lists == NULL)
        return domi_tls_write_reason_and_return_error(&report, -ENOMEM, "tls", "no memory");
    int result = make_context_of_settings(read_listener_settings(listener, &report, lists), &report,
                                          lists, ret_tls);
    free_lists_of_settings(lists);
    OPENSSL_free(lists);
    return result;
}

/* --- the front -------------------------------------------------------------------------------- */

static void close_front_of_tls(void *state)
{
    domi_tls_front *front = state;

    if (front == NULL)
        return;
    domus_tls_free(front->tls);
    free_lists_of_settings(&front->lists);
    OPENSSL_free(front);
}

/* Make the TLS context and the stages of a front from settings that were read. If reading them has
 * failed with `error`, or making fails, the front is freed. */
static int make_context_and_stages_of_front(domi_tls_front *front, int error,
                                            const domi_tls_report *report, void **ret_state,
                                            const domus_pipeline_stage **ret_stages)
{
    error = make_context_of_settings(error, report, &front->lists, &front->tls);
    if (error != 0) {
        close_front_of_tls(front);
        return error;
    }
    front->lists.settings =
        /* the settings point to texts of the configuration, which may be freed from now on, so they
         * are cleared */
        (domus_tls_settings){0};
    front->options.tls = front->tls;
    front->stages[0] = (domus_pipeline_stage){&domus_tls_stage, &front->options};
    *ret_state = front;
    *ret_stages = front->stages;
    return 0;
}

static int open_front_of_listener(const domus_listener_config *listener, char *error,
                                  size_t error_size, void **ret_state,
                                  const domus_pipeline_stage **ret_stages)
{
    const domi_tls_report report = {error, error_size};

    *ret_state = NULL;
    *ret_stages = NULL;
    if (is_text_blank(listener->tls.cert_files))
        return 0;
    domi_tls_front *front = OPENSSL_zalloc(sizeof *front);
    if (front == NULL)
        return domi_tls_write_reason_and_return_error(&report, -ENOMEM, "tls", "no memory");
    return make_context_and_stages_of_front(
        front, read_listener_settings(listener, &report, &front->lists), &report, ret_state,
        ret_stages);
}

static int open_front_of_client(const domus_servers_tls_config *settings, char *error,
                                size_t error_size, void **ret_state,
                                const domus_pipeline_stage **ret_stages)
{
    const domi_tls_report report = {error, error_size};
    const char *host = text_or_null_if_blank(settings->server_name);

    *ret_state = NULL;
    *ret_stages = NULL;
    if (!settings->enabled)
        return 0;
    if (host != NULL && (strlen(host) >= HOST_SIZE || host[0] == '.'))
        return domi_tls_write_reason_and_return_error(&report, -EINVAL, "tls.serverName",
                                                      "not the name of a server");
    domi_tls_front *front = OPENSSL_zalloc(sizeof *front);
    if (front == NULL)
        return domi_tls_write_reason_and_return_error(&report, -ENOMEM, "tls", "no memory");
    if (host != NULL) {
        memcpy(front->host, host, strlen(host) + 1);
        front->options.host = front->host;
    }
    return make_context_and_stages_of_front(front,
                                            read_client_settings(settings, &report, &front->lists),
                                            &report, ret_state, ret_stages);
}

static int reload_files_of_front(void *state, char *error, size_t error_size)
{
    const domi_tls_report report = {error, error_size};
    domi_tls_front *front = state;
    char reason[REASON_SIZE];
    int result = domus_tls_reload(front->tls, reason, sizeof reason);

    return result != 0 ? report_error_under_key_it_is_about(&report, result, &front->lists, reason)
                       : 0;
}

const domus_front domus_tls_front = {open_front_of_listener, reload_files_of_front,
                                     close_front_of_tls, open_front_of_client};
