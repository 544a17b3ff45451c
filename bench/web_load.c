/* This file makes requests in HTTP/1.1, and checks the answers (web_load.h). */
#include "bench/web_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char status[] = "HTTP/1.1 200 OK\r\n";

/* Check the head of an answer. Returns the head's size in bytes; 0: its end has not come yet;
 * -EBADMSG. */
static int check_head_of_answer(const struct web_load *load, const char *bytes, size_t size)
{
    size_t begin = sizeof status - 1;

    if (memcmp(bytes, status, size < begin ? size : begin) != 0)
        return -EBADMSG;
    size_t most = size < REQUEST_LOAD_KEPT_MAX ? size : REQUEST_LOAD_KEPT_MAX;
    const char *end = memmem(bytes, most, "\r\n\r\n", 4);
    if (end == NULL)
        return size < REQUEST_LOAD_KEPT_MAX ? 0 : -EBADMSG;
    size_t head = (size_t)(end - bytes) + 4;
    return memmem(bytes, head, load->length, strlen(load->length)) != NULL ? (int)head : -EBADMSG;
}

/* Check the bytes of an answer. `place` is 0 in the head, and in the body the number of the next
 * byte, from 1 on. */
static int check_bytes_of_answer(const void *context, uint64_t *place, const char *bytes,
                                 size_t size, bool *ret_ends)
{
    const struct web_load *load = context;

    if (*place == 0) {
        int head = check_head_of_answer(load, bytes, size);
        *place = head > 0;
        *ret_ends = head > 0 && load->body_size == 0;
        return head;
    }
    size_t at = (size_t)*place - 1;
    size_t left = load->body_size - at;
    size_t part = size < left ? size : left;
    if (memcmp(bytes, load->body + at, part) != 0)
        return -EBADMSG;
    *place += part;
    *ret_ends = part == left;
    return (int)part;
}

void web_load_make_requests(struct web_load *load, const char *path, const char *body,
                            size_t body_size)
{
    *load = (struct web_load){.body = body, .body_size = body_size};
    load->kind.context = load;
    load->kind.check = check_bytes_of_answer;
    load->kind.request_size =
        (uint32_t)snprintf(load->kind.request, sizeof load->kind.request,
                           "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    snprintf(load->length, sizeof load->length, "\r\nContent-Length: %zu\r\n", body_size);
}
