/* Writes protobuf's wire format into memory: numbers, texts, and messages within messages.
 *
 * A message within a message has its length in front of it, in two bytes that are filled when it
 * ends; so one may have DOMI_PROTOBUF_LENGTH_MAX bytes. Source: the encoding page of protobuf.dev.
 *
 * The caller sees to the room: a write beyond it is a bug, and ends the process. Thread-safety:
 * none. A signal handler may use it. */
#ifndef DOMI_RUNTIME_TRACE_PROTOBUF_H
#define DOMI_RUNTIME_TRACE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

/* most bytes of a message within a message, because its length has 14 bits */
#define DOMI_PROTOBUF_LENGTH_MAX 16383u

typedef struct domi_protobuf {
    uint8_t *bytes;
    size_t size;
    size_t used;
} domi_protobuf;

/* Add a number as a field of type int32 (not negative), int64, uint32, uint64, bool or of an
 * enumeration. */
void domi_protobuf_add_number(domi_protobuf *to, uint32_t field, uint64_t value);

/* Add a field of type fixed64, a number of 8 bytes. */
void domi_protobuf_add_fixed_number(domi_protobuf *to, uint32_t field, uint64_t value);

/* Add a text as a field of type string or bytes. */
void domi_protobuf_add_text(domi_protobuf *to, uint32_t field, const char *text, size_t length);

/* Begin a field that is a message; the fields that are added next are in it. Returns a mark, by
 * which domi_protobuf_end_message() ends it. */
size_t domi_protobuf_begin_message(domi_protobuf *to, uint32_t field);
void domi_protobuf_end_message(domi_protobuf *to, size_t mark);

#endif
