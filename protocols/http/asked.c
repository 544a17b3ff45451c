/* Remembers for each unanswered request of a client, in the order of the answers, whether its
 * method is HEAD, whose answer has no body, and whether 101 may answer it. */
#include "protocols/http/http.h"

#include <string.h>

#define OF_BYTE 4u /* unanswered requests whose two marks fit into one byte */

enum { IS_HEAD = 1, UPGRADES = 2 };

int domi_http_allocate_marks_of_requests(domi_http_state *state)
{
    size_t size = DOMI_HTTP_ASKED_MAX / OF_BYTE;

    state->asked.marks = domus_append_room(&state->asked.room, size);
    if (state->asked.marks == NULL)
        return state->asked.room.error;
    memset(state->asked.marks, 0, size);
    return 0;
}

void domi_http_free_marks_of_requests(domi_http_state *state)
{
    domus_append_drop(&state->asked.room);
}

bool domi_http_add_marks_of_sent_request(domi_http_state *state, bool is_head, bool upgrades)
{
    uint32_t at = (state->asked.first + state->asked.count) % DOMI_HTTP_ASKED_MAX;
    unsigned marks = (is_head ? IS_HEAD : 0) | (upgrades ? UPGRADES : 0);
    unsigned shift = at % OF_BYTE * 2;
    unsigned byte = (unsigned char)state->asked.marks[at / OF_BYTE];

    if (state->asked.count == DOMI_HTTP_ASKED_MAX)
        return false;
    state->asked.count++;
    state->asked.marks[at / OF_BYTE] = (char)((byte & ~(3u << shift)) | marks << shift);
    return true;
}

static bool has_oldest_request_mark(const domi_http_state *state, unsigned mark)
{
    uint32_t at = state->asked.first;
    unsigned byte = (unsigned char)state->asked.marks[at / OF_BYTE];

    return (byte >> at % OF_BYTE * 2 & mark) != 0;
}

bool domi_http_is_oldest_request_head(const domi_http_state *state)
{
    return has_oldest_request_mark(state, IS_HEAD);
}

bool domi_http_does_oldest_want_upgrade(const domi_http_state *state)
{
    return has_oldest_request_mark(state, UPGRADES);
}

void domi_http_drop_marks_of_oldest_request(domi_http_state *state)
{
    state->asked.first = (state->asked.first + 1) % DOMI_HTTP_ASKED_MAX;
    state->asked.count--;
    state->interims = 0;
}
