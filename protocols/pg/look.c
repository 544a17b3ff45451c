/* Time: one timer for a pool, for the first thing that may be late. A query costs it nothing as
 * long as another one is late sooner. */
#include "protocols/pg/pg.h"

const domus_type domi_pg_look_type = {.name = "pg look"};

void domi_pg_look_at(domus_stack *stack, domi_pg_pool *pool, uint64_t time_ns)
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
    pool->look_ns = error == 0 ? time_ns : 0; /* without memory the next query tries again */
}
