/* Rings of keys: read from texts and files, strictly, and wiped (domus/http_sign.h). No error text
 * shows any part of a key, and all memory into which a key was read is overwritten in every
 * case. */
#include "protocols/http/chars.h"
#include "protocols/http/session/signing.h"

#include <nettle/base64.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAC_BYTES 3u /* bytes of a MAC of a key from which the key's name is made */

static_assert(DOMI_HTTP_64_SIZE(NAME_MAC_BYTES) == DOMUS_HTTP_KEY_NAME_BYTES, "its size");

__attribute__((format(printf, 3, 4))) static void
format_words_of_error_if_wanted(char *words, size_t size, const char *format, ...)
{
    va_list arguments;

    if (words == NULL || size == 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(words, size, format, arguments);
    va_end(arguments);
}

/* --- rings ------------------------------------------------------------------------------------ */

static void make_name_of_key(domus_http_key *key)
{
    const domi_http_mac_text text = {.kind = "domus-http-key", .purpose = "", .bytes = ""};
    unsigned char mac[DOMI_HTTP_MAC_BYTES];

    domi_http_make_mac(key, &text, mac);
    (void)domi_http_base64url_encode(key->name, mac, NAME_MAC_BYTES);
}

int domus_http_keys_add(domus_http_keys *ring, const void *bytes, size_t size)
{
    if (size < DOMUS_HTTP_KEY_LEAST || size > DOMUS_HTTP_KEY_MOST)
        return -EINVAL;
    for (uint32_t i = 0; i < ring->count; i++) {
        if (ring->keys[i].size == size && domi_http_mac_equals(ring->keys[i].bytes, bytes, size))
            return -EEXIST;
    }
    if (ring->count == DOMUS_HTTP_KEYS_MAX)
        return -ENOBUFS;
    domus_http_key *key = &ring->keys[ring->count++];
    memset(key, 0, sizeof *key);
    key->size = (uint32_t)size;
    memcpy(key->bytes, bytes, size);
    make_name_of_key(key);
    return 0;
}

void domus_http_keys_wipe(domus_http_keys *ring)
{
    explicit_bzero(ring, sizeof *ring);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Decode a key in hexadecimal digits. Returns the number of bytes; -EINVAL. */
static int64_t decode_hexadecimal_key(unsigned char *to, const char *text, size_t size)
{
    if (size % 2 != 0 || size / 2 > DOMUS_HTTP_KEY_MOST)
        return -EINVAL;
    for (size_t i = 0; i < size; i += 2) {
        int high = domi_http_value_of_hex_digit(text[i]);
        int low = domi_http_value_of_hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            return -EINVAL;
        to[i / 2] = (unsigned char)(high * 16 + low);
    }
    return (int64_t)(size / 2);
}

/* Decode a key in base64, without white space. Returns the number of bytes; -EINVAL. */
static int64_t decode_base64_key(unsigned char *to, const char *text, size_t size)
{
    uint8_t decoded[BASE64_DECODE_LENGTH(BASE64_ENCODE_RAW_LENGTH(DOMUS_HTTP_KEY_MOST))];
    struct base64_decode_ctx context;
    size_t written = sizeof decoded;
    int64_t result = -EINVAL;

    if (size > BASE64_ENCODE_RAW_LENGTH(DOMUS_HTTP_KEY_MOST) ||
        /* refused, because nettle would ignore some control characters */
        domi_http_count_text_bytes(text, size) != size)
        return -EINVAL;
    base64_decode_init(&context);
    if (base64_decode_update(&context, &written, decoded, size, text) == 1 &&
        base64_decode_final(&context) == 1 && written <= DOMUS_HTTP_KEY_MOST) {
        memcpy(to, decoded, written);
        result = (int64_t)written;
    }
    explicit_bzero(&context, sizeof context);
    explicit_bzero(decoded, sizeof decoded);
    return result;
}

static bool does_word_begin_with(const char *text, size_t size, const char *begin)
{
    return size >= strlen(begin) && memcmp(text, begin, strlen(begin)) == 0;
}

/* Add the key that a word of the text describes to the ring. Returns as domus_http_keys_add(). */
static int decode_key_in_word_and_add_it(domus_http_keys *ring, const char *word, size_t size)
{
    unsigned char bytes[DOMUS_HTTP_KEY_MOST];
    int64_t decoded = -EINVAL;

    if (does_word_begin_with(word, size, "hex:"))
        decoded = decode_hexadecimal_key(bytes, word + 4, size - 4);
    else if (does_word_begin_with(word, size, "base64:"))
        decoded = decode_base64_key(bytes, word + 7, size - 7);
    int error = decoded < 0 ? (int)decoded : domus_http_keys_add(ring, bytes, (size_t)decoded);
    explicit_bzero(bytes, sizeof bytes);
    return error;
}

static bool is_word_divider(char byte)
{
    return byte == '\n' || byte == '\r' || byte == ',' || domi_http_is_space_or_tab(byte);
}

/* Returns where the word at the start of a text with keys ends; in a comment line it is the end of
 * the line. */
static size_t find_end_of_word(const char *text, size_t size, bool is_comment)
{
    size_t end = 0;

    while (end < size && (is_comment ? text[end] != '\n' : !is_word_divider(text[end])))
        end++;
    return end;
}

static void write_error_about_key(char *words, size_t words_size, uint32_t number, int error)
{
    if (error == -ENOBUFS)
        format_words_of_error_if_wanted(words, words_size, "more than %u keys",
                                        DOMUS_HTTP_KEYS_MAX);
    else if (error == -EEXIST)
        format_words_of_error_if_wanted(words, words_size, "key %u is there already", number);
    else
        format_words_of_error_if_wanted(words, words_size,
                                        "key %u is not \"hex:\" or \"base64:\" and %u to %u bytes",
                                        number, DOMUS_HTTP_KEY_LEAST, DOMUS_HTTP_KEY_MOST);
}

static int parse_keys_of_text(const char *text, size_t size, domus_http_keys *ring, char *words,
                              size_t words_size)
{
    for (size_t at = 0; at < size;) {
        bool begins_line = at == 0 || text[at - 1] == '\n';
        bool is_comment = begins_line && text[at] == '#';
        size_t end = find_end_of_word(text + at, size - at, is_comment);
        int error =
            is_comment || end == 0 ? 0 : decode_key_in_word_and_add_it(ring, text + at, end);
        if (error != 0) {
            write_error_about_key(words, words_size, ring->count + 1, error);
            return error;
        }
        at += end + 1;
    }
    if (ring->count == 0)
        format_words_of_error_if_wanted(words, words_size, "no key");
    return ring->count == 0 ? -EINVAL : 0;
}

int domus_http_keys_draw(domus_http_keys *ring)
{
    unsigned char key[DOMUS_HTTP_KEY_LEAST];
    int error = domi_http_draw_random_bytes(key, sizeof key);

    if (error == 0)
        error = domus_http_keys_add(ring, key, sizeof key);
    explicit_bzero(key, sizeof key);
    return error;
}

int domus_http_keys_parse(const char *text, size_t size, domus_http_keys *ring, char *words,
                          size_t words_size)
{
    domus_http_keys made = {.count = 0};

    if (size > DOMUS_HTTP_KEYS_TEXT_MAX) {
        format_words_of_error_if_wanted(words, words_size, "more than %u bytes",
                                        DOMUS_HTTP_KEYS_TEXT_MAX);
        return -EMSGSIZE;
    }
    int error = parse_keys_of_text(text, size, &made, words, words_size);
    if (error == 0)
        *ring = made;
    domus_http_keys_wipe(&made);
    return error;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Check the owner and the permissions of a file with keys. Returns 0, or a negative errno. */
static int check_permissions_of_key_file(int fd, char *words, size_t words_size)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        int error = -errno;
        format_words_of_error_if_wanted(words, words_size, "%s", strerror(-error));
        return error;
    }
    const char *wrong = !S_ISREG(status.st_mode)      ? "it is no regular file"
                        : (status.st_mode & 077) != 0 ? "others may use it: chmod 600"
                        : status.st_uid != 0 && status.st_uid != geteuid()
                            ? "it belongs to somebody else"
                            : NULL;
    if (wrong != NULL)
        format_words_of_error_if_wanted(words, words_size, "%s", wrong);
    return wrong != NULL ? -EPERM : 0;
}

/* Read up to `room` bytes of a file with keys. Returns how many; a negative errno. */
static ssize_t read_bytes_of_key_file(int fd, char *to, size_t room)
{
    size_t size = 0;
    ssize_t got;

    do {
        got = read(fd, to + size, room - size);
        if (got > 0)
            size += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 ? -errno : (ssize_t)size;
}

int domus_http_keys_read(const char *path, domus_http_keys *ring, char *words, size_t words_size)
{
    char text[DOMUS_HTTP_KEYS_TEXT_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        int error = -errno;
        format_words_of_error_if_wanted(words, words_size, "%s", strerror(-error));
        return error;
    }
    int error = check_permissions_of_key_file(fd, words, words_size);
    if (error == 0) {
        ssize_t size = read_bytes_of_key_file(fd, text, sizeof text);
        if (size < 0)
            format_words_of_error_if_wanted(words, words_size, "%s", strerror((int)-size));
        error = size < 0 ? (int)size
                         : domus_http_keys_parse(text, (size_t)size, ring, words, words_size);
        explicit_bzero(text, sizeof text);
    }
    (void)close(fd);
    return error;
}
