/* Signed values: text that a server hands to a client, for instance in a cookie or a link, and
 * believes when it comes back.
 *
 *     domus_http_keys keys = {0};
 *     char words[DOMUS_HTTP_KEYS_WORDS];
 *     int error = domus_http_keys_read("/run/credentials/web/keys", &keys, words, sizeof words);
 *     ...
 *     error = domus_http_sign(&keys, "unsubscribe", now + 86400, mail, strlen(mail), &link);
 *     ...
 *     int64_t size = domus_http_unsign(&keys, "unsubscribe", now, text, text_size, to, sizeof to);
 *
 * A signed value is "KEY.EXPIRY.VALUE.MAC", of letters, digits, "-", "_" and "." alone, so it may
 * stand in a cookie, a query or a path as it is. The value can be read by everybody who has it: it
 * is signed, not hidden. The MAC is HMAC-SHA256 (RFC 2104) over the purpose and all that stands
 * before it. So a value that was signed for one purpose is wrong for every other one, and a client
 * can change neither the value nor the time at which it expires. It is compared in a time that does
 * not depend on it. There is exactly one spelling of each signed value.
 *
 * **Keys** are a ring of up to DOMUS_HTTP_KEYS_MAX. The first one signs, and all of them verify. To
 * change the key, put a new one before the others, and take the old ones away when what they have
 * signed has expired. KEY names the key by four characters that are made of it and do not tell
 * anything of it. Each key has DOMUS_HTTP_KEY_LEAST to DOMUS_HTTP_KEY_MOST bytes, as made by
 * `openssl rand -base64 32`: bytes of chance, never a pass phrase.
 *
 * Time is handed in, in seconds since 1970, so that a test can choose it: time(NULL) in a program.
 *
 * Thread-safety: any thread. Any number of threads may use one ring, which does not change
 * meanwhile; a ring is copied as one likes, and each copy is wiped by its owner. */
#ifndef DOMUS_HTTP_SIGN_H
#define DOMUS_HTTP_SIGN_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- keys ------------------------------------------------------------------------------------- */

#define DOMUS_HTTP_KEY_LEAST     32u /* least and most bytes of a key */
#define DOMUS_HTTP_KEY_MOST      64u
#define DOMUS_HTTP_KEYS_MAX      8u    /* most keys of a ring of keys */
#define DOMUS_HTTP_KEYS_TEXT_MAX 8192u /* most bytes of a text, or a file, that holds keys */
/* bytes of room for the words that say what is wrong with a text of keys */
#define DOMUS_HTTP_KEYS_WORDS     128u
#define DOMUS_HTTP_KEY_NAME_BYTES 4u

/* A key of a ring. Its fields are for the library alone. */
typedef struct domus_http_key {
    char name[DOMUS_HTTP_KEY_NAME_BYTES];
    uint32_t size;
    unsigned char bytes[DOMUS_HTTP_KEY_MOST];
} domus_http_key;

/* A ring of keys. `{0}` is one without keys, which signs nothing and verifies nothing. */
typedef struct domus_http_keys {
    uint32_t count;
    domus_http_key keys[DOMUS_HTTP_KEYS_MAX];
} domus_http_keys;

/* Add a key behind those of the ring. Returns 0; -EINVAL for a wrong size; -EEXIST for a key that
 * the ring has already; -ENOBUFS at DOMUS_HTTP_KEYS_MAX. */
DOMUS_API int domus_http_keys_add(domus_http_keys *ring, const void *key, size_t size);

/* Add a key that is drawn here (getrandom(2)): what it signs is valid until the program ends, which
 * is right for a first try, and for one server alone. Returns as domus_http_keys_add(); the error
 * of getrandom(2). */
DOMUS_API int domus_http_keys_draw(domus_http_keys *ring);

/* Set a ring to the keys of a text, such as the value of a key of the configuration. Each is
 * "base64:" with the standard alphabet and its padding, or "hex:" with digits of either case;
 * spaces, commas and line ends divide them, and a line that begins with '#' is left out. Nothing
 * else is accepted, because a key that was read in another way than it was meant is a weak one.
 *
 * If `words` is not NULL, it gets what is wrong, without any part of a key, NUL-terminated and cut
 * to `words_size` bytes.
 * Returns 0; -EINVAL for a wrong text, and one without keys; -EMSGSIZE above
 * DOMUS_HTTP_KEYS_TEXT_MAX; otherwise as domus_http_keys_add(). With an error the ring is as it
 * was. */
DOMUS_API int domus_http_keys_parse(const char *text, size_t size, domus_http_keys *ring,
                                    char *words, size_t words_size);

/* Set a ring to the keys of a file. It is a regular file that belongs to the user of the process or
 * to root, and that neither its group nor others may use (as with mode 0600 or 0400). This waits
 * for the disk: call it before the system starts, or as blocking work (domus/blocking.h).
 *
 * Returns as domus_http_keys_parse(); -EPERM for a file that others may use or that belongs to
 * somebody else; the errors of open(2) and read(2). */
DOMUS_API int domus_http_keys_read(const char *path, domus_http_keys *ring, char *words,
                                   size_t words_size);

/* Overwrite all keys of a ring, which is `{0}` then. */
DOMUS_API void domus_http_keys_wipe(domus_http_keys *ring);

/* --- values ----------------------------------------------------------------------------------- */

#define DOMUS_HTTP_SIGNED_MAX  8192u /* most bytes of a value that is signed */
#define DOMUS_HTTP_PURPOSE_MAX 128u  /* most bytes of a purpose for which a value is signed */
/* argument `expires` for a value that never expires */
#define DOMUS_HTTP_NEVER INT64_MAX
/* The most bytes of the signed value of `size` bytes. */
#define DOMUS_HTTP_SIGNED_SIZE(size)                                                               \
    (DOMUS_HTTP_KEY_NAME_BYTES + 19u + 3u + 43u + ((size)*4u + 2u) / 3u)

/* Append a value, signed by the first key for a purpose, such as "unsubscribe", which is valid
 * before the second `expires`. The value may be empty.
 *
 * Returns as domus_append(); -ENOKEY for a ring without keys; -EINVAL for a purpose that is empty
 * or longer than DOMUS_HTTP_PURPOSE_MAX, and for an `expires` below 1; -EMSGSIZE for a value of
 * more than DOMUS_HTTP_SIGNED_MAX bytes. Only errors of domus_append() are kept by the appender. */
DOMUS_API int domus_http_sign(const domus_http_keys *ring, const char *purpose, int64_t expires,
                              const void *value, size_t size, domus_appender *to);

/* Verify a signed value that somebody has sent, and write the value to `to`, which has room for
 * `room` bytes. Nothing is written before the MAC was found right.
 *
 * Returns the bytes of the value; -EBADMSG when it is not a value that a key of the ring has signed
 * for this purpose; -EKEYEXPIRED when it is, and `now` is `expires` or later; -EMSGSIZE when the
 * value does not fit into the room. */
DOMUS_API int64_t domus_http_unsign(const domus_http_keys *ring, const char *purpose, int64_t now,
                                    const char *text, size_t text_size, void *to, size_t room);

#ifdef __cplusplus
}
#endif

#endif
