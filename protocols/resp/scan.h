/* One value of a reply, as its head says. */
#ifndef DOMI_PROTOCOLS_RESP_SCAN_H
#define DOMI_PROTOCOLS_RESP_SCAN_H

#include <domus/resp.h>

/* The head of a value: its line, with the line's end. */
typedef struct domi_resp_item {
    domus_resp_kind kind;
    uint32_t line;   /* bytes of the text in the line, which begins behind the mark */
    uint32_t body;   /* bytes behind the head that belong to the value: a bulk string and its end */
    uint32_t count;  /* values that follow and belong to this one */
    int64_t integer; /* the value of an integer, and of a boolean */
    bool only_3;     /* RESP 2 has no such value */
} domi_resp_item;

/* Read the head of the value at `bytes`. `looked` bytes of it are known to have no '\r'. Returns
 * the bytes of the head; 0 when more are needed; -EPROTO when they are wrong. */
int domi_resp_scan(const char *bytes, size_t size, size_t looked, domi_resp_item *ret_item);

#endif
