/* Reports of failures: one line for the caller, with OpenSSL's reason.
 *
 * OpenSSL keeps a queue of errors for each thread. The queue is empty before each call of OpenSSL
 * whose result is checked, and is emptied after it, so no connection gets the error of another
 * one. */
#ifndef DOMI_PROTOCOLS_TLS_REPORT_H
#define DOMI_PROTOCOLS_TLS_REPORT_H

#include <stddef.h>

/* The caller's buffer for the line of a report. `text` may be NULL if `size` is 0. */
typedef struct domi_tls_report {
    char *text;
    size_t size;
} domi_tls_report;

/* Write "SUBJECT: REASON" as the report of a failure. Returns `error`. */
int domi_tls_write_reason_and_return_error(const domi_tls_report *report, int error,
                                           const char *subject, const char *reason);

/* Report the reason of the first error in OpenSSL's queue, and empty the queue. Returns `error`, or
 * -ENOMEM if the reason is that memory is short. */
int domi_tls_report_openssl_reason(const domi_tls_report *report, int error, const char *subject);

#endif
