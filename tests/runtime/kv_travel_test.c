/* Messages of kv on their way to other nodes: a message that was written as bytes is read as an
 * equal message, and damaged bytes are refused, or read as a message that a shard can handle. */
#include "base/random.h"
#include "tests/support/suite.h"

#include "examples/kv/gift.h"
#include "examples/kv/legacy.h"
#include "examples/kv/transaction.h"
#include "examples/kv/travel.h"

#include <errno.h>
#include <string.h>

#define DAMAGED 3000u /* number of damaged messages that are tried for each kind */

/* The global variables of kv that examples/kv/start.c would define. */
struct kv_settings kv_settings = {.arguments_max = 1000,
                                  .transaction_commands = 100,
                                  .transaction_bytes = 1 << 20,
                                  .transaction_memory = 1 << 20,
                                  .answer_max_bytes = 1 << 20};
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count = 4;

static domus_picklers *picklers;

static void begin_commands_and_picklers(void)
{
    static bool has_begun;
    char error[200];

    if (!has_begun)
        kv_make_index_of_command_names();
    has_begun = true;
    ck_assert_msg(domus_picklers_new(kv_picklers, error, sizeof error, &picklers) == 0, "%s",
                  error);
}

static domus_slice pickle_message(const domus_type *type, const void *payload)
{
    domus_appender to = {.size_max = 0};
    domus_slice bytes;
    char error[200];

    ck_assert_msg(domus_pickle(picklers, NULL, type, payload, &to, error, sizeof error) == 0, "%s",
                  error);
    ck_assert_int_eq(domus_append_end(&to, &bytes), 0);
    return bytes;
}

/* Read a message from its bytes into `payload`. Returns 0, or the error with which the bytes are
 * refused. */
static int unpickle_message(domus_slice bytes, const domus_type **ret_type, void *payload)
{
    domus_pickled pickled;
    int error = domus_pickled_open(picklers, NULL, bytes, &pickled, NULL, 0);

    if (error != 0)
        return error;
    *ret_type = pickled.pickler->type;
    return domus_unpickle(&pickled, NULL, payload, NULL, 0);
}

/* Room for the payload of any message of kv. */
union any {
    domus_resp_command command;
    domus_resp_error error;
    struct kv_question *pointer;
    char bytes[512];
};

static domus_resp_command make_command_of_words(const char *const words[], uint32_t count)
{
    domus_resp_bytes arguments[64];
    domus_resp_command command;

    for (uint32_t i = 0; i < count; i++)
        arguments[i] = (domus_resp_bytes){words[i], strlen(words[i])};
    ck_assert_int_eq(domus_resp_command_make(arguments, count, &command), 0);
    command.version = 3;
    return command;
}

static void expect_same_command(const domus_resp_command *a, const domus_resp_command *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(a->version, b->version);
    for (uint32_t i = 0; i < a->count; i++) {
        domus_slice text = domus_resp_argument(b, i);
        ck_assert(domus_slice_equals(domus_resp_argument(a, i), domus_slice_data(text), text.size));
    }
}

DOMT_TEST(commands_are_read_as_they_were_written)
{
    static const char *const few[] = {"SET", "key", "", "EX", "10"};
    const char *many[40] = {"DEL"};
    const domus_type *type;
    union any payload;

    begin_commands_and_picklers();
    for (uint32_t i = 1; i < 40; i++)
        many[i] = "some key";
    for (int i = 0; i < 2; i++) {
        domus_resp_command command =
            i == 0 ? make_command_of_words(few, 5) : make_command_of_words(many, 40);
        domus_slice bytes = pickle_message(&domus_resp_command_type, &command);
        ck_assert_int_eq(unpickle_message(bytes, &type, &payload), 0);
        ck_assert_ptr_eq(type, &domus_resp_command_type);
        expect_same_command(&command, &payload.command);
        type->release(&payload);
        domus_resp_command_type.release(&command);
        domus_slice_free(bytes);
    }
    domus_picklers_free(picklers);
}

/* Commands that a session would refuse are refused on arrival, too, because a shard relies on the
 * checks. */
DOMT_TEST(commands_that_no_session_lets_through_are_refused)
{
    static const char *const wrong[][4] = {
        {"NONSENSE", "a"}, {"GET"}, {"GET", "a", "b"}, {"PING"}, {"MSET", "a", "b", "c"}, {""}};
    static const uint32_t counts[] = {2, 1, 3, 1, 4, 1};
    const domus_type *type;
    union any payload;

    begin_commands_and_picklers();
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        domus_resp_command command = make_command_of_words(wrong[i], counts[i]);
        domus_slice bytes = pickle_message(&domus_resp_command_type, &command);
        ck_assert_int_eq(unpickle_message(bytes, &type, &payload), -EPROTO);
        domus_resp_command_type.release(&command);
        domus_slice_free(bytes);
    }
    domus_picklers_free(picklers);
}

/* Arguments may not overlap, because a small message could become a very large command then. */
DOMT_TEST(commands_with_overlapping_arguments_are_refused)
{
    static const char *const set[] = {"SET", "key", "value"};
    const domus_type *type;
    union any payload;

    begin_commands_and_picklers();
    domus_resp_command command = make_command_of_words(set, 3);
    /* now the second argument begins within the first one: "keyva" */
    command.spans[2].offset = command.spans[1].offset;
    domus_slice bytes = pickle_message(&domus_resp_command_type, &command);
    ck_assert_int_eq(unpickle_message(bytes, &type, &payload), 0);
    type->release(&payload);
    domus_slice_free(bytes);
    command.spans[2].size = (uint16_t)(command.spans[2].size + 1);
    bytes = pickle_message(&domus_resp_command_type, &command);
    ck_assert_int_eq(unpickle_message(bytes, &type, &payload), -EPROTO);
    domus_resp_command_type.release(&command);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

static struct kv_transaction *make_transaction(void)
{
    static const char *const set[] = {"SET", "a", "1"}, *const ping[] = {"PING"};
    struct kv_transaction *transaction = calloc(1, sizeof *transaction);
    domus_resp_command commands[2] = {make_command_of_words(set, 3),
                                      make_command_of_words(ping, 1)};

    ck_assert_ptr_nonnull(transaction);
    transaction->version = 2;
    transaction->watches = true;
    for (int i = 0; i < 2; i++) {
        const struct kv_command *row = kv_command_find(domus_resp_argument(&commands[i], 0));
        ck_assert_int_eq(kv_transaction_queue_command(transaction, &commands[i], row), 0);
        domus_resp_command_type.release(&commands[i]);
    }
    return transaction;
}

DOMT_TEST(a_transaction_goes_to_its_shard_and_comes_back)
{
    struct kv_transaction *transaction, *other;
    const domus_type *type;
    domus_slice array;
    union any payload;

    begin_commands_and_picklers();
    transaction = make_transaction();
    domus_slice bytes = pickle_message(&kv_exec_type, &transaction);
    ck_assert_int_eq(unpickle_message(bytes, &type, &payload), 0);
    domus_slice_free(bytes);
    memcpy(&other, &payload, sizeof other);
    ck_assert(other->watches);
    ck_assert_uint_eq(other->count, 2);
    ck_assert_uint_eq(other->keyed, 1);
    expect_same_command(&other->queue[0].command, &transaction->queue[0].command);
    ck_assert_int_eq(domus_slice_copy("*1\r\n+OK\r\n", 9, &array), 0);
    other->array.bytes = array;
    bytes = pickle_message(&kv_executed_type, &other);
    kv_transaction_free(other);
    ck_assert_int_eq(unpickle_message(bytes, &type, &payload), 0);
    domus_slice_free(bytes);
    memcpy(&other, &payload, sizeof other);
    ck_assert_uint_eq(other->count, 2);
    ck_assert(domus_slice_equals(other->array.bytes, "*1\r\n+OK\r\n", 9));
    /* the next array has fewer answers than commands were run, so it is refused */
    domus_slice_free(other->array.bytes);
    ck_assert_int_eq(domus_slice_copy("*0\r\n", 4, &other->array.bytes), 0);
    bytes = pickle_message(&kv_executed_type, &other);
    ck_assert_int_eq(unpickle_message(bytes, &type, &payload), -EPROTO);
    domus_slice_free(bytes);
    kv_transaction_free(other);
    kv_transaction_free(transaction);
    domus_picklers_free(picklers);
}

static struct kv_gift *make_gift_of_list(void)
{
    domus_slice elements, key;

    ck_assert_int_eq(domus_slice_copy("*2\r\n$1\r\na\r\n$1\r\nb\r\n", 18, &elements), 0);
    ck_assert_int_eq(domus_slice_copy("list", 4, &key), 0);
    struct kv_gift *gift = kv_gift_new_of_popped_elements(3, KV_TAIL, key, elements, 2);
    ck_assert_ptr_nonnull(gift);
    domus_slice_free(key);
    return gift;
}

/* A gift that was written belongs to the node that reads it, and is given back there. */
DOMT_TEST(a_gift_that_was_written_does_not_come_back_to_its_node)
{
    struct kv_gift *gift = make_gift_of_list(), *other;
    const domus_type *type;
    union any payload;

    begin_commands_and_picklers();
    domus_slice bytes = pickle_message(&kv_gift_type, &gift);
    kv_gift_type.release(&gift);
    ck_assert_ptr_null(kv_take_gifts_returned_to_shard(3));
    ck_assert(!kv_shard_has_gifts_under_way(3));
    ck_assert_int_eq(unpickle_message(bytes, &type, &payload), 0);
    domus_slice_free(bytes);
    kv_gift_type.release(&payload);
    other = kv_take_gifts_returned_to_shard(3);
    ck_assert_ptr_nonnull(other);
    ck_assert_uint_eq(other->count, 2);
    ck_assert_int_eq(other->end, KV_TAIL);
    ck_assert(domus_slice_equals(other->key, "list", 4));
    kv_gift_free(other);
    domus_picklers_free(picklers);
}

/* Damage the bytes of a message at random, and read them. A message that can be read is
 * released. */
static void damage_and_unpickle_message(domus_slice bytes, domi_random *random)
{
    char text[4096];
    const domus_type *type = NULL;
    union any payload;
    domus_slice copy;

    ck_assert_uint_le(bytes.size, sizeof text);
    memcpy(text, domus_slice_data(bytes), bytes.size);
    uint32_t size = bytes.size;
    for (uint64_t times = domi_random_below(random, 4); times != 0; times--)
        text[domi_random_below(random, size)] = (char)domi_random_below(random, 256);
    if (domi_random_below(random, 4) == 0)
        size = (uint32_t)domi_random_below(random, size);
    ck_assert_int_eq(domus_slice_copy(text, size, &copy), 0);
    if (unpickle_message(copy, &type, &payload) == 0 && type->release != NULL)
        type->release(&payload);
    domus_slice_free(copy);
    for (uint32_t i = 0; i < kv_shard_count; i++) {
        struct kv_gift *next;
        for (struct kv_gift *gift = kv_take_gifts_returned_to_shard(i); gift != NULL; gift = next) {
            next = gift->next;
            kv_gift_free(gift);
        }
    }
}

DOMT_TEST(damaged_messages_do_no_harm)
{
    static const char *const words[] = {"HSET", "key", "field", "value"};
    domus_resp_command command = make_command_of_words(words, 4);
    domus_resp_reply reply = {.values = 1};
    struct kv_gift *gift = make_gift_of_list();
    struct kv_piece_of_legacy piece = {.fence = 7, .ends_all = true};
    domus_resp_error text = domus_resp_error_text("%s", KV_SYNTAX);
    domi_random random;

    begin_commands_and_picklers();
    struct kv_transaction *transaction = make_transaction();
    domi_random_init(&random, 1);
    ck_assert_int_eq(domus_slice_copy("*1\r\n+OK\r\n", 9, &reply.bytes), 0);
    transaction->array.bytes = reply.bytes;
    piece.bytes = reply.bytes;
    domus_slice all[] = {pickle_message(&domus_resp_command_type, &command),
                         pickle_message(&domus_resp_reply_type, &reply),
                         pickle_message(&kv_exec_type, &transaction),
                         pickle_message(&kv_executed_type, &transaction),
                         pickle_message(&kv_gift_type, &gift),
                         pickle_message(&kv_legacy_piece_type, &piece),
                         pickle_message(&domus_resp_error_type, &text),
                         pickle_message(&domus_resp_simple_type, &(domus_resp_simple){"hash"})};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (uint32_t j = 0; j < DAMAGED; j++)
            damage_and_unpickle_message(all[i], &random);
        domus_slice_free(all[i]);
    }
    domus_resp_command_type.release(&command);
    kv_transaction_free(transaction);
    kv_gift_free(gift);
    domus_picklers_free(picklers);
}

DOMT_SUITE(60)
