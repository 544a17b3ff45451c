/* Makes requests to an observation port (port.h). */
#include "tools/domus/port.h"

#include "tools/domus/say.h"

#include <curl/curl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS  3000L
#define POST_MS     10000L
#define REFUSAL_MAX 256 /* most bytes of the text of a refusal that are shown */

/* A request to a port that is under way. */
typedef struct request {
    port *to;
    port_sink *sink;
    void *context;
    bool is_ended; /* the sink of the request wants no further bytes */
    size_t refused_size;
    char refusal[REFUSAL_MAX];
} request;

static void store_error_of_request(port *to, const char *why)
{
    char shown[sizeof to->error / 2];

    escape_name_to_ascii(to->endpoint, strlen(to->endpoint), shown, sizeof shown);
    snprintf(to->error, sizeof to->error, "%s: %s", shown, why);
}

/* --- endpoints -------------------------------------------------------------------------------- */

/* Returns whether a text is HOST:PORT, without characters that would lead a URL elsewhere. */
static bool is_host_and_port(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    size_t host = strspn(endpoint, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789.-[]:");
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;

    return colon != NULL && colon != endpoint && host == strlen(endpoint) && digits > 0 &&
           digits <= 5 && colon[1 + digits] == '\0' &&
           digits + 1 + (size_t)(colon - endpoint) < 256;
}

static bool set_endpoint_of_requests(port *to, const char *endpoint)
{
    static const char unix_[] = "unix:";
    CURL *curl = to->curl;

    if (strncmp(endpoint, unix_, sizeof unix_ - 1) != 0)
        return is_host_and_port(endpoint);
    endpoint += sizeof unix_ - 1;
    if (endpoint[0] == '@')
        return endpoint[1] != '\0' &&
               curl_easy_setopt(curl, CURLOPT_ABSTRACT_UNIX_SOCKET, endpoint + 1) == CURLE_OK;
    return endpoint[0] != '\0' &&
           curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, endpoint) == CURLE_OK;
}

/* Returns not 0 if the request has to end, because a signal was noted. libcurl calls this several
 * times a second. */
static int was_signal_noted_during_request(void *unused, curl_off_t a, curl_off_t b, curl_off_t c,
                                           curl_off_t d)
{
    (void)unused, (void)a, (void)b, (void)c, (void)d;
    return say_get_noted_signal();
}

bool port_prepare_for_endpoint(port *to, const char *endpoint)
{
    memset(to, 0, sizeof *to);
    snprintf(to->endpoint, sizeof to->endpoint, "%s", endpoint);
    to->curl = curl_easy_init();
    if (to->curl == NULL) {
        store_error_of_request(to, "no memory");
        return false;
    }
    if (!set_endpoint_of_requests(to, endpoint)) {
        store_error_of_request(to, "must be unix:PATH or HOST:PORT");
        return false;
    }
    (void)curl_easy_setopt(to->curl, CURLOPT_PROTOCOLS_STR, "http");
    /* no proxy is used, even if the environment names one */
    (void)curl_easy_setopt(to->curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(to->curl, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(to->curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(to->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    (void)curl_easy_setopt(to->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(to->curl, CURLOPT_USERAGENT, "domus");
    (void)curl_easy_setopt(to->curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(to->curl, CURLOPT_XFERINFOFUNCTION, was_signal_noted_during_request);
    return true;
}

void port_close(port *to)
{
    if (to->curl != NULL)
        curl_easy_cleanup(to->curl);
    to->curl = NULL;
}

/* --- requests --------------------------------------------------------------------------------- */

static size_t pass_answer_to_sink_or_keep_refusal(char *bytes, size_t one, size_t count,
                                                  void *request_)
{
    request *asked = request_;
    size_t size = one * count;
    long status = 0;

    (void)curl_easy_getinfo(asked->to->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status / 100 == 2) {
        asked->is_ended = !asked->sink(asked->context, bytes, size);
        return asked->is_ended ? 0 : size;
    }
    size_t room = sizeof asked->refusal - 1 - asked->refused_size;
    size_t part = size < room ? size : room;
    memcpy(asked->refusal + asked->refused_size, bytes, part);
    asked->refused_size += part;
    return part == size ? size : 0;
}

/* Record why the port has refused a request: the first line of its answer. */
static void store_why_port_refused_request(port *to, const request *asked)
{
    char line[REFUSAL_MAX], why[REFUSAL_MAX + 64];

    escape_name_to_ascii(asked->refusal, strcspn(asked->refusal, "\r\n"), line, sizeof line);
    snprintf(why, sizeof why, "it answered %ld%s%s", to->status, line[0] != '\0' ? ": " : "", line);
    if (to->status == 404)
        snprintf(why, sizeof why, "this program's port does not have that (404)");
    store_error_of_request(to, why);
}

static bool send_request_and_pass_answer_to_sink(port *to, const char *path, long ms, bool is_post,
                                                 port_sink *sink, void *context)
{
    char url[2048], reason[CURL_ERROR_SIZE] = "";
    request asked = {.to = to, .sink = sink, .context = context};
    bool is_unix = strncmp(to->endpoint, "unix:", 5) == 0;

    to->status = 0;
    to->error[0] = '\0';
    if (snprintf(url, sizeof url, "http://%s%s", is_unix ? "localhost" : to->endpoint, path) >=
        (int)sizeof url) {
        store_error_of_request(to, "the request is too long");
        return false;
    }
    (void)curl_easy_setopt(to->curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(to->curl, CURLOPT_TIMEOUT_MS, ms);
    (void)curl_easy_setopt(to->curl, CURLOPT_ERRORBUFFER, reason);
    (void)curl_easy_setopt(to->curl, CURLOPT_WRITEFUNCTION, pass_answer_to_sink_or_keep_refusal);
    (void)curl_easy_setopt(to->curl, CURLOPT_WRITEDATA, &asked);
    if (is_post)
        (void)curl_easy_setopt(to->curl, CURLOPT_POSTFIELDS, "");
    else
        (void)curl_easy_setopt(to->curl, CURLOPT_HTTPGET, 1L);
    CURLcode result = curl_easy_perform(to->curl);
    (void)curl_easy_setopt(to->curl, CURLOPT_ERRORBUFFER, NULL);
    (void)curl_easy_getinfo(to->curl, CURLINFO_RESPONSE_CODE, &to->status);
    if (to->status != 0 && to->status / 100 != 2) {
        store_why_port_refused_request(to, &asked);
        return false;
    }
    if (result == CURLE_OK || asked.is_ended)
        return true;
    store_error_of_request(to, reason[0] != '\0' ? reason : curl_easy_strerror(result));
    return false;
}

/* An answer of a port that is collected as a whole. */
typedef struct whole {
    port_text read;
    size_t room; /* number of bytes that are allocated at read.at */
    /* reason why the rest of the answer was not collected; NULL: there is none */
    const char *trouble;
} whole;

/* Append bytes to an answer that is collected. Returns false if there is no room for the bytes. */
static bool append_to_answer(void *whole_, const char *bytes, size_t size)
{
    whole *all = whole_;
    size_t wanted = all->read.size + size + 1;

    all->trouble = wanted > PORT_TEXT_MAX ? "its answer is too long" : NULL;
    if (all->trouble == NULL && wanted > all->room) {
        char *larger = realloc(all->read.at, 2 * wanted);
        if (larger == NULL) {
            all->trouble = "no memory";
            return false;
        }
        all->read.at = larger;
        all->room = 2 * wanted;
    }
    if (all->trouble != NULL)
        return false;
    memcpy(all->read.at + all->read.size, bytes, size);
    all->read.size += size;
    all->read.at[all->read.size] = '\0';
    return true;
}

static bool send_request_and_collect_answer(port *to, const char *path, long ms, bool is_post,
                                            port_text *ret_text)
{
    whole all = {0};
    bool is_answered =
        send_request_and_pass_answer_to_sink(to, path, ms, is_post, append_to_answer, &all);

    if (is_answered && all.trouble == NULL && all.read.at == NULL)
        (void)append_to_answer(&all, "", 0); /* an empty answer becomes an empty text */
    if (is_answered && all.trouble != NULL) {
        store_error_of_request(to, all.trouble);
        is_answered = false;
    }
    if (is_answered)
        *ret_text = all.read;
    else
        free(all.read.at);
    return is_answered;
}

bool port_get_and_collect_answer(port *to, const char *path, long ms, port_text *ret_text)
{
    return send_request_and_collect_answer(to, path, ms, false, ret_text);
}

bool port_get_and_pass_answer_to_sink(port *to, const char *path, long ms, port_sink *sink,
                                      void *context)
{
    return send_request_and_pass_answer_to_sink(to, path, ms, false, sink, context);
}

bool port_post_and_collect_answer(port *to, const char *path, port_text *ret_text)
{
    return send_request_and_collect_answer(to, path, POST_MS, true, ret_text);
}

bool port_escape_query_value(const char *value, char *ret_text, size_t size)
{
    char *escaped = curl_easy_escape(NULL, value, 0);
    bool fits = escaped != NULL && snprintf(ret_text, size, "%s", escaped) < (int)size;

    curl_free(escaped);
    return fits;
}
