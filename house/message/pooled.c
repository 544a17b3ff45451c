/* Arms and disarms nodes on the wheels of a pool, under its lock. */
#include "house/message/pooled.h"

void domi_pooled_arm_node_on_pools_wheel(domi_pooled *pooled, domi_wheel *wheel,
                                         domi_wheel_node *node, uint64_t expires_ns)
{
    /* An odd time marks a promise that was postponed (domi_promise_is_postponed()), so times are
     * made even. UINT64_MAX is odd and means never. */
    expires_ns = expires_ns == UINT64_MAX ? UINT64_MAX - 1 : expires_ns + (expires_ns & 1);
    domi_spinlock_lock(&pooled->lock);
    domi_wheel_arm_node(wheel, node, expires_ns);
    bool is_sooner = expires_ns < pooled->awake_ns;
    /* a sleeping runner is woken and reads `awake_ns`; an object that is due later needs no further
     * call */
    if (is_sooner)
        pooled->awake_ns = expires_ns;
    domi_spinlock_unlock(&pooled->lock);
    if (is_sooner)
        pooled->call(pooled);
}

void domi_pooled_disarm_node_on_pools_wheel(domi_pooled *pooled, domi_wheel *wheel,
                                            domi_wheel_node *node)
{
    domi_spinlock_lock(&pooled->lock);
    domi_wheel_disarm_node(wheel, node);
    domi_spinlock_unlock(&pooled->lock);
}
