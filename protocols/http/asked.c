/* Remembers what a client has asked, in the order in which the answers come: to HEAD there is no
 * body, and 101 is an answer only to a request that wants to upgrade. */
#include "protocols/http/http.h"

static void set_bit(uint64_t *bits, uint32_t at, bool value)
{
    uint64_t bit = UINT64_C(1) << at % 64;

    bits[at / 64] = value ? bits[at / 64] | bit : bits[at / 64] & ~bit;
}

static bool get_bit(const uint64_t *bits, uint32_t at)
{
    return (bits[at / 64] >> at % 64 & 1) != 0;
}

bool domi_http_note_asked(domi_http_state *state, bool is_head, bool upgrades)
{
    uint32_t at = (state->asked.first + state->asked.count) % DOMI_HTTP_ASKED_MAX;

    if (state->asked.count == DOMI_HTTP_ASKED_MAX)
        return false;
    state->asked.count++;
    set_bit(state->asked.heads, at, is_head);
    set_bit(state->asked.upgrades, at, upgrades);
    return true;
}

bool domi_http_asked_head(const domi_http_state *state)
{
    return get_bit(state->asked.heads, state->asked.first);
}

bool domi_http_asked_upgrade(const domi_http_state *state)
{
    return get_bit(state->asked.upgrades, state->asked.first);
}

void domi_http_note_answered(domi_http_state *state)
{
    state->asked.first = (state->asked.first + 1) % DOMI_HTTP_ASKED_MAX;
    state->asked.count--;
    state->asked.interims = 0;
}
