/* The frames of groups over the cluster, as a stranger may send them: interest is applied in order,
 * and wrong bytes are counted and change nothing. The test plays a node (the stranger) beside a
 * real one. */
#include "protocols/cluster/link.h"
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/group.h>

#include <stdio.h>
#include <string.h>

#define STRANGER 77u   /* number of the node that the test plays */
#define MANY     2000u /* number of groups, more than one batch of interest can name */

static struct {
    domus_testkit_cluster *sim;
    uint32_t number;
    domus_cluster *cluster;
    domt_member stranger;
    domi_link link;
    domus_slice word; /* a pickled word, without the name of a group */
    domus_address user;
    char subject[64]; /* the subject under which the stranger gets messages */

    /* Number of words that the user on the real node has received, and whether the last one came
     * from another node. */
    unsigned words;
    bool is_remote;

    /* Counts and contents of what the real node has sent to the stranger. */
    unsigned publications;
    /* number of the change that the real node's last answer confirms; 1000: no answer */
    uint64_t held;
    char told[256];               /* the real node's changes of interest, as "+name" or "-name" */
    uint64_t told_to;             /* number of the real node's last change of interest */
    domi_wire_envelope last;      /* the envelope of the last publication from the real node */
    unsigned char last_rest[256]; /* the bytes of the last publication from the real node */
} world;

typedef struct word {
    uint64_t value;
} word;

static const domus_type word_type = {.name = "frames word", .size = sizeof(word)};
static const domus_type publish_type = {.name = "frames publish", .size = sizeof(word)};
static const domus_type leave_type = {.name = "frames leave"};
static const domus_type join_many_type = {.name = "frames join many"};
static const domus_pickle_field fields[] = {{DOMUS_PICKLE(1, word, value, UINT(0))}};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(word, fields);
static const domus_pickler picklers[] = {{.type = &word_type, .version = 1, .table = &table},
                                         {.type = NULL}};

/* --- the user --------------------------------------------------------------------------------- */

typedef struct user {
    domus_group group;
} user;

static int on_word_count_it(domus_stack *stack, void *self, const void *payload)
{
    world.words++;
    world.is_remote = domus_address_is_remote(domus_sender(stack));
    return 0;
}

static int on_order_publish_word(domus_stack *stack, void *self, const void *payload)
{
    return domus_publish(stack, ((user *)self)->group, &word_type, payload);
}

static int on_order_leave_group(domus_stack *stack, void *self, const void *payload)
{
    return domus_group_leave(stack, ((user *)self)->group);
}

static int on_order_join_many_groups(domus_stack *stack, void *self, const void *payload)
{
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        domus_group group;
        snprintf(name, sizeof name, "many.%u", i);
        ck_assert_int_eq(domus_cluster_group_open(stack, world.cluster, name, &group), 0);
        ck_assert_int_eq(domus_group_join(stack, group), 0);
    }
    return 0;
}

static int on_mount_open_and_join_group(domus_stack *stack, void *self_)
{
    user *self = self_;
    int error = domus_cluster_group_open(stack, world.cluster, "news", &self->group);

    return error != 0 ? error : domus_group_join(stack, self->group);
}

static const domus_behaviour user_behaviour = {
    .name = "user",
    .state_size = sizeof(user),
    .on_mount = on_mount_open_and_join_group,
    .on = (const domus_on[]){{&word_type, on_word_count_it, 0},
                             {&publish_type, on_order_publish_word, 0},
                             {&leave_type, on_order_leave_group, 0},
                             {&join_many_type, on_order_join_many_groups, 0},
                             {NULL, NULL, 0}},
};

/* --- the stranger ----------------------------------------------------------------------------- */

static void record_interest_told_to_stranger(const domi_wire_envelope *envelope)
{
    size_t used = strlen(world.told);

    for (uint32_t at = 0; at < envelope->rest_size && used < sizeof world.told - 70;
         at += 2u + envelope->rest[at + 1])
        used += (size_t)snprintf(world.told + used, sizeof world.told - used, "%c%.*s",
                                 envelope->rest[at] == 1 ? '+' : '-', envelope->rest[at + 1],
                                 (const char *)envelope->rest + at + 2);
    world.told_to = envelope->id;
}

static void record_envelope_received_by_stranger(const domi_wire_envelope *envelope)
{
    if (envelope->kind == DOMI_TO_INTEREST)
        record_interest_told_to_stranger(envelope);
    if (envelope->kind == DOMI_TO_HELD)
        world.held = envelope->id;
    if (envelope->kind != DOMI_TO_PUBLISH)
        return;
    world.publications++;
    world.last = *envelope;
    ck_assert_uint_le(envelope->rest_size, sizeof world.last_rest);
    memcpy(world.last_rest, envelope->rest, envelope->rest_size);
}

static void receive_batch_to_stranger(void *context, const domus_testkit_happening *happening)
{
    const unsigned char *bytes = happening->payload;
    domi_batch_foot foot;
    uint32_t at = 0;
    domi_wire_envelope envelope;

    if (happening->fate != DOMUS_FATE_DELIVERED || strcmp(happening->subject, world.subject) != 0 ||
        !domi_batch_foot_read(bytes, happening->payload_size, &foot))
        return;
    domi_link_news news = domi_link_update_by_received_foot(&world.link, &foot, 1);
    if (news.is_over)
        (void)domi_link_end_session(&world.link, true);
    if (!news.takes)
        return;
    while (at < happening->payload_size - DOMI_BATCH_FOOT &&
           domi_envelope_read(bytes, happening->payload_size - DOMI_BATCH_FOOT, &at, &envelope))
        record_envelope_received_by_stranger(&envelope);
}

static uint64_t id_of_real_node(void)
{
    return domus_cluster_here(world.cluster).id;
}

static void flush_link_of_stranger(void)
{
    domus_slice batch;
    char subject[64];

    if (domi_link_get_next_batch(&world.link, 1, true, &batch) != 1)
        return;
    snprintf(subject, sizeof subject, "dm.sim.t.%016llx.0", (unsigned long long)id_of_real_node());
    domt_member_publish_bytes(&world.stranger, subject, domus_slice_data(batch), batch.size);
    domus_slice_free(batch);
}

static void advance_with_heartbeats(uint64_t time_ns)
{
    const domi_heartbeat beat = {.id = STRANGER,
                                 .incarnation = 1,
                                 .gateways = 1,
                                 .state = DOMI_BEAT_UP,
                                 .name = "stranger",
                                 .heard_count = 1};
    const uint64_t heard[] = {id_of_real_node()};
    unsigned char bytes[DOMI_HEARTBEAT_MAX];

    for (uint64_t passed = 0; passed < time_ns; passed += 50 * DOMT_MS) {
        domt_member_publish_bytes(&world.stranger, "dm.sim.b", bytes,
                                  domi_heartbeat_write(&beat, heard, bytes));
        flush_link_of_stranger();
        domt_pass_time(world.sim, 50 * DOMT_MS);
    }
}

static void set_up_node_and_stranger(void)
{
    const word what = {1};
    domus_picklers *all;
    domus_appender to = {0};
    char error[200] = "";

    memset(&world, 0, sizeof world);
    world.held = 1000;
    world.sim = domt_cluster_new(7, NULL);
    ck_assert_int_eq(domus_testkit_cluster_add_node(world.sim, NULL, &world.number), 0);
    domus_system *system = domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.number));
    const domus_cluster_options options = {
        .name = "sim",
        .node = "a",
        .heartbeat_ns = 100 * DOMT_MS,
        .down_after_ns = 600 * DOMT_MS,
        .picklers = picklers,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(world.sim, world.number),
        .seed = 1,
    };
    ck_assert_msg(domus_cluster_open(system, &options, error, sizeof error, &world.cluster) == 0,
                  "%s", error);
    domt_member_add_with_client(world.sim, NULL, &world.stranger);
    snprintf(world.subject, sizeof world.subject, "dm.sim.t.%016llx.0",
             (unsigned long long)STRANGER);
    domi_link_init(&world.link, STRANGER, id_of_real_node(), 0);
    domus_testkit_cluster_observe(world.sim, receive_batch_to_stranger, NULL);
    domt_pass_time(world.sim, 100 * DOMT_MS);
    (void)domt_member_subscribe(&world.stranger, world.subject, NULL);
    ck_assert_int_eq(domus_picklers_new(picklers, NULL, 0, &all), 0);
    ck_assert_int_eq(domus_pickle(all, NULL, &word_type, &what, &to, NULL, 0), 0);
    ck_assert_int_eq(domus_append_end(&to, &world.word), 0);
    domus_picklers_free(all);
    advance_with_heartbeats(500 * DOMT_MS);
    ck_assert_int_eq(domus_outside_spawn(system, &user_behaviour, NULL, &world.user), 0);
    advance_with_heartbeats(200 * DOMT_MS);
}

static void free_link_sim_and_cluster(void)
{
    domi_link_fini(&world.link);
    domus_slice_free(world.word);
    domus_testkit_cluster_free(world.sim);
    domus_cluster_close(world.cluster);
}

static void send_envelope_of_stranger(const domi_wire_envelope *envelope)
{
    ck_assert_int_eq(domi_link_add_envelope(&world.link, envelope), 0);
    advance_with_heartbeats(100 * DOMT_MS);
}

/* Send the changes `from` + 1 to `to`, with these records, as the stranger's interest in groups. */
static void send_interest_of_stranger(uint64_t from, uint64_t to, const char *records, size_t size)
{
    world.held = 1000;
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_INTEREST,
                                                    .time_ns = from,
                                                    .id = to,
                                                    .rest = (const unsigned char *)records,
                                                    .rest_size = (uint32_t)size});
}

#define TELL(from, to, records) send_interest_of_stranger(from, to, records, sizeof(records) - 1)

static void send_order_to_user(const domus_type *type)
{
    const word what = {5};

    ck_assert_int_eq(domus_outside_notice(
                         domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.number)),
                         world.user, type, &what),
                     0);
    advance_with_heartbeats(100 * DOMT_MS);
}

static uint64_t count_wrong_messages(void)
{
    return domus_cluster_count(world.cluster).wrong;
}

/* --- interest --------------------------------------------------------------------------------- */

DOMT_TEST(node_tells_of_its_first_member_and_when_the_last_has_left)
{
    set_up_node_and_stranger();
    ck_assert_int_eq(strncmp(world.told, "+news", 5), 0);
    ck_assert_uint_eq(world.told_to, 1);
    /* the node sends its changes again until they are confirmed */
    advance_with_heartbeats(500 * DOMT_MS);
    ck_assert_uint_gt(strlen(world.told), 2 * strlen("+news"));
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = 1});
    advance_with_heartbeats(200 * DOMT_MS);
    world.told[0] = '\0';
    advance_with_heartbeats(500 * DOMT_MS);
    ck_assert_str_eq(world.told, "");
    /* the stranger confirms change 7, which the node has never made */
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = 7});
    send_order_to_user(&leave_type);
    advance_with_heartbeats(100 * DOMT_MS);
    ck_assert_str_eq(world.told, "-news");
    ck_assert_uint_eq(world.told_to, 2);
    free_link_sim_and_cluster();
}

/* Begin a test in which the stranger has heard of many groups. */
static void set_up_stranger_who_heard_many_groups(void)
{
    set_up_node_and_stranger();
    send_order_to_user(&join_many_type);
    while (world.told_to < MANY + 1)
        send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = world.told_to});
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = MANY + 1});
    world.told[0] = '\0';
}

/* Let the stranger be silent until the real node regards it as down. */
static void silence_stranger_until_down(void)
{
    domus_node_info nodes[2];

    domt_pass_time(world.sim, 2 * DOMT_SECOND);
    ck_assert_uint_eq(domus_cluster_nodes(world.cluster, nodes, 2), 2);
    ck_assert_int_eq(nodes[1].state, DOMUS_NODE_DOWN);
    world.told[0] = '\0';
}

/* The stranger may have forgotten the interest of the real node, for instance after an hour of
 * silence between them. */
DOMT_TEST(node_that_was_down_is_told_of_members_again)
{
    set_up_node_and_stranger();
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = 1});
    silence_stranger_until_down();
    advance_with_heartbeats(500 * DOMT_MS);
    ck_assert_int_eq(strncmp(world.told, "+news", 5), 0);
    ck_assert_uint_eq(world.told_to, 1);
    free_link_sim_and_cluster();
}

/* The stranger says that it holds no change of interest: it has forgotten the real node, which was
 * paused for an hour. */
DOMT_TEST(node_that_has_forgotten_what_it_held_says_so)
{
    set_up_stranger_who_heard_many_groups();
    advance_with_heartbeats(7 * DOMT_SECOND);
    ck_assert_int_eq(strncmp(world.told, "+many.1999", 10), 0);
    world.told[0] = '\0';
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = 0});
    advance_with_heartbeats(300 * DOMT_MS);
    ck_assert_ptr_nonnull(strstr(world.told, "+news+many.0"));
    free_link_sim_and_cluster();
}

/* The stranger says up to which change it holds the interest of the real node; these changes are
 * not sent again, however many there are. */
DOMT_TEST(node_that_was_down_and_has_forgotten_nothing_hears_what_is_new)
{
    set_up_stranger_who_heard_many_groups();
    silence_stranger_until_down();
    advance_with_heartbeats(500 * DOMT_MS);
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_HELD, .id = MANY + 1});
    world.told[0] = '\0';
    send_order_to_user(&leave_type);
    advance_with_heartbeats(200 * DOMT_MS);
    ck_assert_int_eq(strncmp(world.told, "-news", 5), 0);
    ck_assert_uint_eq(world.told_to, MANY + 2);
    free_link_sim_and_cluster();
}

DOMT_TEST(publications_go_to_nodes_that_have_members)
{
    set_up_node_and_stranger();
    send_order_to_user(&publish_type);
    ck_assert_uint_eq(world.publications, 0);
    TELL(0, 1, "\1\4news");
    ck_assert_uint_eq(world.held, 1);
    send_order_to_user(&publish_type);
    ck_assert_uint_eq(world.publications, 1);
    ck_assert_uint_eq(world.last.rest_size, world.word.size + 5);
    ck_assert_mem_eq(world.last_rest + world.word.size, "news\4", 5);
    ck_assert_uint_ne(world.last.from.lease, 0);
    TELL(1, 2, "\0\4news");
    send_order_to_user(&publish_type);
    ck_assert_uint_eq(world.publications, 1);
    ck_assert_uint_eq(count_wrong_messages(), 0);
    free_link_sim_and_cluster();
}

DOMT_TEST(changes_behind_a_gap_wait_for_those_before)
{
    set_up_node_and_stranger();
    TELL(2, 3, "\1\4news");
    ck_assert_uint_eq(world.held, 0);
    send_order_to_user(&publish_type);
    ck_assert_uint_eq(world.publications, 0);
    TELL(0, 2, "\1\4news\1\5other");
    ck_assert_uint_eq(world.held, 2);
    TELL(0, 1, "\1\4news"); /* the stranger repeats a change that was applied */
    ck_assert_uint_eq(world.held, 2);
    send_order_to_user(&publish_type);
    ck_assert_uint_eq(world.publications, 1);
    ck_assert_uint_eq(count_wrong_messages(), 0);
    free_link_sim_and_cluster();
}

DOMT_TEST(malformed_interest_is_counted_as_wrong)
{
    static const struct {
        const char *records;
        size_t size;
    } rows[] = {{"\2\4news", 6},
                {"\1\5news", 6},
                {"\1\0", 2},
                {"\1", 1},
                {"\1\3a b", 5},
                {"\1\3a\0b", 5},
                {"\1\3a\x7f"
                 "b",
                 5}};
    char longest[2 + 64];

    set_up_node_and_stranger();
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        send_interest_of_stranger(0, 1, rows[i].records, rows[i].size);
        ck_assert_msg(count_wrong_messages() == i + 1 && world.held == 1000, "row %u", i);
    }
    uint64_t before = count_wrong_messages();
    memset(longest, 'n', sizeof longest);
    longest[0] = 1;
    longest[1] = 64;
    send_interest_of_stranger(0, 1, longest, sizeof longest);
    ck_assert_uint_eq(count_wrong_messages(), before + 1);
    longest[1] = 63;
    send_interest_of_stranger(0, 1, longest, sizeof longest - 1);
    ck_assert_uint_eq(world.held, 1);
    TELL(1, 1, "\1\4news"); /* changes 2 to 1: an announcement that contains no change */
    ck_assert_uint_eq(count_wrong_messages(), before + 2);
    send_order_to_user(&publish_type);
    ck_assert_uint_eq(world.publications, 0);
    free_link_sim_and_cluster();
}

/* --- publications ----------------------------------------------------------------------------- */

/* Let the stranger publish the word, with these bytes behind it. */
static void publish_from_stranger_with_tail(const char *tail, size_t size)
{
    unsigned char bytes[256];

    memcpy(bytes, domus_slice_data(world.word), world.word.size);
    memcpy(bytes + world.word.size, tail, size);
    send_envelope_of_stranger(
        &(domi_wire_envelope){.kind = DOMI_TO_PUBLISH,
                              .from = {.number = 4, .lease = 1},
                              .rest = bytes,
                              .rest_size = (uint32_t)(world.word.size + size)});
}

#define PUBLISH(tail) publish_from_stranger_with_tail(tail, sizeof(tail) - 1)

DOMT_TEST(publication_comes_to_members_in_the_name_of_its_publisher)
{
    set_up_node_and_stranger();
    PUBLISH("news\4");
    ck_assert_uint_eq(world.words, 1);
    ck_assert(world.is_remote);
    send_order_to_user(&leave_type);
    PUBLISH("news\4"); /* the group has no member on the real node, which is no error */
    ck_assert_uint_eq(world.words, 1);
    ck_assert_uint_eq(count_wrong_messages(), 0);
    free_link_sim_and_cluster();
}

DOMT_TEST(malformed_publication_is_counted_as_wrong)
{
    set_up_node_and_stranger();
    PUBLISH("newt\4");   /* the name of a group that is not open on the real node */
    PUBLISH("news\0");   /* an empty name of a group */
    PUBLISH("ne\1s\4");  /* a name of a group with an invalid byte */
    PUBLISH("news\377"); /* a length of the name beyond the end of the bytes */
    PUBLISH("xnews\4");  /* a byte between the word and the name */
    ck_assert_uint_eq(count_wrong_messages(), 5);
    /* a publication without bytes */
    send_envelope_of_stranger(&(domi_wire_envelope){.kind = DOMI_TO_PUBLISH});
    send_envelope_of_stranger(&(domi_wire_envelope){
        .kind = DOMI_TO_PUBLISH, .rest = (const unsigned char *)"news\4", .rest_size = 5});
    ck_assert_uint_eq(count_wrong_messages(), 7);
    ck_assert_uint_eq(world.words, 0);
    PUBLISH("news\4");
    ck_assert_uint_eq(world.words, 1);
    free_link_sim_and_cluster();
}

DOMT_SUITE(60)
