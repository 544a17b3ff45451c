/* The real node, and the stranger that the test plays (tests/cluster/holder.h). */
#include "tests/cluster/holder.h"

#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/grain.h>
#include <domus/remote.h>

#include <stdio.h>
#include <string.h>

domt_holding domt_holder;

/* --- the grains' kind, and a user ------------------------------------------------------------- */

typedef struct parcel {
    char text[3100];
} parcel;

static const domus_type parcel_type = {.name = "parcel", .size = sizeof(parcel)};
static const domus_pickle_field fields[] = {{DOMUS_PICKLE(1, parcel, text, TEXT(""))}};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(parcel, fields);
static const domus_pickler picklers[] = {{.type = &parcel_type, .version = 1, .table = &table},
                                         {.type = NULL}};

static int ignore_parcel(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_behaviour depot = {
    .name = "depot", .on = (const domus_on[]){{&parcel_type, ignore_parcel, 0}, {NULL, NULL, 0}}};
static const domus_grain_kind kinds[] = {{.name = "depot", .behaviour = &depot}, {.name = NULL}};
/* two keys of grains, which lie in two different parts */
static const char *const keys[] = {"k", "other"};

typedef struct user {
    domus_grains depots;
    domus_conversation asking;
} user;

typedef struct order {
    domt_holder_verb verb;
    uint32_t key, number, count, size;
} order;
static const domus_type order_type = {.name = "order", .size = sizeof(order)};

static int on_answer_store_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_holder.error = answer->error;
    return 0;
}

static int ask_grain_of_user(domus_stack *stack, user *self, const char *key, const parcel *what)
{
    int error = domus_grain_ask_add(stack, self->depots, key, &parcel_type, what, 0, 0);

    if (error == 0)
        error = domus_conversation_of(stack, &self->asking);
    return error != 0 ? error : domus_wait_all(stack, on_answer_store_error);
}

/* Write into the parcel a text of `size` bytes, which begins with the number. */
static void make_numbered_parcel(uint32_t number, uint32_t size, parcel *ret_parcel)
{
    int used = snprintf(ret_parcel->text, sizeof ret_parcel->text, "no.%u,", number);

    if (size <= (uint32_t)used)
        return;
    memset(ret_parcel->text + used, 'x', size - (uint32_t)used);
    ret_parcel->text[size] = '\0';
}

static int on_order_run_verb(domus_stack *stack, void *self_, const void *payload)
{
    user *self = self_;
    const order *what = payload;
    parcel one;
    int error = 0;

    if (what->verb == DOMT_CANCEL)
        return domus_cancel(stack, self->asking);
    make_numbered_parcel(what->number, what->size, &one);
    if (what->verb == DOMT_ASK)
        return ask_grain_of_user(stack, self, keys[what->key], &one);
    for (uint32_t i = 0; i < what->count && error == 0; i++) {
        make_numbered_parcel(what->number + i, what->size, &one);
        error = domus_grain_notice(stack, self->depots, keys[what->key], &parcel_type, &one);
    }
    return error;
}

static int on_mount_open_kinds(domus_stack *stack, void *self_)
{
    user *self = self_;
    int error = domus_grain_open(stack, &kinds[0], &self->depots);

    for (uint32_t i = 0; i < 2 && error == 0; i++)
        domt_holder.parts[i] = (uint32_t)domus_remote_part_of(self->depots, keys[i]);
    return error;
}

static const domus_behaviour using = {
    .name = "user",
    .state_size = sizeof(user),
    .on_mount = on_mount_open_kinds,
    .on = (const domus_on[]){{&order_type, on_order_run_verb, 0}, {NULL, NULL, 0}},
};

/* --- the stranger -------------------------------------------------------------------------------
 */

void domt_holder_queue_envelope(const domi_wire_envelope *envelope)
{
    ck_assert_int_eq(domi_link_add_envelope(&domt_holder.link, envelope), 0);
}

void domt_holder_queue_returned_message(const domi_wire_envelope *envelope)
{
    domi_wire_envelope back = *envelope;

    back.kind = DOMI_TO_RETURN;
    back.error = envelope->kind;
    domt_holder_queue_envelope(&back);
}

static void record_parcel_to_stranger(const domi_wire_envelope *envelope)
{
    const char *number = memmem(envelope->rest, envelope->rest_size, "no.", 3);

    ck_assert_ptr_nonnull(number);
    if (envelope->rest[7] != 'k') {
        domt_holder.bytes = DOMI_ENVELOPE_BYTES + envelope->rest_size;
        return;
    }
    ck_assert_uint_lt(domt_holder.count, DOMT_HEARD);
    ck_assert_uint_le(envelope->rest_size, sizeof domt_holder.heard[0].rest);
    domt_parcel_heard *at = &domt_holder.heard[domt_holder.count++];
    at->envelope = *envelope;
    at->envelope.rest = at->rest;
    memcpy(at->rest, envelope->rest, envelope->rest_size);
    (void)sscanf(number, "no.%5u", &at->number);
    if (domt_holder.returns)
        domt_holder_queue_returned_message(envelope);
}

static void record_envelope_to_stranger(const domi_wire_envelope *envelope)
{
    if (envelope->kind == DOMI_TO_GRAIN_NOTICE || envelope->kind == DOMI_TO_GRAIN_ASK) {
        record_parcel_to_stranger(envelope);
        return;
    }
    domt_holder.answers[envelope->kind]++;
    domt_holder.last = *envelope;
    if (envelope->kind == DOMI_TO_FENCE && domt_holder.answers_fences)
        domt_holder_queue_envelope(
            &(domi_wire_envelope){.kind = DOMI_TO_FENCED, .id = envelope->id});
}

/* Count the real node's requests for an entry of the store, by part. */
static void count_read_of_part(const domus_testkit_happening *happening)
{
    static const char key[] = "$KV.dm_sim_names.g.";
    char text[128] = "";
    uint32_t part;

    if (strcmp(happening->subject, "$JS.API.STREAM.MSG.GET.KV_dm_sim_names") != 0 ||
        happening->payload_size >= sizeof text)
        return;
    memcpy(text, happening->payload, happening->payload_size);
    const char *at = strstr(text, key);
    if (at != NULL && sscanf(at + strlen(key), "%3u", &part) == 1 && part < DOMT_PARTS)
        domt_holder.reads[part]++;
}

static void receive_batch_to_stranger(void *context, const domus_testkit_happening *happening)
{
    const unsigned char *bytes = happening->payload;
    domi_batch_foot foot;
    uint32_t at = 0;
    domi_wire_envelope envelope;

    if (happening->fate == DOMUS_FATE_PUBLISHED)
        count_read_of_part(happening);
    if (happening->fate != DOMUS_FATE_DELIVERED ||
        strcmp(happening->subject, domt_holder.subject) != 0 ||
        !domi_batch_foot_read(bytes, happening->payload_size, &foot) ||
        !domi_link_update_by_received_foot(&domt_holder.link, &foot, 1).takes)
        return;
    while (at < happening->payload_size - DOMI_BATCH_FOOT &&
           domi_envelope_read(bytes, happening->payload_size - DOMI_BATCH_FOOT, &at, &envelope))
        record_envelope_to_stranger(&envelope);
}

static uint64_t id_of_real_node(void)
{
    return domus_cluster_here(domt_holder.cluster).id;
}

static void flush_link_of_stranger(void)
{
    uint64_t last = domt_holder.link.their_last;
    domus_slice batch;
    char subject[64];

    if (!domt_holder.is_deaf)
        domt_holder.confirms = last;
    domt_holder.link.their_last = domt_holder.confirms;
    int flushed = domi_link_get_next_batch(&domt_holder.link, 1, true, &batch);
    domt_holder.link.their_last = last;
    ck_assert_int_eq(flushed, 1);
    snprintf(subject, sizeof subject, "dm.sim.t.%016llx.0", (unsigned long long)id_of_real_node());
    domt_member_publish_bytes(&domt_holder.stranger, subject, domus_slice_data(batch), batch.size);
    domus_slice_free(batch);
}

void domt_holder_advance_and_send(uint64_t time_ns)
{
    const domi_heartbeat beat = {.id = DOMT_STRANGER,
                                 .incarnation = 1,
                                 .gateways = 1,
                                 .state = DOMI_BEAT_UP,
                                 .name = "stranger",
                                 .hosts_grains = true,
                                 .heard_count = 1};
    const uint64_t ids[] = {id_of_real_node()};
    unsigned char bytes[DOMI_HEARTBEAT_MAX];

    for (uint64_t passed = 0; passed < time_ns; passed += 10 * DOMT_MS) {
        if (passed % (50 * DOMT_MS) == 0)
            domt_member_publish_bytes(&domt_holder.stranger, "dm.sim.b", bytes,
                                      domi_heartbeat_write(&beat, ids, bytes));
        flush_link_of_stranger();
        domt_pass_time(domt_holder.sim, 10 * DOMT_MS);
    }
}

/* --- the world ----------------------------------------------------------------------------------
 */

static domus_system *system_of_real_node(void)
{
    return domus_testkit_system(domus_testkit_cluster_kit(domt_holder.sim, domt_holder.number));
}

void domt_holder_begin_world(void)
{
    char error[200] = "";

    memset(&domt_holder, 0, sizeof domt_holder);
    domt_holder.answers_fences = true;
    domt_holder.sim = domt_cluster_new(7, NULL);
    ck_assert_int_eq(domus_testkit_cluster_add_node(domt_holder.sim, NULL, &domt_holder.number), 0);
    const domus_cluster_options options = {
        .name = "sim",
        .node = "a",
        .heartbeat_ns = DOMT_BEAT_NS,
        .down_after_ns = DOMT_DOWN_NS,
        .queued_max = DOMT_QUEUED,
        .picklers = picklers,
        .grains = kinds,
        .hosts_no_grains = true,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(domt_holder.sim, domt_holder.number),
        .seed = 1,
    };
    ck_assert_msg(domus_cluster_open(system_of_real_node(), &options, error, sizeof error,
                                     &domt_holder.cluster) == 0,
                  "%s", error);
    domt_member_add_with_client(domt_holder.sim, NULL, &domt_holder.stranger);
    snprintf(domt_holder.subject, sizeof domt_holder.subject, "dm.sim.t.%016llx.0",
             (unsigned long long)DOMT_STRANGER);
    domi_link_init(&domt_holder.link, DOMT_STRANGER, id_of_real_node(), 0);
    domus_testkit_cluster_observe(domt_holder.sim, receive_batch_to_stranger, NULL);
    domt_pass_time(domt_holder.sim, 100 * DOMT_MS);
    (void)domt_member_subscribe(&domt_holder.stranger, domt_holder.subject, NULL);
    ck_assert_int_eq(domus_outside_spawn(system_of_real_node(), &using, NULL, &domt_holder.user),
                     0);
    domt_holder_advance_and_send(DOMT_SECOND);
    ck_assert_uint_ne(domt_holder.parts[0], domt_holder.parts[1]);
}

void domt_holder_end_world(void)
{
    domi_link_fini(&domt_holder.link);
    domus_testkit_cluster_free(domt_holder.sim);
    domus_cluster_close(domt_holder.cluster);
}

void domt_holder_order_user(domt_holder_verb verb, uint32_t key, uint32_t number, uint32_t count,
                            uint32_t size)
{
    const order what = {verb, key, number, count, size};

    if (verb == DOMT_ASK)
        domt_holder.error = 1;
    ck_assert_int_eq(
        domus_outside_notice(system_of_real_node(), domt_holder.user, &order_type, &what), 0);
    domt_holder_advance_and_send(10 * DOMT_MS);
}

void domt_holder_give_part_to_stranger(uint32_t key)
{
    char subject[64];
    unsigned char id[8];

    for (uint32_t i = 0; i < 8; i++)
        id[i] = (unsigned char)(DOMT_STRANGER >> 8 * i);
    snprintf(subject, sizeof subject, "$KV.dm_sim_names.g.%u", domt_holder.parts[key]);
    domt_member_publish_bytes(&domt_holder.stranger, subject, id, sizeof id);
}

static uint64_t count_queued_bytes(void)
{
    domus_node_info infos[2];

    ck_assert_uint_eq(domus_cluster_nodes(domt_holder.cluster, infos, 2), 2);
    return infos[1].queued_bytes;
}

void domt_holder_fill_link_to_stranger(void)
{
    domt_holder_order_user(DOMT_NOTICE, 1, 0, 1, 1000);
    domt_holder_advance_and_send(50 * DOMT_MS);
    domt_holder.is_deaf = true;
    domt_holder_order_user(DOMT_NOTICE, 1, 1, (DOMT_QUEUED - 500) / domt_holder.bytes, 1000);
    ck_assert(count_queued_bytes() > 63000 && count_queued_bytes() <= DOMT_QUEUED);
}

void domt_holder_check_heard_numbers(const uint32_t *numbers, uint32_t count)
{
    char shown[8 * DOMT_HEARD] = "";

    for (uint32_t i = 0; i < domt_holder.count; i++)
        snprintf(shown + strlen(shown), 8, " %u", domt_holder.heard[i].number);
    ck_assert_msg(domt_holder.count == count, "not %u messages:%s", count, shown);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(domt_holder.heard[i].number == numbers[i], "another order:%s", shown);
}

uint64_t domt_holder_count_waiting_messages(void)
{
    return domus_cluster_count_grains(domt_holder.cluster).waiting;
}
