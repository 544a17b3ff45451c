/* Reads the headers of a message: lines "Name: value" behind a first line, which may have a status.
 * Headers from a server, which the stage has checked, end with an empty line; headers that the user
 * has put into a message may end anywhere, and nothing is read beyond their end. */
#include "protocols/nats/nats.h"

#include <errno.h>
#include <string.h>

#define FIRST      "NATS/1.0" /* the text with which each block of headers begins */
#define FIRST_SIZE 8u

bool domi_nats_is_block_of_headers(domi_nats_bytes headers)
{
    const char *data = headers.data;

    return headers.size >= FIRST_SIZE + 4 && memcmp(data, FIRST, FIRST_SIZE) == 0 &&
           (data[FIRST_SIZE] == '\r' || data[FIRST_SIZE] == ' ') &&
           memcmp(data + headers.size - 4, "\r\n\r\n", 4) == 0;
}

uint16_t domi_nats_status_of_headers(domi_nats_bytes headers)
{
    const char *at = headers.data + FIRST_SIZE + 1;
    uint32_t status = 0;

    if (headers.size < FIRST_SIZE + 4 || at[-1] != ' ')
        return 0;
    for (int i = 0; i < 3; i++) {
        uint32_t digit = (unsigned char)at[i] - (uint32_t)'0';
        if (digit > 9)
            return 0;
        status = status * 10 + digit;
    }
    return status >= 100 ? (uint16_t)status : 0;
}

/* Find the line that begins at `at` in a block of headers. Returns where the next line begins, or
 * the size of the block if there is no next line; `ret_line` gets the bytes of the found line. */
static uint32_t find_next_header_line(domus_slice headers, uint32_t at, domi_nats_bytes *ret_line)
{
    const char *data = domus_slice_data(headers);
    const char *end = at < headers.size ? memchr(data + at, '\n', headers.size - at) : NULL;

    if (end == NULL) {
        *ret_line = (domi_nats_bytes){data, 0};
        return headers.size;
    }
    uint32_t size = (uint32_t)(end - data) - at;
    *ret_line = (domi_nats_bytes){data + at, size != 0 && end[-1] == '\r' ? size - 1 : size};
    return at + size + 1;
}

/* Make a slice of the headers' bytes from `begin` to `end`, without spaces around it. */
static domus_slice make_trimmed_slice(domus_slice headers, const char *begin, const char *end)
{
    while (begin != end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end != begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    headers.offset += (uint32_t)(begin - domus_slice_data(headers));
    headers.size = (uint32_t)(end - begin);
    return headers;
}

int domus_nats_header_next(const domus_nats_message *message, uint32_t *from, domus_slice *ret_name,
                           domus_slice *ret_value)
{
    domus_slice headers = domus_nats_headers(message);
    domi_nats_bytes line;

    if (*from == 0)
        *from = find_next_header_line(headers, 0, &line);
    while (*from < headers.size) {
        *from = find_next_header_line(headers, *from, &line);
        const char *colon = line.size != 0 ? memchr(line.data, ':', line.size) : NULL;
        if (colon == NULL)
            continue;
        *ret_name = make_trimmed_slice(headers, line.data, colon);
        *ret_value = make_trimmed_slice(headers, colon + 1, line.data + line.size);
        return 0;
    }
    return -ENOENT;
}

int domus_nats_header(const domus_nats_message *message, const char *name, uint32_t *from,
                      domus_slice *ret_value)
{
    domus_slice found, value;
    uint32_t at = from != NULL ? *from : 0;
    int error;

    do {
        error = domus_nats_header_next(message, &at, &found, &value);
    } while (error == 0 && !domus_slice_equals(found, name, strlen(name)));
    if (from != NULL)
        *from = at;
    if (error == 0)
        *ret_value = value;
    return error;
}

domus_slice domus_nats_description(const domus_nats_message *message)
{
    domus_slice headers = domus_nats_headers(message);
    domi_nats_bytes line;

    (void)find_next_header_line(headers, 0, &line);
    if (message->status == 0 || line.size < FIRST_SIZE + 4)
        return domi_nats_empty_slice();
    return make_trimmed_slice(headers, line.data + FIRST_SIZE + 4, line.data + line.size);
}

void domi_nats_copy_printable(char *text, size_t room, domi_nats_bytes bytes)
{
    size_t size = bytes.size < room - 1 ? bytes.size : room - 1;

    for (size_t i = 0; i < size; i++)
        text[i] = bytes.data[i] >= ' ' && bytes.data[i] <= '~' ? bytes.data[i] : '?';
    text[size] = '\0';
}
