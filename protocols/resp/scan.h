/* The head of one value of a reply, and how it is read. */
#ifndef DOMI_PROTOCOLS_RESP_SCAN_H
#define DOMI_PROTOCOLS_RESP_SCAN_H

#include <domus/resp.h>

/* The head of a value, which is its line with the line's end. */
typedef struct domi_resp_item {
    domus_resp_kind kind;
    uint32_t line; /* bytes of the text in the value's line, which begins behind the mark */
    /* bytes that belong to the value behind its head: a bulk string and its line end */
    uint32_t body;
    uint32_t count;  /* number of values that follow as parts of this value */
    int64_t integer; /* the number, if the value is an integer or a boolean */
    bool only_3;     /* RESP 2 has no value of this kind */
} domi_resp_item;

/* Read the head of the value at `bytes`, of which `looked` bytes are known to have no '\r'. Returns
 * the bytes of the head; 0 when more bytes are needed; -EPROTO when the head is wrong. */
int domi_resp_scan_head_of_value(const char *bytes, size_t size, size_t looked,
                                 domi_resp_item *ret_item);

#endif
