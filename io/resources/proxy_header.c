/* Parses PROXY headers. Version 1 is one line of text, version 2 a block of a known length: 12
 * bytes of signature, the version and the command, the family, the length of the rest, the
 * addresses, and TLVs (a type of one byte, a length of two, and a value). The first byte tells
 * which version it is. */
#include "io/resources/proxy_header.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* number of bytes of a PROXY header of version 2 before the addresses */
#define FIXED_SIZE      16u
#define UNIX_NAME_BYTES 108u
#define TLV_CRC32C      3u
#define TLV_HEAD        3u /* number of bytes of a TLV (type, length and value) before its value */
#define WORDS_MAX       6  /* most words of a PROXY line of version 1 that names addresses */

static const char line_begin[] = "PROXY ";
static const unsigned char signature[12] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d,
                                            0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};

void domi_proxy_header_init(domi_proxy_header *header)
{
    *header = (domi_proxy_header){.crc = UINT32_MAX};
}

/* --- version 1 -------------------------------------------------------------------------------- */

/* Read a decimal port without leading zeros. Returns -1 if the word is no port. */
static int read_port(const char *word)
{
    int port = 0;

    if (word[0] == '\0' || (word[0] == '0' && word[1] != '\0'))
        return -1;
    for (; *word != '\0'; word++) {
        if (*word < '0' || *word > '9')
            return -1;
        port = port * 10 + (*word - '0');
        if (port > 65535)
            return -1;
    }
    return port;
}

/* Cut a PROXY line into words at single spaces. Returns their number; -1 if there are more than
 * WORDS_MAX. An empty word stands between two spaces, and is not a valid address or port. */
static int cut_line_into_words(char *line, char *words[WORDS_MAX])
{
    int count = 0;

    for (char *word = line; word != NULL; count++) {
        if (count == WORDS_MAX)
            return -1;
        words[count] = word;
        word = strchr(word, ' ');
        if (word != NULL)
            *word++ = '\0';
    }
    return count;
}

/* Read the PROXY line of version 1, which has `length` bytes without its CR and LF. */
static int read_line_of_version_1(domi_proxy_header *header, size_t length)
{
    char line[DOMI_PROXY_V1_MAX + 1];
    char *words[WORDS_MAX];
    unsigned char target[16];
    domus_endpoint client;

    memcpy(line, header->bytes, length);
    line[length] = '\0';
    if (strncmp(line, "PROXY UNKNOWN", 13) == 0 && (line[13] == '\0' || line[13] == ' '))
        return 1; /* behind the word UNKNOWN the rest of the line is ignored */
    if (strlen(line) != length || cut_line_into_words(line, words) != WORDS_MAX)
        return -EPROTO;
    if (strcmp(words[1], "TCP4") == 0)
        client = (domus_endpoint){.family = AF_INET, .size = 4};
    else if (strcmp(words[1], "TCP6") == 0)
        client = (domus_endpoint){.family = AF_INET6, .size = 16};
    else
        return -EPROTO;
    int port = read_port(words[4]);
    if (inet_pton(client.family, words[2], client.bytes) != 1 ||
        inet_pton(client.family, words[3], target) != 1 || port < 0 || read_port(words[5]) < 0)
        return -EPROTO;
    client.port = (uint16_t)port;
    header->client = client;
    return 1;
}

static int read_byte_of_line(domi_proxy_header *header, unsigned char byte)
{
    uint32_t at = header->taken;

    if (at < sizeof line_begin - 1 && byte != (unsigned char)line_begin[at])
        return -EPROTO;
    if (at == DOMI_PROXY_V1_MAX)
        return -EPROTO;
    bool is_after_cr = at > 0 && header->bytes[at - 1] == '\r';
    /* in a PROXY line CR and LF must stand together, at the end */
    if (is_after_cr != (byte == '\n'))
        return -EPROTO;
    header->bytes[at] = byte;
    header->taken++;
    return byte == '\n' ? read_line_of_version_1(header, at - 1) : 0;
}

/* --- version 2 -------------------------------------------------------------------------------- */

static bool is_local_command(const domi_proxy_header *header)
{
    return (header->bytes[12] & 0xf) == 0;
}

/* Returns the number of bytes that the addresses of a family take in a PROXY header of version 2;
 * -1 if there is no such family. */
static int get_size_of_addresses(unsigned char family)
{
    switch (family) {
    case 0x00:
        return 0;
    case 0x11:
    case 0x12:
        return 12;
    case 0x21:
    case 0x22:
        return 36;
    case 0x31:
    case 0x32:
        return 2 * UNIX_NAME_BYTES;
    default:
        return -1;
    }
}

/* Check the fixed part of a PROXY header of version 2, whose last byte has come. The command LOCAL
 * says that the proxy connects for itself: then all else in the header is ignored. */
static int read_fixed_part_of_version_2(domi_proxy_header *header)
{
    const unsigned char *bytes = header->bytes;
    uint32_t length = (uint32_t)bytes[14] << 8 | bytes[15];
    int size = is_local_command(header) ? 0 : get_size_of_addresses(bytes[13]);

    header->total = FIXED_SIZE + length;
    if (header->total > DOMI_PROXY_V2_MAX || size < 0 || length < (uint32_t)size)
        return -EPROTO;
    header->tlvs = size != 0 ? FIXED_SIZE + (uint32_t)size : header->total;
    header->tlv_begin = header->tlvs;
    return 0;
}

/* Read the client from the addresses of a PROXY header. Addresses of datagrams are ignored, because
 * this is a connection. */
static void read_client_from_addresses(domi_proxy_header *header)
{
    const unsigned char *from = header->bytes + FIXED_SIZE;
    domus_endpoint *client = &header->client;

    switch (is_local_command(header) ? 0 : header->bytes[13]) {
    case 0x11:
        *client = (domus_endpoint){
            .family = AF_INET, .size = 4, .port = (uint16_t)(from[8] << 8 | from[9])};
        memcpy(client->bytes, from, 4);
        break;
    case 0x21:
        *client = (domus_endpoint){
            .family = AF_INET6, .size = 16, .port = (uint16_t)(from[32] << 8 | from[33])};
        memcpy(client->bytes, from, 16);
        break;
    /* the abstract name of a Unix socket has no end in the header, so it counts as no name */
    case 0x31:
        client->family = AF_UNIX;
        client->size = (uint16_t)strnlen((const char *)from, UNIX_NAME_BYTES);
        memcpy(client->bytes, from, client->size);
        break;
    default:
        break;
    }
}

/* Returns the checksum CRC-32C after one more byte. Headers are short and come once for each
 * connection, so a table would not pay. */
static uint32_t add_byte_to_crc(uint32_t crc, unsigned char byte)
{
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++)
        crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
    return crc;
}

/* Read the byte at the offset `at`, which belongs to the TLVs (type, length and value). Returns the
 * byte as the checksum counts it; -EPROTO if a TLV would end behind the header, or if a checksum
 * has not 4 bytes or is the second one. */
static int read_byte_of_tlv(domi_proxy_header *header, uint32_t at, unsigned char byte)
{
    uint32_t index = at - header->tlv_begin;
    int seen = byte;

    if (index < TLV_HEAD) {
        header->tlv[index] = byte;
        if (index == 0 && header->total - at < TLV_HEAD)
            return -EPROTO;
        if (index == TLV_HEAD - 1) {
            header->tlv_end = at + 1 + ((uint32_t)header->tlv[1] << 8 | header->tlv[2]);
            if (header->tlv_end > header->total)
                return -EPROTO;
            if (header->tlv[0] == TLV_CRC32C) {
                if (header->has_crc || header->tlv_end != at + 1 + 4)
                    return -EPROTO;
                header->has_crc = true;
            }
        }
    } else if (header->tlv[0] == TLV_CRC32C) {
        header->crc_told = header->crc_told << 8 | byte;
        seen = 0;
    }
    /* the present TLV is complete, and the next one begins behind it */
    if (header->tlv_end == at + 1) {
        header->tlv_begin = at + 1;
        header->tlv_end = 0;
    }
    return seen;
}

/* Check the fixed part of a PROXY header byte by byte, so that other data is refused with its first
 * bytes. */
static bool is_fixed_byte_right(uint32_t at, unsigned char byte)
{
    if (at < sizeof signature)
        return byte == signature[at];
    /* byte 12 holds the version, 2, and the command, LOCAL or PROXY */
    return at != 12 || byte == 0x20 || byte == 0x21;
}

static int read_byte_of_version_2(domi_proxy_header *header, unsigned char byte)
{
    uint32_t at = header->taken;
    int seen = byte;

    if (!is_fixed_byte_right(at, byte))
        return -EPROTO;
    if (at < DOMI_PROXY_KEPT)
        header->bytes[at] = byte;
    if (at >= FIXED_SIZE && at >= header->tlvs)
        seen = read_byte_of_tlv(header, at, byte);
    if (seen < 0)
        return seen;
    header->crc = add_byte_to_crc(header->crc, (unsigned char)seen);
    header->taken++;
    if (header->taken == FIXED_SIZE && read_fixed_part_of_version_2(header) != 0)
        return -EPROTO;
    if (header->taken < FIXED_SIZE || header->taken < header->total)
        return 0;
    if (header->has_crc && header->crc_told != ~header->crc)
        return -EPROTO;
    read_client_from_addresses(header);
    return 1;
}

/* --- both ------------------------------------------------------------------------------------- */

int domi_proxy_header_read_bytes(domi_proxy_header *header, const void *bytes, size_t size,
                                 size_t *ret_taken)
{
    const unsigned char *from = bytes;
    int result = 0;
    size_t taken = 0;

    while (taken < size && result == 0) {
        bool is_line = (header->taken != 0 ? header->bytes[0] : from[0]) == line_begin[0];
        result = is_line ? read_byte_of_line(header, from[taken])
                         : read_byte_of_version_2(header, from[taken]);
        taken++;
    }
    *ret_taken = taken;
    return result;
}
