/* Headers of the PROXY protocol: valid ones in every split, and all others, which are refused. Each
 * truncated header stays incomplete, and each flipped byte gives an error, another valid header or
 * an incomplete one, and no byte behind the header is read. */
#include "io/resources/proxy_header.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

typedef struct sample {
    const char *bytes;
    size_t size;
    /* expected text of the client's endpoint; "unnamed": the header names none; NULL: the header is
     * refused */
    const char *client;
} sample;

#define SAMPLE(text, who)                                                                          \
    {                                                                                              \
        .bytes = (text), .size = sizeof(text) - 1, .client = (who)                                 \
    }

/* from 192.0.2.1:12345 to 198.51.100.2:443 */
#define V4     "\xc0\0\2\1\xc6\x33\x64\2\x30\x39\x01\xbb"
#define HALF6  "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0"
#define V6     HALF6 "\1" HALF6 "\2\x30\x39\x01\xbb"
#define ZERO27 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define PATH   "/run/a\0\0" ZERO27 ZERO27 ZERO27 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const sample valid[] = {
    SAMPLE("PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n", "192.0.2.1:12345"),
    SAMPLE("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535"),
    SAMPLE("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0"),
    SAMPLE("PROXY TCP6 2001:db8::1 2001:db8::2 12345 443\r\n", "[2001:db8::1]:12345"),
    SAMPLE("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
           "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
           "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
    SAMPLE("PROXY UNKNOWN\r\n", "unnamed"),
    SAMPLE("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
           "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
           "unnamed"), /* the longest line that is allowed: 107 bytes */
    SAMPLE("PROXY UNKNOWN \0 \x80\r\n", "unnamed"),
    SAMPLE(SIGNATURE "\x20\0\0\0", "unnamed"), /* a header with the command LOCAL */
    /* the command LOCAL, behind which everything else is ignored */
    SAMPLE(SIGNATURE "\x20\x99\0\5abcde", "unnamed"),
    SAMPLE(SIGNATURE "\x21\0\0\0", "unnamed"),                /* a header with the family UNSPEC */
    SAMPLE(SIGNATURE "\x21\x11\0\x0c" V4, "192.0.2.1:12345"), /* a header for TCP over IPv4 */
    SAMPLE(SIGNATURE "\x21\x12\0\x0c" V4, "unnamed"),         /* a header for UDP over IPv4 */
    SAMPLE(SIGNATURE "\x21\x21\0\x24" V6, "[2001:db8::1]:12345"),
    SAMPLE(SIGNATURE "\x21\x31\0\xd8" PATH PATH, "unix:/run/a"),
    /* a header with TLVs (type, length, value) */
    SAMPLE(SIGNATURE "\x21\x11\0\x16" V4 "\4\0\0\x01\0\4h2h2", "192.0.2.1:12345"),
    /* a header whose CRC is wrong */
    SAMPLE(SIGNATURE "\x21\x11\0\x13" V4 "\3\0\4\x88\x4f\xe6\xd2", NULL),
};

#define VALID (sizeof valid / sizeof valid[0])

/* Take a header in two pieces of `size` bytes together, with a cut at `cut`. Returns the last
 * result; `ret_taken` gets the number of all bytes taken. */
static int take_header_in_two_pieces(const char *bytes, size_t size, size_t cut,
                                     domi_proxy_header *header, size_t *ret_taken)
{
    size_t taken;
    /* Copies of the exact sizes, so that the sanitizer sees a read of one byte too many. */
    char *first = malloc(cut + 1), *second = malloc(size - cut + 1);

    memcpy(first, bytes, cut);
    memcpy(second, bytes + cut, size - cut);
    domi_proxy_header_init(header);
    int result = domi_proxy_header_read_bytes(header, first, cut, ret_taken);
    if (result == 0) {
        ck_assert_uint_eq(*ret_taken, cut);
        result = domi_proxy_header_read_bytes(header, second, size - cut, &taken);
        *ret_taken += taken;
    }
    free(first);
    free(second);
    return result;
}

static void expect_endpoint_of_client(const domi_proxy_header *header, const char *expected)
{
    char text[DOMUS_ENDPOINT_TEXT_MAX];

    (void)domus_endpoint_text(&header->client, text, sizeof text);
    ck_assert_str_eq(text, expected);
}

DOMT_TEST(valid_headers_are_taken_in_every_split)
{
    domi_proxy_header header;
    size_t taken;

    for (size_t i = 0; i < VALID; i++) {
        if (valid[i].client == NULL)
            continue;
        char more[2048];
        memcpy(more, valid[i].bytes, valid[i].size);
        memcpy(more + valid[i].size, "rest", 4);
        for (size_t cut = 0; cut <= valid[i].size; cut++) {
            ck_assert_int_eq(
                take_header_in_two_pieces(more, valid[i].size + 4, cut, &header, &taken), 1);
            /* only the header's bytes are taken; those behind it are the client's */
            ck_assert_uint_eq(taken, valid[i].size);
            expect_endpoint_of_client(&header, valid[i].client);
        }
    }
}

DOMT_TEST(a_header_that_is_cut_off_is_not_done)
{
    domi_proxy_header header;
    size_t taken;

    for (size_t i = 0; i < VALID; i++) {
        for (size_t size = 0; size < valid[i].size; size++) {
            ck_assert_int_eq(
                take_header_in_two_pieces(valid[i].bytes, size, size / 2, &header, &taken), 0);
            ck_assert_uint_eq(taken, size);
        }
    }
}

/* Returns whether these bytes are a complete header, and checks what holds for any bytes. */
static bool is_complete_header(const char *bytes, size_t size, size_t cut)
{
    domi_proxy_header header;
    size_t taken = 0;
    int result = take_header_in_two_pieces(bytes, size, cut, &header, &taken);

    ck_assert(result == 0 || result == 1 || result == -EPROTO);
    ck_assert_uint_le(taken, size);
    ck_assert_uint_le(header.taken, DOMI_PROXY_V2_MAX);
    if (result == 1)
        ck_assert_uint_eq(taken, header.taken);
    return result == 1;
}

/* Each byte of each header is replaced by each other value. */
DOMT_TEST(header_with_a_changed_byte_in_its_begin_is_refused)
{
    char bytes[1024];

    for (size_t i = 0; i < VALID; i++) {
        for (size_t at = 0; at < valid[i].size; at++) {
            for (int value = 0; value < 256; value++) {
                memcpy(bytes, valid[i].bytes, valid[i].size);
                bytes[at] = (char)value;
                bool is = is_complete_header(bytes, valid[i].size, at);
                bool is_begin = at < 5 || (valid[i].bytes[0] == '\r' && at < 12);
                if (is_begin && bytes[at] != valid[i].bytes[at])
                    ck_assert_msg(!is, "sample %zu, byte %zu, value %d", i, at, value);
            }
        }
    }
}

DOMT_TEST(random_bytes_behind_a_valid_begin_give_a_sound_result)
{
    domi_random random;
    char bytes[512];

    domi_random_init(&random, 12);
    for (int round = 0; round < 200000; round++) {
        const sample *from = &valid[domi_random_below(&random, VALID)];
        size_t keep = (size_t)domi_random_below(&random, from->size + 1);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)domi_random_next_bits(&random);
        memcpy(bytes, from->bytes, keep);
        (void)is_complete_header(bytes, sizeof bytes,
                                 (size_t)domi_random_below(&random, sizeof bytes));
    }
}

static void expect_header_refused(const char *bytes, size_t size)
{
    domi_proxy_header header;
    size_t taken;

    ck_assert_msg(take_header_in_two_pieces(bytes, size, 0, &header, &taken) == -EPROTO, "%s",
                  bytes);
    ck_assert_msg(take_header_in_two_pieces(bytes, size, size / 2, &header, &taken) == -EPROTO,
                  "%s", bytes);
}

DOMT_TEST(header_lines_that_are_nearly_right_are_refused)
{
    static const char *const lines[] = {
        "GET / HTTP/1.1\r\n",
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY  UNKNOWN\r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXY UNKNOWN\n",
        "PROXY UNKNOWN\r\r\n",
        "PROXY UNKNOWN a\rb\r\n",
        "proxy UNKNOWN\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
        "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 99999999999999999999 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2 1 2\r\n",
        "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.02.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 ::1 ::2 1 2\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP6 ::1%1 ::2 1 2\r\n",
        "PROXY TCP6 :::1 ::2 1 2\r\n",
        "PROXY TCP4 localhost 192.0.2.2 1 2\r\n",
    };
    char longest[200];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        expect_header_refused(lines[i], strlen(lines[i]));
    expect_header_refused("PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n", 37);
    /* A line of 108 bytes, one more than allowed, and a line without an end. */
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "PROXY UNKNOWN ", 14);
    expect_header_refused(longest, sizeof longest);
    memcpy(longest + 106, "\r\n", 2);
    expect_header_refused(longest, 108);
}

DOMT_TEST(binary_headers_that_are_nearly_right_are_refused)
{
    expect_header_refused(SIGNATURE "\x11\x11\0\x0c" V4, 28); /* the binary form with version 1 */
    expect_header_refused(SIGNATURE "\x31\x11\0\x0c" V4, 28); /* the binary form with version 3 */
    expect_header_refused(SIGNATURE "\x22\x11\0\x0c" V4, 28); /* a header with an unknown command */
    expect_header_refused(SIGNATURE "\x21\x41\0\x0c" V4, 28); /* a header with an unknown family */
    /* a header with an unknown protocol */
    expect_header_refused(SIGNATURE "\x21\x13\0\x0c" V4, 28);
    /* a length that is shorter than the addresses */
    expect_header_refused(SIGNATURE "\x21\x11\0\x0b" V4, 28);
    /* the family says IPv6, and there is only room for IPv4 addresses */
    expect_header_refused(SIGNATURE "\x21\x21\0\x0c" V4, 28);
    /* a length of 4,112 bytes, more than is allowed */
    expect_header_refused(SIGNATURE "\x21\x11\x10\0" V4, 28);
    /* the largest length that can be written */
    expect_header_refused(SIGNATURE "\x20\0\xff\xff", 16);
    /* a header that ends within a TLV's length */
    expect_header_refused(SIGNATURE "\x21\x11\0\x0d" V4 "\4", 29);
    /* a header that ends before a TLV's value */
    expect_header_refused(SIGNATURE "\x21\x11\0\x0f" V4 "\4\0\1", 31);
    /* a checksum that has two bytes instead of four */
    expect_header_refused(SIGNATURE "\x21\x11\0\x11" V4 "\3\0\2xx", 33);
}

DOMT_TEST(a_header_may_be_as_long_as_its_bound)
{
    static char bytes[DOMI_PROXY_V2_MAX + 1];
    domi_proxy_header header;
    size_t taken;
    const uint32_t length = DOMI_PROXY_V2_MAX - 16, value = length - 12 - 3;

    memcpy(bytes, SIGNATURE "\x21\x11", 14);
    bytes[14] = (char)(length >> 8);
    bytes[15] = (char)length;
    memcpy(bytes + 16, V4, 12);
    bytes[28] = 4;
    bytes[29] = (char)(value >> 8);
    bytes[30] = (char)value;
    ck_assert_int_eq(take_header_in_two_pieces(bytes, sizeof bytes, 300, &header, &taken), 1);
    ck_assert_uint_eq(taken, DOMI_PROXY_V2_MAX);
    expect_endpoint_of_client(&header, "192.0.2.1:12345");
}

/* Compute the CRC-32C of the whole header, with zeros for the four bytes of the checksum, by other
 * code than the library's. The check value of CRC-32C is known: "123456789" has e3069283. */
static uint32_t crc_32c_of_header(const char *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

DOMT_TEST(checksum_of_a_proxy_header_is_checked)
{
    char bytes[] = SIGNATURE "\x21\x11\0\x17" V4 "\3\0\4\0\0\0\0\4\0\1x";
    domi_proxy_header header;
    size_t taken;

    ck_assert_uint_eq(crc_32c_of_header("123456789", 9), 0xe3069283u);
    uint32_t crc = crc_32c_of_header(bytes, sizeof bytes - 1);
    for (int i = 0; i < 4; i++)
        bytes[31 + i] = (char)(crc >> (24 - 8 * i));
    ck_assert_int_eq(take_header_in_two_pieces(bytes, sizeof bytes - 1, 20, &header, &taken), 1);
    expect_endpoint_of_client(&header, "192.0.2.1:12345");
    for (size_t at = 16; at < sizeof bytes - 1; at++) { /* the checksum detects each changed byte */
        /* byte 28 is the type of the checksum's TLV: with another type the header has no
         * checksum */
        if (at == 28)
            continue;
        bytes[at] ^= 0x40;
        ck_assert_int_ne(take_header_in_two_pieces(bytes, sizeof bytes - 1, 20, &header, &taken),
                         1);
        bytes[at] ^= 0x40;
    }
}

DOMT_SUITE(60)
