/* Shows the newest stalls of a system with the names of the functions in which threads hung
 * (domus/stall.h).
 *
 * The records are copied first and the names looked up afterwards, because a look-up reads
 * files, and the monitor must not wait for it. */
#include <domus/stall.h>

#include "runtime/os/symbols.h"
#include "runtime/system/system.h"

#include <errno.h>

static void describe_stall_record(const domi_stall_record *record, uint64_t now_ns,
                                  domi_symbols *symbols, domus_stall *ret_stall)
{
    *ret_stall = (domus_stall){
        .began_ns = record->began_ns,
        .began_utc_ns = record->began_utc_ns,
        .length_ns = record->length_ns != 0 ? record->length_ns : now_ns - record->began_ns,
        .is_over = record->length_ns != 0,
        .index = record->index,
        .frame_count = record->count,
    };
    domi_stall_record_set_name(ret_stall->pool, record->pool);
    domi_stall_record_set_name(ret_stall->behaviour, record->behaviour);
    domi_stall_record_set_name(ret_stall->type, record->type);
    for (uint32_t i = 0; i < record->count; i++) {
        /* All frames but the first hold return addresses, which may be the begin of another
         * function, so 1 is subtracted. */
        uintptr_t at = (uintptr_t)record->frames[i] - (i != 0);
        (void)domi_symbols_find_name(symbols, at, ret_stall->frames[i], DOMUS_STALL_FRAME_SIZE);
    }
}

int domus_stalls_read(domus_system *system, domus_stall *stalls, uint32_t room, uint32_t *ret_count)
{
    domi_stall_record records[DOMUS_STALLS_KEPT];

    if (domi_system_is_forked(system))
        return -ECHILD;
    domi_symbols *symbols = domi_symbols_new();
    if (symbols == NULL)
        return -ENOMEM;
    uint32_t count = domi_stall_history_copy_newest(
        &system->stall_history, records, room < DOMUS_STALLS_KEPT ? room : DOMUS_STALLS_KEPT);
    uint64_t now_ns = domi_clock_now(&system->clock);
    for (uint32_t i = 0; i < count; i++)
        describe_stall_record(&records[i], now_ns, symbols, &stalls[i]);
    domi_symbols_free(symbols);
    *ret_count = count;
    return 0;
}
