/* The user of a request, by the session in its cookie: two parts of a chain (domus/http_chain.h).
 *
 *     static domus_http_keys keys;
 *     static const domus_http_user_session session = {.keys = &keys};
 *     ... {&domus_http_session_user, &session} in the chain
 *     ... {&domus_http_wants_user, NULL} in the chain behind it, or among the parts of a row
 *
 * A login begins a session whose value is the name of the user, 1..DOMUS_HTTP_USER_MAX bytes:
 *
 *     domus_http_session_seal(&fields, NULL, &keys, time(NULL), "ann", 3);
 *
 * The part domus_http_session_user reads it: the exchange then has the name as its user, which the
 * access log shows, too. A request without a session, or with one that has expired or is none of
 * ours, goes on without a user, and domus_http_wants_user answers 401 to it.
 *
 * A site of another origin can make a browser send a request, but not with this cookie, unless it
 * is a GET that leads there (SameSite=Lax). So a GET changes nothing; see CSRF in
 * domus/http_session.h for browsers that do not know the attribute.
 *
 * Thread-safety: any thread; options are constants. */
#ifndef DOMUS_HTTP_USER_H
#define DOMUS_HTTP_USER_H

#include <domus/http_chain.h>
#include <domus/http_session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of the part domus_http_session_user, which are valid as long as the chain is used. */
typedef struct domus_http_user_session {
    const domus_http_keys *keys;             /* keys that have signed the cookie; not NULL */
    const domus_http_session_cookie *cookie; /* settings of the cookie; NULL: all defaults */
} domus_http_user_session;

DOMUS_API extern const domus_http_part domus_http_session_user;

/* The part that answers 401 to a request without a user. It has no options. */
DOMUS_API extern const domus_http_part domus_http_wants_user;

/* Returns the user of the request that is handled, with a zero at its end; "" when there is none.
 * Valid until the handler returns. Thread-safety: as domus_http_exchange_of(). */
static inline const char *domus_http_user_of(domus_stack *stack, const domus_http_request *request)
{
    const domus_http_exchange *exchange = domus_http_exchange_of(stack, request);

    return exchange != NULL ? exchange->user : "";
}

#ifdef __cplusplus
}
#endif

#endif
