/* Settings of a pool: the url as libpq reads it, and the options that every connection begins with.
 * No text that leaves this file has a password. */
#include "protocols/pg/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copy the error text of libpq up to its first quotation mark, because a part of the url stands
 * behind that, which may be a password. */
static void copy_error_text_before_quote(const char *words, char *error, size_t error_size)
{
    size_t size = words != NULL ? strcspn(words, "\"\n") : 0;

    while (size > 0 && (words[size - 1] == ' ' || words[size - 1] == ':'))
        size--;
    snprintf(error, error_size, "the url is wrong%s%.*s", size > 0 ? ": " : "", (int)size,
             size > 0 ? words : "");
}

int domi_pg_check_settings(const domus_sql_settings *settings, char *error, size_t error_size)
{
    char *words = NULL;
    PQconninfoOption *options = PQconninfoParse(settings->url, &words);

    if (options == NULL)
        copy_error_text_before_quote(words, error, error_size);
    PQfreemem(words);
    PQconninfoFree(options);
    return options != NULL ? 0 : -EINVAL;
}

static void ignore_notice_of_server(void *context, const PGresult *notice)
{
    (void)context, (void)notice;
}

PGconn *domi_pg_begin_libpq_connect(const domus_sql_settings *settings)
{
    char patience[24];
    /* Settings in the url override those before it here, and are overridden by those after it. With
     * tcp_user_timeout the kernel gives up a server that does not acknowledge, so that cancels end,
     * too. */
    const char *const keywords[] = {"fallback_application_name", "gssencmode",
                                    "tcp_user_timeout",          "dbname",
                                    "client_encoding",           NULL};
    const char *const values[] = {"domus", "disable", patience, settings->url, "UTF8", NULL};

    snprintf(patience, sizeof patience, "%llu",
             (unsigned long long)(settings->options.connect_timeout_ns / 1000000));
    PGconn *pg = PQconnectStartParams(keywords, values, 1);
    if (pg != NULL)
        (void)PQsetNoticeReceiver(pg, ignore_notice_of_server, NULL);
    return pg;
}
