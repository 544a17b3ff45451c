/* Functions that start, check and end a world with belts. */
#include "tests/house/belt_world.h"

#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/support/suite.h"

#include <string.h>

domt_belt_world domt_belts;

void domt_belts_open_world(uint32_t slots)
{
    memset(domt_belts.logs, 0, sizeof domt_belts.logs);
    domt_world_init(&domt_belts.world, 3);
    domt_belts.world.config.scheduler.belt_slots = slots;
    ck_assert_int_eq(domt_world_start(&domt_belts.world), 0);
    domt_belts.actor = domt_spawn_recorder(&domt_belts.world, 0, &domt_belts.logs[0]);
}

domi_manager *domt_belts_manager_of_home(uint32_t index)
{
    return domt_belts.world.managers[index];
}

domi_belt *domt_belts_belt_from_1_to_0(void)
{
    return domt_belts_manager_of_home(1)->belts.to[0];
}

int domt_belts_send_note(uint32_t from, domus_address to, int64_t number)
{
    return domt_belts_send_note_by_manager(domt_belts_manager_of_home(from), to, number);
}

int domt_belts_send_note_by_manager(domi_manager *from, domus_address to, int64_t number)
{
    domi_envelope *envelope = domi_message_new(from, sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &domt_note;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, &number, sizeof number);
    int error = domi_mailbox_put_copied_notice(from, to, &envelope->node);
    if (error != 0)
        domi_pool_free_object(from, &envelope->node);
    return error;
}

void domt_belts_send_notes(uint32_t from, int64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(domt_belts_send_note(from, domt_belts.actor, first + i), 0);
}

uint64_t domt_belts_inbox_word_of_actor(void)
{
    return atomic_load(&domt_belts.actor.house->inbox);
}

uint64_t domt_belts_count_sent_by_belt(uint32_t from)
{
    return domi_counter_read(&domt_belts_manager_of_home(from)->counters.belted);
}

void domt_belts_expect_notes(int64_t first, uint32_t count)
{
    ck_assert_uint_eq(domt_belts.logs[0].count, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(domt_belts.logs[0].entries[i].number, first + i);
}

void domt_belts_close_world(void)
{
    domt_settle_world(&domt_belts.world);
    ck_assert_ptr_null(domt_belts_manager_of_home(0)->belts.held);
    domt_world_end(&domt_belts.world);
}

void domt_belts_close_and_expect_notes(int64_t first, uint32_t count)
{
    domt_belts_close_world();
    domt_belts_expect_notes(first, count);
}
