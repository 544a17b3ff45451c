/* Finds the words of an enum, which pickled messages have in place of its numbers: by the number in
 * a member, by a number that was read, and by a word. The lists are short, so they are searched
 * from the start. */
#ifndef DOMI_PROTOCOLS_CLUSTER_PICKLE_WORDS_H
#define DOMI_PROTOCOLS_CLUSTER_PICKLE_WORDS_H

#include "protocols/cluster/pickle.h"

/* Returns the word of an enum for the number that a member has, whose bytes are `bits`; NULL if no
 * word has that number. */
static inline const domus_pickle_word *domi_word_of_enum_member(const domus_pickle_field *field,
                                                                uint64_t bits)
{
    for (const domus_pickle_word *word = field->words; word->word != NULL; word++) {
        if (((uint64_t)word->value & domi_greatest_unsigned_of_size(field->size)) == bits)
            return word;
    }
    return NULL;
}

static inline const domus_pickle_word *domi_enum_word_with_value(const domus_pickle_word *words,
                                                                 int64_t value)
{
    for (const domus_pickle_word *word = words; word->word != NULL; word++) {
        if (word->value == value)
            return word;
    }
    return NULL;
}

static inline const domus_pickle_word *
domi_enum_word_with_text(const domus_pickle_word *words, const unsigned char *text, size_t size)
{
    for (const domus_pickle_word *word = words; word->word != NULL; word++) {
        if (strlen(word->word) == size && memcmp(word->word, text, size) == 0)
            return word;
    }
    return NULL;
}

#endif
