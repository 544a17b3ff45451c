/* Notes where the arguments of a command lie, and makes the request from them. The first few
 * arguments are noted in the state; a command with more of them, or one that is gathered, has a
 * table. */
#include "protocols/resp/resp.h"

#include <errno.h>

_Static_assert(sizeof(void *) == 8 ? sizeof(domus_resp_command) == 64
                                   : sizeof(domus_resp_command) <= 64,
               "a command fits into the payload of a small ask");
_Static_assert(sizeof(((domi_resp_state *)0)->in.spans) == sizeof(((domus_resp_command *)0)->spans),
               "spans are copied as they are");
_Static_assert(DOMUS_WINDOW_MAX <= 65536, "an offset in the window has 16 bits");

/* Bytes of a command from which on it counts for the budget until it is released. Commands that are
 * decoded quickly never count, because they have at most 8 arguments, which are short. */
#define COUNTED_LEAST 4096u

static void uncharge_received_command(domi_resp_state *state)
{
    if (state->charged != 0)
        (void)domus_budget_charge(state->options.budget, &state->charged, 0);
}

/* Let the command that is being received count `bytes` for the budget. If this fails, the command
 * is forgotten. */
static int charge_command_or_forget_it(domi_resp_state *state, uint64_t bytes)
{
    int error = domus_budget_charge(state->options.budget, &state->charged, bytes);

    if (error != 0)
        domi_resp_reset_half_received_message(state);
    return error;
}

void domi_resp_reset_half_received_message(domi_resp_state *state)
{
    uncharge_received_command(state);
    domus_append_drop(&state->bytes);
    domus_append_drop(&state->table);
    state->gathering = state->tabled = false;
    state->phase = DOMI_RESP_HEAD;
    state->form = DOMUS_RESP_EXACT;
    state->at = state->count = state->have = state->left = 0;
}

void domi_resp_set_limits_of_peer(domi_resp_state *state, bool is_stranger)
{
    const domus_resp_options *options = &state->options;

    state->is_stranger = is_stranger && options->stranger_arguments_max != 0;
    state->arguments_max =
        state->is_stranger ? options->stranger_arguments_max : options->arguments_max;
    state->bulk_max = state->is_stranger ? options->stranger_bulk_max : options->bulk_max;
    state->quick_max = options->budget != NULL && state->bulk_max > COUNTED_LEAST / 8
                           ? COUNTED_LEAST / 8
                           : state->bulk_max;
}

int domi_resp_charge_gathered_bytes(domi_resp_state *state)
{
    return charge_command_or_forget_it(state, (uint64_t)state->bytes.room + state->table.room);
}

static int append_place_of_argument_to_table(domi_resp_state *state, uint32_t offset, uint32_t size)
{
    uint32_t span[2] = {offset, size};

    return domus_append(&state->table, span, sizeof span);
}

int domi_resp_move_arguments_to_table(domi_resp_state *state)
{
    int error = 0;

    for (uint32_t i = 0; i < state->have && error == 0; i++)
        error =
            append_place_of_argument_to_table(state, state->in.spans[i][0], state->in.spans[i][1]);
    state->tabled = true;
    return error;
}

static int add_argument_to_table(domi_resp_state *state, uint32_t offset, uint32_t size)
{
    int error = state->tabled ? 0 : domi_resp_move_arguments_to_table(state);

    if (error == 0)
        error = append_place_of_argument_to_table(state, offset, size);
    if (error == 0)
        state->have++;
    return error;
}

int domi_resp_record_place_of_argument(domi_resp_state *state, uint32_t offset, uint32_t size)
{
    if (state->tabled || state->have == DOMUS_RESP_SPANS)
        return add_argument_to_table(state, offset, size);
    state->in.spans[state->have][0] = (uint16_t)offset;
    state->in.spans[state->have][1] = (uint16_t)size;
    state->have++;
    return 0;
}

/* Let a whole command of `size` bytes count for the budget until it is released. Returns 1 if it
 * does; 0 if it is short, or there is no budget; -ENOMEM. */
static int charge_long_command_until_its_release(domi_resp_state *state, size_t size)
{
    domi_resp_charge_note note = {.budget = state->options.budget};

    if (note.budget == NULL || size <= COUNTED_LEAST)
        return 0;
    int error = state->tabled ? 0 : domi_resp_move_arguments_to_table(state);
    if (error == 0)
        error = charge_command_or_forget_it(state, size + state->table.size);
    note.bytes = state->charged;
    if (error == 0)
        error = domus_append(&state->table, &note, sizeof note);
    return error != 0 ? error : 1;
}

int domi_resp_make_request_of_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                                      size_t size)
{
    int counts =
        charge_long_command_until_its_release(state, bytes != NULL ? size : state->bytes.size);

    if (counts < 0)
        return counts;
    domus_resp_command *command = domus_wire_request(wire, &domus_resp_command_type,
                                                     domi_resp_take_id_of_next_request(state));

    if (command == NULL)
        return -ENOMEM;
    if (bytes != NULL) {
        command->bytes = domus_wire_slice(wire, bytes, size);
    } else {
        int error = domus_append_end(&state->bytes, &command->bytes);
        if (error != 0)
            return error;
    }
    if (state->tabled) {
        domus_slice table;
        int error = domus_append_end(&state->table, &table);
        if (error != 0)
            return error;
        command->table = table.page;
    } else {
        memcpy(command->spans, state->in.spans, sizeof command->spans);
    }
    command->count = state->have;
    command->version = state->version;
    command->counts = counts != 0;
    /* a gathered command is long enough to count, so from now on its release takes it off the
     * budget */
    state->charged = 0;
    state->gathering = state->tabled = false;
    state->at = state->count = state->have = 0;
    return 0;
}
