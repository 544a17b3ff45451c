/* The desks of threads, and the clerks, the actors that answer for the desks (desk.h). */
#include "desk.h"

#include "nodes.h"
#include "wait.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define NS_OF_S UINT64_C(1000000000)

domus_address kv_clerks[KV_THREADS_MAX];
uint32_t kv_clerk_count;

const domus_type kv_question_type = {.name = "question", .size = sizeof(struct kv_question)};
const domus_type kv_figures_type = {.name = "figures", .size = sizeof(struct kv_figures)};
const domus_type kv_search_type = {.name = "search", .size = sizeof(struct kv_search)};
const domus_type kv_found_type = {.name = "found", .size = sizeof(struct kv_found)};

static _Thread_local struct {
    struct kv_session *first;
    /* figures of connections of this thread that have ended, and of all that were accepted */
    struct kv_figures gone;
} desk;

/* The number (CLIENT ID) that the last new connection has got. Relaxed: it orders nothing. */
static _Atomic uint64_t last_id;

void kv_desk_add_session(domus_stack *stack, struct kv_session *session)
{
    struct kv_seat *seat = &session->seat;
    const domus_channel *channel = domus_channel_running(stack);
    domus_endpoint peer;

    seat->channel = channel;

    session->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    seat->self = domus_self(stack);
    seat->begun_ns = domus_now_ns(stack);
    if (channel != NULL && domus_channel_peer(channel, &peer) == 0)
        (void)domus_endpoint_text(&peer, seat->peer, sizeof seat->peer);
    if (channel != NULL && domus_channel_local(channel, &peer) == 0)
        (void)domus_endpoint_text(&peer, seat->local, sizeof seat->local);
    seat->next = desk.first;
    if (desk.first != NULL)
        desk.first->seat.before = session;
    desk.first = session;
    desk.gone.accepted++;
}

void kv_desk_remove_session(struct kv_session *session)
{
    struct kv_seat *seat = &session->seat;

    if (session->id == 0)
        return; /* the connection never got an id, so it is on no desk */
    if (seat->before != NULL)
        seat->before->seat.next = seat->next;
    else
        desk.first = seat->next;
    if (seat->next != NULL)
        seat->next->seat.before = seat->before;
    desk.gone.commands += seat->commands;
}

/* --- the clerk -------------------------------------------------------------------------------- */

static int reply_with_figures_of_desk(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_question *question = payload;

    (void)self;
    if (question->kind == KV_RESET_FIGURES)
        desk.gone = (struct kv_figures){0};
    struct kv_figures figures = desk.gone;
    for (struct kv_session *each = desk.first; each != NULL; each = each->seat.next) {
        if (question->kind == KV_RESET_FIGURES)
            each->seat.commands = 0;
        figures.clients += !each->seat.is_ending;
        figures.commands += each->seat.commands;
    }
    return domus_reply(stack, &kv_figures_type, &figures);
}

static bool is_client_of_type(const struct kv_session *session, enum kv_client_type type)
{
    return type == KV_ANY_CLIENT ||
           type == (session->subscriber != NULL ? KV_SUBSCRIBERS : KV_NORMAL);
}

static bool is_id_of_client_searched(const struct kv_session *session,
                                     const struct kv_search *search)
{
    for (uint32_t i = 0; i < search->id_count; i++) {
        if (search->ids[i] == session->id)
            return true;
    }
    return search->id_count == 0;
}

bool kv_session_matches_search(const struct kv_session *session, const struct kv_search *search)
{
    return !session->seat.is_ending && is_id_of_client_searched(session, search) &&
           session->id != search->but && is_client_of_type(session, search->type) &&
           (search->address[0] == '\0' || strcmp(search->address, session->seat.peer) == 0) &&
           (search->local[0] == '\0' || strcmp(search->local, session->seat.local) == 0);
}

static int reply_with_lines_of_matching_clients(domus_stack *stack, const struct kv_search *search)
{
    domus_appender lines = {0};
    domus_slice slice;

    for (struct kv_session *each = desk.first; each != NULL; each = each->seat.next) {
        if (kv_session_matches_search(each, search))
            kv_write_client_line(stack, each, &lines);
    }
    int error = domus_append_end(&lines, &slice);
    if (error == 0 && (error = domus_reply(stack, &domus_slice_type, &slice)) != 0)
        domus_slice_free(slice);
    return error;
}

static int list_end_or_find_matching_clients(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_search *search = payload;
    struct kv_found found = {.is_there = false};
    int64_t ended = 0;

    (void)self;
    if (search->kind == KV_LIST_THEM)
        return reply_with_lines_of_matching_clients(stack, search);
    for (struct kv_session *each = desk.first; each != NULL; each = each->seat.next) {
        if (!kv_session_matches_search(each, search))
            continue;
        if (search->kind == KV_END_THEM)
            ended += each->seat.is_ending = domus_stop(stack, each->seat.self) == 0;
        else
            found = (struct kv_found){each->waiting_shard != KV_NO_SHARD, each->waiting_shard,
                                      each->seat.self};
    }
    if (search->kind == KV_END_THEM)
        return domus_reply(stack, &domus_resp_integer_type, &(domus_resp_integer){ended});
    return domus_reply(stack, &kv_found_type, &found);
}

/* End the waits of all clients on this desk, because the program ends and is a node of a
 * cluster. */
static int end_waits_of_all_clients_on_desk(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    for (struct kv_session *each = desk.first; each != NULL; each = each->seat.next) {
        struct kv_unblock unblock = {each->seat.self, KV_BY_END};
        if (each->waiting_shard != KV_NO_SHARD)
            (void)domus_ask_add(stack, kv_shards[each->waiting_shard], &kv_unblock_type, &unblock,
                                0, 0);
    }
    return 0;
}

const domus_behaviour kv_clerk = {
    .name = "clerk",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&kv_question_type, reply_with_figures_of_desk, 0},
                             {&kv_search_type, list_end_or_find_matching_clients, 0},
                             {&kv_wait_end_type, end_waits_of_all_clients_on_desk, 0},
                             {NULL, NULL, 0}},
};

/* --- shards ----------------------------------------------------------------------------------- */

uint64_t kv_memory_max(void)
{
    return (uint64_t)kv_current_limit(KV_MEMORY);
}

uint64_t kv_memory_max_of_shard(void)
{
    uint64_t bytes = kv_memory_max();

    return bytes != 0 ? bytes / kv_shard_count : UINT64_MAX;
}

/* For each shard the bytes by which its free memory is less than the most that it could be, so that
 * a shard which has told nothing yet seems to have all of it. Relaxed: a hint, which may be old
 * when it is read. */
static _Atomic uint64_t lacks[KV_SHARDS_MAX];

void kv_store_publish_its_free_memory(const struct kv_store *store)
{
    const struct kv_memory *memory = &store->memory;
    uint64_t used = memory->used_bytes < memory->bytes_max ? memory->used_bytes : memory->bytes_max;

    atomic_store_explicit(&lacks[store->index], UINT64_MAX - (memory->bytes_max - used),
                          memory_order_relaxed);
}

void kv_store_forget_published_memory(const struct kv_store *store)
{
    atomic_store_explicit(&lacks[store->index], 0, memory_order_relaxed);
}

bool kv_had_shard_memory_for_bytes(uint32_t shard, uint64_t bytes)
{
    if (shard != KV_NO_SHARD)
        return bytes <= UINT64_MAX - atomic_load_explicit(&lacks[shard], memory_order_relaxed);
    for (shard = 0; shard < kv_shard_count; shard++) {
        if (kv_had_shard_memory_for_bytes(shard, bytes))
            return true;
    }
    return false;
}

int kv_reply_with_figures_of_shard(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_question *question = payload;
    struct kv_store *store = self;

    if (question->kind == KV_RESET_FIGURES)
        store->hits = store->misses = store->expired = 0;
    if (question->kind == KV_LIMIT_MEMORY)
        store->memory.bytes_max = question->value;
    kv_store_publish_its_free_memory(store);
    struct kv_figures figures = {.keys = store->table.count,
                                 .expiring = store->expiring,
                                 .expired = store->expired,
                                 .hits = store->hits,
                                 .misses = store->misses,
                                 .used_bytes = store->memory.used_bytes,
                                 .waiting = store->waiting};
    return domus_reply(stack, &kv_figures_type, &figures);
}

/* --- asking them ------------------------------------------------------------------------------ */

int kv_ask_shards_and_clerks_only(domus_stack *stack, const struct kv_question *question)
{
    int error = 0;

    for (uint32_t i = 0; i < kv_shard_count && error == 0; i++)
        error = domus_ask_add(stack, kv_shards[i], &kv_question_type, question, 0, i);
    for (uint32_t i = 0; i < kv_clerk_count && error == 0; i++)
        error = domus_ask_add(stack, kv_clerks[i], &kv_question_type, question, 0, i);
    return error;
}

int kv_ask_shards_and_clerks_and_wait(domus_stack *stack, const struct kv_question *question,
                                      domus_resumed *then)
{
    int error = kv_ask_shards_and_clerks_only(stack, question);

    return error != 0 ? error : domus_wait_all(stack, then);
}

int kv_add_up_answered_figures(const domus_answer *answers, struct kv_figures *ret_sum)
{
    *ret_sum = (struct kv_figures){0};
    for (; answers != NULL; answers = answers->next) {
        if (answers->error != 0 && kv_cluster == NULL)
            return answers->error;
        if (answers->error != 0 || answers->type != &kv_figures_type) {
            ret_sum->silent++;
            continue;
        }
        const struct kv_figures *each = answers->payload;
        ret_sum->keys += each->keys;
        ret_sum->expiring += each->expiring;
        ret_sum->expired += each->expired;
        ret_sum->hits += each->hits;
        ret_sum->misses += each->misses;
        ret_sum->used_bytes += each->used_bytes;
        ret_sum->waiting += each->waiting;
        ret_sum->clients += each->clients;
        ret_sum->accepted += each->accepted;
        ret_sum->commands += each->commands;
    }
    return 0;
}

int kv_ask_all_clerks_to_search(domus_stack *stack, const struct kv_search *search,
                                domus_resumed *then)
{
    int error = 0;

    for (uint32_t i = 0; i < kv_clerk_count && error == 0; i++)
        error = domus_ask_add(stack, kv_clerks[i], &kv_search_type, search, 0, i);
    return error != 0 ? error : domus_wait_all(stack, then);
}

void kv_print_bytes_with_unit(char text[32], uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 1024 && units[unit + 1] != '\0'; unit++)
        value /= 1024;
    snprintf(text, 32, unit == 0 ? "%.0f%c" : "%.2f%c", value, units[unit]);
}
