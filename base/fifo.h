/* A FIFO (first in, first out) is a list of objects that are linked through a field of their own.
 *
 * DOMI_FIFO(domi_line, domi_guest, next) makes the type `domi_line` of lines of `domi_guest`, which
 * are linked through their field `next`, and these functions:
 *
 *   - domi_line_put(line, guest) puts a guest at the end.
 *   - domi_line_take(line) takes the first one, and returns NULL if there is none.
 *   - domi_line_prepend(line, first) puts all guests of the line `first` before those of `line`.
 *   - domi_line_remove(line, guest) takes a guest out from anywhere; it walks up to it.
 *
 * DOMI_FIFO_TYPE makes the type alone, for a struct that has a line of objects which it does not
 * know; DOMI_FIFO_VERBS makes the functions where the objects are known. Both stand in headers.
 *
 * A line that is zeroed is empty. It is empty if and only if `head` is NULL, and `tail`
 * means nothing then. One field links an object into one line at a time; nothing here checks
 * that. Nothing is allocated and nothing is atomic: only the thread that owns the line calls
 * these functions. */
#ifndef DOMI_BASE_FIFO_H
#define DOMI_BASE_FIFO_H

#include <assert.h>
#include <stddef.h>

/* The arguments of these macros are names of types and of a field, so they cannot stand in
 * parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define DOMI_FIFO(line_type, item_type, next)                                                      \
    DOMI_FIFO_TYPE(line_type, item_type);                                                          \
    DOMI_FIFO_VERBS(line_type, item_type, next)

#define DOMI_FIFO_TYPE(line_type, item_type)                                                       \
    typedef struct line_type {                                                                     \
        item_type *head;                                                                           \
        item_type *tail;                                                                           \
    } line_type

#define DOMI_FIFO_VERBS(line_type, item_type, next)                                                \
    static inline void line_type##_put(line_type *line, item_type *item)                           \
    {                                                                                              \
        item->next = NULL;                                                                         \
        if (line->head == NULL)                                                                    \
            line->head = item;                                                                     \
        else                                                                                       \
            line->tail->next = item;                                                               \
        line->tail = item;                                                                         \
    }                                                                                              \
                                                                                                   \
    static inline item_type *line_type##_take(line_type *line)                                     \
    {                                                                                              \
        item_type *item = line->head;                                                              \
                                                                                                   \
        if (item != NULL)                                                                          \
            line->head = item->next;                                                               \
        return item;                                                                               \
    }                                                                                              \
                                                                                                   \
    static inline void line_type##_prepend(line_type *line, const line_type *first)                \
    {                                                                                              \
        if (first->head == NULL)                                                                   \
            return;                                                                                \
        first->tail->next = line->head;                                                            \
        if (line->head == NULL)                                                                    \
            line->tail = first->tail;                                                              \
        line->head = first->head;                                                                  \
    }                                                                                              \
                                                                                                   \
    static inline void line_type##_remove(line_type *line, const item_type *item)                  \
    {                                                                                              \
        item_type *before = NULL;                                                                  \
                                                                                                   \
        for (item_type *at = line->head; at != item; at = at->next)                                \
            before = at;                                                                           \
        if (before == NULL)                                                                        \
            line->head = item->next;                                                               \
        else                                                                                       \
            before->next = item->next;                                                             \
        if (line->tail == item)                                                                    \
            line->tail = before;                                                                   \
    }                                                                                              \
    static_assert(sizeof(line_type) == 2 * sizeof(void *), "a head and a tail")

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
