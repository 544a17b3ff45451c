/* The timer of a pool, which is set for the first time at which something in it may be late. For a
 * query that becomes late after that time, the timer need not be set. */
#include "protocols/pg/pg.h"

const domus_type domi_pg_look_type = {.name = "pg look"};

void domi_pg_set_timer_of_pool_for_time(domus_stack *stack, domi_pg_pool *pool, uint64_t time_ns)
{
    uint64_t now_ns = domus_now_ns(stack);

    if (pool->look_ns != 0 && pool->look_ns <= time_ns)
        return;
    if (time_ns < now_ns + DOMI_PG_LOOK_NS) {
        time_ns = now_ns + DOMI_PG_LOOK_NS;
        if (pool->look_ns != 0 && pool->look_ns <= time_ns)
            return;
    }
    if (pool->look_ns != 0)
        (void)domus_timer_cancel(stack, pool->look);
    int error = domus_after(stack, time_ns - now_ns, &domi_pg_look_type, NULL, &pool->look);
    /* if there is no memory for the timer, the next query tries to set it again */
    pool->look_ns = error == 0 ? time_ns : 0;
}
