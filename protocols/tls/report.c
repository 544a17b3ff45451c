/* Writes reports of TLS failures as one line (report.h). Thread-safety: any thread. */
#include "protocols/tls/report.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

int domi_tls_write_reason_and_return_error(const domi_tls_report *report, int error,
                                           const char *subject, const char *reason)
{
    if (report->size != 0)
        snprintf(report->text, report->size, "%s: %s", subject, reason);
    return error;
}

int domi_tls_report_openssl_reason(const domi_tls_report *report, int error, const char *subject)
{
    unsigned long first = ERR_peek_error();
    const char *reason = first != 0 ? ERR_reason_error_string(first) : NULL;

    if (ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE)
        error = -ENOMEM;
    domi_tls_write_reason_and_return_error(report, error, subject,
                                           reason != NULL ? reason : "no reason is known");
    ERR_clear_error();
    return error;
}
