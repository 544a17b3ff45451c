/* Credentials of a request: Basic (RFC 7617) and Bearer (RFC 6750), as functions, and as a part of
 * a chain.
 *
 *     static const domus_http_user users[] = {
 *         {.name = "ann", .sha256 = "9f86d0..."},
 *         {.name = NULL},
 *     };
 *     static const domus_http_auth auth = {
 *         .realm = "site", .schemes = DOMUS_HTTP_BASIC, .users = users};
 *     ... {&domus_http_authenticate, &auth} in a chain, or among the parts of a row
 *
 * The part answers 401 with WWW-Authenticate to a request without credentials, with wrong ones and
 * with two fields Authorization; all others go on, and the exchange has the name of the user
 * (domus_http_exchange.user).
 *
 * **Secrets** are compared by their SHA-256, byte by byte and to the end, and the whole table is
 * gone through: so the time of an answer tells nothing about how much of a guess was right, nor
 * which name is there. A table may have the SHA-256 of a secret in place of the secret, so that
 * whoever reads the program or its configuration does not know it; that is right for random tokens
 * and long passphrases. It is not enough for passwords that people choose, which a thief of the
 * table tries by the billion: keep those with a slow hash (scrypt, Argon2) elsewhere, and let
 * `verify` ask an actor that computes it on a helper thread (domus/blocking.h).
 *
 * Basic sends the password with each request, and Bearer the token: use both behind TLS alone.
 * Limit how often an address may try by the part domus_http_limits before this one.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_AUTH_H
#define DOMUS_HTTP_AUTH_H

#include <domus/http_chain.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_PASSWORD_MAX 128u  /* most bytes of a password of Basic */
#define DOMUS_HTTP_TOKEN_MAX    4096u /* most bytes of a token of Bearer */
#define DOMUS_HTTP_REALM_MAX    64u   /* most bytes of the name of a realm */

/* --- functions -------------------------------------------------------------------------------- */

/* The user's name and the password of Basic. Both end with a NUL, and have no control
 * characters. */
typedef struct domus_http_basic {
    char user[DOMUS_HTTP_USER_MAX + 1];
    char password[DOMUS_HTTP_PASSWORD_MAX + 1];
} domus_http_basic;

/* Read "Authorization: Basic ..." of the fields of a request. Clear the result with
 * explicit_bzero(3) when it is no longer needed.
 *
 * Returns 0; -ENOENT without the field, or for another scheme; -EINVAL for one that is wrong: two
 * such fields, no base64 (white space, missing padding), no ':', control characters; -EMSGSIZE for
 * a name or a password that is too long. */
DOMUS_API int domus_http_read_basic(domus_slice fields, domus_http_basic *ret_basic);

/* Read the token of "Authorization: Bearer ...". The slice owns nothing, and is valid as long as
 * the fields.
 *
 * Returns 0; -ENOENT without the field, or for another scheme; -EINVAL for two such fields, for an
 * empty token, and for one with other characters than letters, digits, "-._~+/" and "=" at its
 * end; -EMSGSIZE beyond DOMUS_HTTP_TOKEN_MAX. */
DOMUS_API int domus_http_read_bearer(domus_slice fields, domus_slice *ret_token);

/* Returns whether a text that a peer has given equals a secret. The time that this takes depends on
 * the sizes alone. */
DOMUS_API bool domus_http_is_secret(const void *given, size_t given_size, const void *secret,
                                    size_t secret_size);

/* Returns whether a text has the SHA-256 `sha256`, which is 64 small hexadecimal digits. */
DOMUS_API bool domus_http_has_sha256(const void *given, size_t given_size, const char *sha256);

/* --- the part --------------------------------------------------------------------------------- */

/* Schemes of credentials, of which several may be allowed. */
enum {
    DOMUS_HTTP_BASIC = 1,
    DOMUS_HTTP_BEARER = 2,
};

/* A user who may come in. The last one of a table has a NULL name. */
typedef struct domus_http_user {
    /* name of the user, up to DOMUS_HTTP_USER_MAX bytes; with Basic without ':' */
    const char *name;
    const char *secret; /* password or token of the user; NULL: `sha256` stands for it */
    /* SHA-256 of the secret, 64 small hexadecimal digits; NULL: `secret` is given */
    const char *sha256;
} domus_http_user;

/* The credentials of a request, which are valid during the call that gets them. */
typedef struct domus_http_credentials {
    unsigned scheme;  /* scheme of the credentials, DOMUS_HTTP_BASIC or DOMUS_HTTP_BEARER */
    const char *user; /* name of the user with Basic; NULL with Bearer */
    /* the password of Basic or the token of Bearer, which no NUL needs to follow */
    const char *secret;
    size_t secret_size; /* size of that password or token in bytes */
} domus_http_credentials;

/* Options of the part domus_http_authenticate. */
typedef struct domus_http_auth {
    /* name of the realm, 1..DOMUS_HTTP_REALM_MAX bytes, printable, without '"' and '\' */
    const char *realm;
    /* the schemes that are accepted, DOMUS_HTTP_BASIC, DOMUS_HTTP_BEARER or both */
    unsigned schemes;
    /* table of the users who may come in; NULL: `verify` decides alone */
    const domus_http_user *users;
    /* A function that decides about credentials that no row of `users` has. It sets the user of the
     * exchange (domus_http_set_user()). Returns 0 for credentials that are right; -EACCES for wrong
     * ones, and then the peer gets 401; DOMUS_PARKED, as domus_ask() has returned it: the resumed
     * function decides, and ends with domus_http_go_on(), or with domus_http_unauthorized(). Any
     * other negative errno lets the request fail with it. NULL: credentials that no row has are
     * wrong. */
    int (*verify)(domus_stack *stack, domus_http_exchange *exchange,
                  const domus_http_credentials *credentials, const void *context);
    const void *context; /* argument that `verify` gets */
} domus_http_auth;

DOMUS_API extern const domus_http_part domus_http_authenticate;

/* Answer 401 with WWW-Authenticate, from a resumed function or a handler. `is_wrong` says that
 * credentials were given, and are wrong. Returns 0; or a negative errno, as domus_reply(). */
DOMUS_API int domus_http_unauthorized(domus_stack *stack, const domus_http_auth *auth,
                                      bool is_wrong);

#ifdef __cplusplus
}
#endif

#endif
