/* This file makes requests in RESP, and checks the replies (kv_load.h). The key is the only part of
 * a request that changes, so only its digits are written for each request. */
#include "bench/kv_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KEY        "key:0000000000"
#define KEY_DIGITS 10u
#define VALUE      "0123456789abcdef0123456789abcdef"

static void write_next_key_into_request(void *context, char *request)
{
    struct kv_load *load = context;
    char *to = request + load->digits_at;
    uint32_t number = load->next_key;

    for (uint32_t i = KEY_DIGITS; i > 0; i--, number /= 10)
        to[i - 1] = (char)('0' + number % 10);
    load->next_key = (load->next_key + 7919) % load->keys;
}

static int check_reply_to_request(const void *context, uint64_t *place, const char *bytes,
                                  size_t size, bool *ret_ends)
{
    const struct kv_load *load = context;

    (void)place;
    *ret_ends = true;
    if (load->reply_size != 0) {
        if (memcmp(bytes, load->reply, size < load->reply_size ? size : load->reply_size) != 0)
            return -EBADMSG;
        return size < load->reply_size ? 0 : (int)load->reply_size;
    }
    if (bytes[0] != ':')
        return -EBADMSG;
    for (size_t i = 1; i < size; i++) {
        if (bytes[i] >= '0' && bytes[i] <= '9')
            continue;
        if (bytes[i] != '\r' || i == 1)
            return -EBADMSG;
        return i + 1 == size ? 0 : bytes[i + 1] == '\n' ? (int)i + 2 : -EBADMSG;
    }
    return size > 24 ? -EBADMSG : 0;
}

void kv_load_make_requests(struct kv_load *load, const struct kv_load_row *row, uint32_t keys)
{
    char words[REQUEST_LOAD_REQUEST_MAX], body[REQUEST_LOAD_REQUEST_MAX] = "";
    char *request = load->kind.request;
    size_t size = 0;
    int count = 0;
    char *state = NULL;

    *load = (struct kv_load){.keys = keys};
    snprintf(words, sizeof words, "%s", row->words);
    for (char *word = strtok_r(words, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state), count++) {
        const char *text = strcmp(word, "KEY") == 0     ? KEY
                           : strcmp(word, "VALUE") == 0 ? VALUE
                                                        : word;
        size +=
            (size_t)snprintf(body + size, sizeof body - size, "$%zu\r\n%s\r\n", strlen(text), text);
    }
    load->kind.context = load;
    load->kind.check = check_reply_to_request;
    load->kind.request_size =
        (uint32_t)snprintf(request, sizeof load->kind.request, "*%d\r\n%s", count, body);
    const char *key = strstr(request, KEY);
    if (key != NULL) {
        load->digits_at = (uint32_t)(key - request) + (uint32_t)(sizeof KEY - 1 - KEY_DIGITS);
        load->kind.vary = write_next_key_into_request;
    }
    if (row->reply[0] == '$')
        snprintf(load->reply, sizeof load->reply, "$%zu\r\n%s\r\n", strlen(VALUE), VALUE);
    else
        snprintf(load->reply, sizeof load->reply, "%s", row->reply);
    load->reply_size = row->reply[0] == ':' ? 0 : (uint32_t)strlen(load->reply);
}
