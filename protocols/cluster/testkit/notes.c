/* The trace of a simulated cluster, its counts, the fates of messages, and its random numbers. */
#include "protocols/cluster/testkit/sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES                                                                                 \
    ((DOMUS_TESTKIT_CLUSTER_TRACE_MAX + 1) * (size_t)DOMUS_TESTKIT_CLUSTER_LINE_BYTES)
#define FNV_BASE  UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)
#define NS_PER_S  UINT64_C(1000000000)

/* --- random numbers --------------------------------------------------------------------------- */

/* The generator is splitmix64 (Steele, Lea and Flood). */
static uint64_t draw_next_random_number(domi_sim *sim)
{
    uint64_t z = sim->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The remainder makes small random numbers more likely by n / 2^64, which does not matter in
 * tests. */
uint64_t domi_sim_draw_number_below(domi_sim *sim, uint64_t n)
{
    return draw_next_random_number(sim) % n;
}

bool domi_sim_draw_whether_happens(domi_sim *sim, uint32_t ppm)
{
    return ppm != 0 && domi_sim_draw_number_below(sim, DOMUS_TESTKIT_PPM) < ppm;
}

/* --- the trace -------------------------------------------------------------------------------- */

static void add_text_to_digest(domi_sim *sim, const char *text)
{
    uint64_t digest = sim->line_count == 0 ? FNV_BASE : sim->digest;

    for (; *text != '\0'; text++)
        digest = (digest ^ (unsigned char)*text) * FNV_PRIME;
    sim->digest = (digest ^ '\n') * FNV_PRIME;
}

void domi_sim_add_line_to_trace(domi_sim *sim, const char *format, ...)
{
    char *line = sim->lines[sim->line_count % DOMUS_TESTKIT_CLUSTER_TRACE_MAX].text;
    size_t size = DOMUS_TESTKIT_CLUSTER_LINE_BYTES;
    va_list arguments;

    if (sim->ending || sim->options.untraced)
        return;
    int used = snprintf(line, size, "%" PRIu64 " %" PRIu64 ".%09" PRIu64 " ", sim->line_count + 1,
                        sim->now_ns / NS_PER_S, sim->now_ns % NS_PER_S);
    va_start(arguments, format);
    (void)vsnprintf(line + used, size - (size_t)used, format, arguments);
    va_end(arguments);
    add_text_to_digest(sim, line);
    sim->line_count++;
}

const char *domus_testkit_cluster_trace(domus_testkit_cluster *cluster)
{
    uint64_t first = 0;
    size_t used = 0;

    if (cluster->text == NULL)
        cluster->text = malloc(TEXT_BYTES);
    if (cluster->text == NULL)
        return "";
    cluster->text[0] = '\0';
    if (cluster->line_count > DOMUS_TESTKIT_CLUSTER_TRACE_MAX) {
        first = cluster->line_count - DOMUS_TESTKIT_CLUSTER_TRACE_MAX;
        used = (size_t)snprintf(cluster->text, TEXT_BYTES, "(%" PRIu64 " lines are gone)\n", first);
    }
    for (uint64_t i = first; i < cluster->line_count; i++) {
        const char *line = cluster->lines[i % DOMUS_TESTKIT_CLUSTER_TRACE_MAX].text;
        used += (size_t)snprintf(cluster->text + used, TEXT_BYTES - used, "%s\n", line);
    }
    return cluster->text;
}

uint64_t domus_testkit_cluster_digest(const domus_testkit_cluster *cluster)
{
    return cluster->digest;
}

/* --- fates of messages ------------------------------------------------------------------------ */

static uint64_t *find_counter_of_fate(domi_sim *sim, domus_testkit_fate fate)
{
    switch (fate) {
    case DOMUS_FATE_PUBLISHED:
        return &sim->counts.published;
    case DOMUS_FATE_UNHEARD:
        return &sim->counts.unheard;
    case DOMUS_FATE_DELIVERED:
        return &sim->counts.delivered;
    case DOMUS_FATE_ENDED:
        return &sim->counts.ended;
    case DOMUS_FATE_LOST_WAITING:
        return &sim->counts.lost_waiting;
    case DOMUS_FATE_LOST_UP:
        return &sim->counts.lost_up;
    case DOMUS_FATE_LOST_ROUTE:
        return &sim->counts.lost_route;
    case DOMUS_FATE_LOST_DOWN:
        return &sim->counts.lost_down;
    case DOMUS_FATE_LOST_MAILBOX:
        return &sim->counts.lost_mailbox;
    case DOMUS_FATE_LOST_REQUEST:
        return &sim->counts.lost_requests;
    case DOMUS_FATE_LOST_ANSWER:
        return &sim->counts.lost_answers;
    }
    return &sim->counts.ended; /* no other fate of a message is reported */
}

void domi_sim_count_and_report_fate(domi_sim *sim, const domi_sim_message *message,
                                    domus_testkit_fate fate, uint32_t node)
{
    domus_testkit_happening happening = {.fate = fate,
                                         .node = node,
                                         .number = message->number,
                                         .subject = message->subject,
                                         .payload = message->payload,
                                         .payload_size = message->payload_size};

    ++*find_counter_of_fate(sim, fate);
    if (sim->observer != NULL)
        sim->observer(sim->observer_context, &happening);
}

void domi_sim_count_lost_message(domi_sim *sim, const domi_sim_message *message, domi_sim_loss loss)
{
    domi_sim_count_and_report_fate(sim, message, loss.fate, loss.node);
    domi_sim_add_line_to_trace(sim, "%" PRIu64 " is lost: %s", message->number, loss.why);
}

domus_testkit_cluster_counts domus_testkit_cluster_count(const domus_testkit_cluster *cluster)
{
    return cluster->counts;
}

void domus_testkit_cluster_observe(domus_testkit_cluster *cluster, domus_testkit_observer *observer,
                                   void *context)
{
    cluster->observer = observer;
    cluster->observer_context = context;
}

int domi_sim_record_error(domi_sim *sim, int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(sim->error, sizeof sim->error, format, arguments);
    va_end(arguments);
    return error;
}

const char *domus_testkit_cluster_error(const domus_testkit_cluster *cluster)
{
    return cluster->error;
}
