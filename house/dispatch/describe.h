/* Describes a house in words, for people who want to know why an actor waits. */
#ifndef DOMI_HOUSE_DISPATCH_DESCRIBE_H
#define DOMI_HOUSE_DISPATCH_DESCRIBE_H

#include "house/message/manager.h"

/* A text in a buffer of `size` bytes at `at`. `length` is the length of the whole text, which may
 * be more than fits, as in the result of snprintf. */
typedef struct domi_text {
    char *at;      /* start of the description's text; NUL-terminated */
    size_t size;   /* size of the text's buffer at `at`, in bytes */
    size_t length; /* length of the whole text in bytes, also if it does not fit */
} domi_text;

/* Append printed words to the text, as far as they fit. */
void domi_text_append_formatted(domi_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns true if all of the text fits into its buffer. Otherwise the text is cut back to the
 * length `before`, so that a thing is described as a whole or not at all. */
bool domi_text_cut_back_unless_whole(domi_text *text, size_t before);

/* Append the name of an actor for people: its thread, the number of its slot there, and its lease,
 * as in "0/35.2". No other actor of the system ever has the same name. A router lives on no thread,
 * so its name is "router.2", with its lease alone. If log.addresses is set, the address of the
 * house in memory follows. Any thread. */
void domi_text_append_name_of_actor(domi_text *text, const domus_config *config,
                                    domus_address address);

/* Append a description of `house`, whose slot is not free: state, mail, relations, conversations.
 * Called by its home, between two runs. */
void domi_house_describe(const domi_manager *manager, const domi_house *house, domi_text *text);

#endif
