/* Measures the rate at which a peer sends, span of time by span of time, and chooses the age at
 * which a channel ends. */
#include "io/channels/due.h"

#define SECOND_NS UINT64_C(1000000000)

/* Returns the channel's answered_bytes if a message of the peer is under way; else UINT64_MAX. */
static uint64_t get_answered_bytes_before_message(const domus_channel *channel)
{
    bool is_under_way = channel->conversations == 0 && channel->inbound.head == NULL &&
                        channel->received_bytes != channel->answered_bytes;

    return is_under_way ? channel->answered_bytes : UINT64_MAX;
}

/* True if `bytes` in `time_ns` are less than `rate` bytes in each second. */
static bool are_bytes_below_rate(uint64_t bytes, uint64_t time_ns, uint64_t rate)
{
    /* the rate is below 2^31 and the time at most some hours, so the product does not overflow and
     * is exact enough */
    return bytes < rate * (time_ns / SECOND_NS) + rate * (time_ns % SECOND_NS) / SECOND_NS;
}

bool domi_channel_is_peer_too_slow(domus_channel *channel, bool is_read)
{
    const domi_channel_settings *settings = channel->settings;
    uint64_t now_ns = channel->io->manager->now_ns;
    domi_rate_span span = channel->rate;

    if (!domi_channel_has_minimum_rate(channel) || now_ns < span.begun_ns + settings->rate_grace_ns)
        return false;
    uint64_t answered = is_read && !channel->starved && !channel->paused && channel->receiving
                            ? get_answered_bytes_before_message(channel)
                            : UINT64_MAX;
    channel->rate = (domi_rate_span){
        .begun_ns = now_ns, .received = channel->received_bytes, .answered = answered};
    return answered != UINT64_MAX && answered == span.answered &&
           are_bytes_below_rate(channel->received_bytes - span.received, now_ns - span.begun_ns,
                                settings->rate_min_bytes);
}

/* Returns 64 bits that look random and are always the same for one channel (the last steps of
 * splitmix64). They spread the ages at which channels close, and need not be secret. */
static uint64_t get_constant_hash_of_channel(const domus_channel *channel)
{
    uint64_t bits = channel->opened_ns + (uint64_t)channel->slot * UINT64_C(0x9e3779b97f4a7c15) +
                    ((uint64_t)channel->slot_generation << 40);

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

uint64_t domi_channel_get_end_of_age(const domus_channel *channel)
{
    const domi_channel_settings *settings = channel->settings;
    uint64_t age_ns = settings->age_max_ns;
    uint64_t part_ns = age_ns / 100 * settings->age_jitter_percent;

    if (age_ns == 0)
        return UINT64_MAX;
    if (part_ns != 0)
        age_ns = age_ns - part_ns + get_constant_hash_of_channel(channel) % (2 * part_ns + 1);
    return channel->opened_ns + age_ns;
}
