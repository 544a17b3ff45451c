/* Numbered messages and their picklers (tests/cluster/words.h). */
#include "tests/cluster/words.h"

const domus_type domt_notice_type = {.name = "numbered notice", .size = sizeof(domt_word)};
const domus_type domt_ask_type = {.name = "numbered ask", .size = sizeof(domt_word)};
const domus_type domt_answer_type = {.name = "numbered answer", .size = sizeof(domt_word)};

static const domus_pickle_field fields[] = {
    {DOMUS_PICKLE(1, domt_word, pair, UINT(0))},
    {DOMUS_PICKLE(2, domt_word, number, UINT(0))},
};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(domt_word, fields);

const domus_pickler domt_word_picklers[] = {
    {.type = &domt_notice_type, .version = 1, .table = &table},
    {.type = &domt_ask_type, .version = 1, .table = &table},
    {.type = &domt_answer_type, .version = 1, .table = &table},
    {.type = NULL},
};

uint32_t domt_count_unended_asks(const domt_asking *asks, uint32_t count)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < count; i++)
        open += asks[i].answered == 0;
    return open;
}
