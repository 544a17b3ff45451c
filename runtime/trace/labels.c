/* The texts of records, from a table of their kinds, and the numbers of texts, in a hash table
 * without deletions. That table is never full, because DOMI_LABELS_MAX is less than its places. */
#include "runtime/trace/labels.h"

#include <domus/actor.h>

#include <assert.h>
#include <string.h>

static_assert(DOMI_LABELS_MAX < DOMI_LABELS_PLACES, "each search ends at a free place");
static_assert((DOMI_LABELS_PLACES & (DOMI_LABELS_PLACES - 1)) == 0, "a mask finds the place");

enum names {
    NAMES_NOTHING,
    NAMES_TEXT,
    NAMES_BEHAVIOUR,
    NAMES_BOTH, /* kinds of records whose name is a behaviour and whose value may be a type */
    NAMES_TYPE,
};

static const struct kind {
    const char *category;
    const char *begin; /* first words of the texts of this kind */
    enum names names;
    const char *counts; /* unit that the value of such a record counts; NULL: it counts nothing */
} kinds[DOMI_RECORD_KINDS] = {
    [DOMI_RECORD_NONE] = {"none", "nothing", NAMES_NOTHING, NULL},
    [DOMI_RECORD_ITERATION] = {"iteration", "iteration", NAMES_NOTHING, "completions"},
    [DOMI_RECORD_PHASE] = {"phase", "", NAMES_TEXT, NULL},
    [DOMI_RECORD_PARK] = {"park", "park", NAMES_NOTHING, NULL},
    [DOMI_RECORD_STEAL] = {"steal", "steal", NAMES_BEHAVIOUR, "from thread"},
    [DOMI_RECORD_STAND_IN] = {"stand-in", "stand in for", NAMES_BEHAVIOUR, "of thread"},
    [DOMI_RECORD_RUN] = {"run", "run", NAMES_BOTH, NULL},
    [DOMI_RECORD_STALL] = {"stall", "stall in", NAMES_BOTH, NULL},
    [DOMI_RECORD_LOAN] = {"loan", "lend", NAMES_BEHAVIOUR, "to thread"},
    [DOMI_RECORD_ASK_OUT] = {"flow", "ask", NAMES_TYPE, NULL},
    [DOMI_RECORD_ASK_IN] = {"flow", "take ask", NAMES_TYPE, NULL},
    [DOMI_RECORD_ANSWER_OUT] = {"flow", "answer", NAMES_TYPE, NULL},
    [DOMI_RECORD_ANSWER_IN] = {"flow", "take answer", NAMES_TYPE, NULL},
    [DOMI_RECORD_CRASH] = {"crash", "crash by", NAMES_TEXT, NULL},
};

const char *domi_label_category_of_kind(domi_record_kind kind)
{
    return kinds[kind].category;
}

const char *domi_label_unit_of_value(domi_record_kind kind)
{
    return kinds[kind].counts;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

struct text {
    char *bytes; /* array of DOMI_LABEL_BYTES bytes, in which the text is written */
    size_t length;
};

/* Append `more` to a text. If it does not fit, it is cut behind a whole character. */
static void append_to_text(struct text *to, const char *more)
{
    size_t room = DOMI_LABEL_BYTES - 1 - to->length;
    size_t length = strnlen(more, room + 1);

    if (length > room) {
        length = room;
        while (length > 0 && ((unsigned char)more[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(to->bytes + to->length, more, length);
    to->length += length;
    to->bytes[to->length] = '\0';
}

static const char *name_or_question_mark(const char *name)
{
    return name != NULL ? name : "?";
}

static const char *name_of_type_or_question_mark(const domus_type *type)
{
    return type != NULL ? name_or_question_mark(type->name) : "?";
}

static const char *name_of_behaviour_or_type(const domi_record *record, enum names names)
{
    const domus_behaviour *behaviour = record->name;

    if (record->name == NULL)
        return "?";
    if (names == NAMES_TEXT)
        return record->name;
    return names == NAMES_TYPE ? name_of_type_or_question_mark(record->name)
                               : name_or_question_mark(behaviour->name);
}

size_t domi_label_write_text(const domi_record *record, char bytes[DOMI_LABEL_BYTES])
{
    const struct kind *kind = &kinds[domi_record_kind_of(record)];
    struct text to = {.bytes = bytes};

    append_to_text(&to, kind->begin);
    if (kind->names == NAMES_NOTHING)
        return to.length;
    if (to.length > 0)
        append_to_text(&to, " ");
    append_to_text(&to, name_of_behaviour_or_type(record, kind->names));
    if (kind->names == NAMES_BOTH && record->value != 0) {
        append_to_text(&to, " (");
        append_to_text(&to,
                       name_of_type_or_question_mark((const domus_type *)(uintptr_t)record->value));
        append_to_text(&to, ")");
    }
    return to.length;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

void domi_labels_forget_all(domi_labels *labels)
{
    memset(labels, 0, sizeof *labels);
}

static uint32_t hash_to_place_of_label(const void *name, uint64_t value, uint32_t kind)
{
    uint64_t hash = (uint64_t)(uintptr_t)name * UINT64_C(0x9E3779B97F4A7C15);

    hash = (hash ^ value ^ kind) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32);
}

uint32_t domi_labels_find_or_give_number(domi_labels *labels, const domi_record *record,
                                         bool *ret_new)
{
    uint32_t kind = (uint32_t)domi_record_kind_of(record);
    uint64_t value = kinds[kind].names == NAMES_BOTH ? record->value : 0;

    *ret_new = false;
    for (uint32_t i = hash_to_place_of_label(record->name, value, kind);; i++) {
        uint32_t at = i & (DOMI_LABELS_PLACES - 1);
        if (labels->places[at].number == 0) {
            if (labels->count == DOMI_LABELS_MAX)
                return 0;
            labels->places[at].name = record->name;
            labels->places[at].value = value;
            labels->places[at].kind = kind;
            labels->places[at].number = ++labels->count;
            *ret_new = true;
            return labels->count;
        }
        if (labels->places[at].name == record->name && labels->places[at].value == value &&
            labels->places[at].kind == kind)
            return labels->places[at].number;
    }
}
