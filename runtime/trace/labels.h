/* Labels: the texts by which a reader of a trace knows a record, as "run counter (increment)", and
 * the numbers that stand for them.
 *
 * A trace says each text once for each thread, and then only its number. Nothing here allocates or
 * calls the C library's formatting, so a signal handler may use it.
 *
 * Source of the texts: names of behaviours and types of the program, in UTF-8. */
#ifndef DOMI_RUNTIME_TRACE_LABELS_H
#define DOMI_RUNTIME_TRACE_LABELS_H

#include "runtime/trace/record.h"

#include <stdbool.h>
#include <stddef.h>

/* size in bytes of a label's text, with the zero at its end; longer texts are cut */
#define DOMI_LABEL_BYTES 192u
/* most labels that may have numbers in a thread's part of a trace */
#define DOMI_LABELS_MAX    384u
#define DOMI_LABELS_PLACES 512u /* number of places in the hash table of labels; a power of two */

typedef struct domi_labels {
    uint32_t count; /* number of labels that have numbers */
    struct {
        const void *name;
        /* type of the record's message, for kinds of records that have one; else 0 */
        uint64_t value;
        uint32_t kind;
        uint32_t number; /* number of the label; 0: the place is free */
    } places[DOMI_LABELS_PLACES];
} domi_labels;

/* Forget the numbers of all labels, because another thread's part of the trace begins. */
void domi_labels_forget_all(domi_labels *labels);

/* Returns the number of a record's label, from 1 on; 0: it has none, because there is no room.
 * `*ret_new` tells whether it got the number just now. */
uint32_t domi_labels_find_or_give_number(domi_labels *labels, const domi_record *record,
                                         bool *ret_new);

/* Write the text of a record's label, NUL-terminated. Returns its length in bytes. */
size_t domi_label_write_text(const domi_record *record, char text[DOMI_LABEL_BYTES]);

/* Returns a word for a kind of record, such as "run", as Perfetto's category. */
const char *domi_label_category_of_kind(domi_record_kind kind);

/* Returns a word for the things that the value of a record counts, such as "completions"; NULL if
 * it counts nothing. */
const char *domi_label_unit_of_value(domi_record_kind kind);

#endif
