/* This bench measures what it costs to write a message as bytes and to read it again
 * (domus/pickle.h), beside msgpack-c by itself: the same bytes, written by its packer into its
 * growing buffer, and read by its unpacker into its objects, of which the struct is then filled.
 *
 * `flat` has 6 fields; `items` has a list of 10 structs with a text each, in memory of their own;
 * `slice` has 16 KiB that are shared with the page of the message. The figures are the CPU time of
 * this thread for one message, the median of ROUNDS.
 *
 * bench_pickle [MESSAGES]. stdout: lines `name value unit`. */
#include "bench/support/measure.h"

#include <domus/pickle.h>

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS   9u
#define MESSAGES 200000u /* number of messages that are measured in a round */
#define ITEMS    10u

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "pickle: %s\n", what);
    exit(1);
}

/* --- the messages ----------------------------------------------------------------------------- */

struct flat {
    uint64_t id;
    uint32_t price;
    int32_t delta;
    double rate;
    bool paid;
    char who[16];
};

struct item {
    uint32_t price;
    char *name;
};

struct items {
    uint64_t id;
    struct item *items;
    uint32_t count;
};

struct large {
    uint64_t id;
    domus_slice bytes;
};

static const domus_pickle_field flat_fields[] = {
    {DOMUS_PICKLE(1, struct flat, id, UINT(0))},
    {DOMUS_PICKLE(2, struct flat, price, UINT_RANGE(1, 1000000, 1))},
    {DOMUS_PICKLE(3, struct flat, delta, INT(0))},
    {DOMUS_PICKLE(4, struct flat, rate, REAL(0))},
    {DOMUS_PICKLE(5, struct flat, paid, BOOL(false))},
    {DOMUS_PICKLE(6, struct flat, who, TEXT(NULL))},
};
static const domus_pickle_table flat_table = DOMUS_PICKLE_TABLE(struct flat, flat_fields);
static const domus_pickle_field item_fields[] = {
    {DOMUS_PICKLE(1, struct item, price, UINT(0))},
    {DOMUS_PICKLE(2, struct item, name, OWNED_TEXT(100, NULL))},
};
static const domus_pickle_table item_table = DOMUS_PICKLE_TABLE(struct item, item_fields);
static const domus_pickle_field items_fields[] = {
    {DOMUS_PICKLE(1, struct items, id, UINT(0))},
    {DOMUS_PICKLE_OWNED(2, struct items, items, count, 100, STRUCT(item_table))},
};
static const domus_pickle_table items_table = DOMUS_PICKLE_TABLE(struct items, items_fields);
static const domus_pickle_field large_fields[] = {
    {DOMUS_PICKLE(1, struct large, id, UINT(0))},
    {DOMUS_PICKLE(2, struct large, bytes, SLICE(1 << 20))},
};
static const domus_pickle_table large_table = DOMUS_PICKLE_TABLE(struct large, large_fields);

static void release_items(void *payload)
{
    domus_pickle_release(&items_table, payload);
}

static void release_large(void *payload)
{
    domus_pickle_release(&large_table, payload);
}

static const domus_type flat_type = {"shop.flat", sizeof(struct flat), NULL};
static const domus_type items_type = {"shop.items", sizeof(struct items), release_items};
static const domus_type large_type = {"shop.slice", sizeof(struct large), release_large};
static const domus_pickler list[] = {
    {.type = &flat_type, .version = 1, .table = &flat_table},
    {.type = &items_type, .version = 1, .table = &items_table},
    {.type = &large_type, .version = 1, .table = &large_table},
    {.type = NULL},
};

static domus_picklers *picklers;

/* --- domus ------------------------------------------------------------------------------------ */

/* A message that is measured: `payload` is written to `buffer`, and `bytes` are read back into a
 * message. */
struct subject {
    const domus_type *type;
    const void *payload;
    domus_slice bytes;
};

static char buffer[65536];

static void write_message(const struct subject *subject)
{
    char error[DOMUS_PICKLE_ERROR_MAX];
    size_t size;

    if (domus_pickle_into(picklers, NULL, subject->type, subject->payload, buffer, sizeof buffer,
                          &size, error, sizeof error) != 0)
        exit_with_error(error);
}

static void read_message(const struct subject *subject)
{
    char error[DOMUS_PICKLE_ERROR_MAX];
    domus_pickled pickled;
    uint64_t payload[16];

    if (domus_pickled_open(picklers, NULL, subject->bytes, &pickled, error, sizeof error) != 0 ||
        domus_unpickle(&pickled, NULL, payload, error, sizeof error) != 0)
        exit_with_error(error);
    if (subject->type->release != NULL)
        subject->type->release(payload);
}

/* --- msgpack-c by itself ---------------------------------------------------------------------- */

static void write_message_by_msgpack(const struct subject *subject)
{
    const struct flat *flat = subject->payload;
    size_t length = strlen(flat->who);
    msgpack_sbuffer bytes;
    msgpack_packer packer;

    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
    msgpack_pack_array(&packer, 3);
    msgpack_pack_fix_uint64(&packer, domus_pickle_hash("shop.flat"));
    msgpack_pack_uint32(&packer, 1);
    msgpack_pack_map(&packer, 6);
    msgpack_pack_uint8(&packer, 1);
    msgpack_pack_uint64(&packer, flat->id);
    msgpack_pack_uint8(&packer, 2);
    msgpack_pack_uint32(&packer, flat->price);
    msgpack_pack_uint8(&packer, 3);
    msgpack_pack_int32(&packer, flat->delta);
    msgpack_pack_uint8(&packer, 4);
    msgpack_pack_double(&packer, flat->rate);
    msgpack_pack_uint8(&packer, 5);
    if (flat->paid)
        msgpack_pack_true(&packer);
    else
        msgpack_pack_false(&packer);
    msgpack_pack_uint8(&packer, 6);
    msgpack_pack_str(&packer, length);
    msgpack_pack_str_body(&packer, flat->who, length);
    if (bytes.size != subject->bytes.size ||
        memcmp(bytes.data, domus_slice_data(subject->bytes), bytes.size) != 0)
        exit_with_error("msgpack-c writes other bytes");
    msgpack_sbuffer_destroy(&bytes);
}

static void read_message_by_msgpack(const struct subject *subject)
{
    struct flat flat = {0};
    msgpack_unpacked unpacked;
    size_t end = 0;

    msgpack_unpacked_init(&unpacked);
    if (msgpack_unpack_next(&unpacked, domus_slice_data(subject->bytes), subject->bytes.size,
                            &end) != MSGPACK_UNPACK_SUCCESS ||
        unpacked.data.type != MSGPACK_OBJECT_ARRAY || unpacked.data.via.array.size != 3 ||
        unpacked.data.via.array.ptr[2].type != MSGPACK_OBJECT_MAP)
        exit_with_error("msgpack-c does not read the bytes");
    const msgpack_object_map *map = &unpacked.data.via.array.ptr[2].via.map;
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *value = &map->ptr[i].val;
        switch (map->ptr[i].key.via.u64) {
        case 1:
            flat.id = value->via.u64;
            break;
        case 2:
            flat.price = (uint32_t)value->via.u64;
            break;
        case 3:
            flat.delta = (int32_t)value->via.i64;
            break;
        case 4:
            flat.rate = value->via.f64;
            break;
        case 5:
            flat.paid = value->via.boolean;
            break;
        default:
            if (value->via.str.size < sizeof flat.who)
                memcpy(flat.who, value->via.str.ptr, value->via.str.size);
        }
    }
    if (memcmp(&flat, subject->payload, sizeof flat) != 0)
        exit_with_error("msgpack-c reads another payload");
    msgpack_unpacked_destroy(&unpacked);
}

/* --- the measurement -------------------------------------------------------------------------- */

static void measure_calls(const char *name, void (*one)(const struct subject *subject),
                          const struct subject *subject, uint64_t messages)
{
    double rounds[ROUNDS];

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = measure_thread_cpu_ns();
        for (uint64_t i = 0; i < messages; i++)
            one(subject);
        rounds[round] = (double)(measure_thread_cpu_ns() - begin_ns) / (double)messages;
    }
    printf("%s %.1f ns\n", name, measure_sort_and_get_median(rounds, ROUNDS));
}

static struct subject pickle_payload_as_bench_subject(const domus_type *type, const void *payload)
{
    struct subject subject = {type, payload, {NULL, 0, 0}};
    domus_appender appender = {0};
    char error[DOMUS_PICKLE_ERROR_MAX];

    if (domus_pickle(picklers, NULL, type, payload, &appender, error, sizeof error) != 0 ||
        domus_append_end(&appender, &subject.bytes) != 0)
        exit_with_error("a message cannot be written");
    return subject;
}

int main(int argc, char **argv)
{
    uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : MESSAGES;
    struct flat flat;
    struct item each[ITEMS];
    struct items items = {.id = 8, .items = each, .count = ITEMS};
    struct large large = {.id = 9};
    static char zeros[16384];
    char error[DOMUS_PICKLE_ERROR_MAX];

    memset(&flat, 0, sizeof flat);
    flat.id = 123456789012;
    flat.price = 4999;
    flat.delta = -70000;
    flat.rate = 1.5;
    flat.paid = true;
    memcpy(flat.who, "somebody", 8);
    for (uint32_t i = 0; i < ITEMS; i++) {
        each[i].price = 100 * i;
        each[i].name = flat.who;
    }
    if (messages == 0)
        exit_with_error("usage: bench_pickle [MESSAGES]");
    if (domus_picklers_new(list, error, sizeof error, &picklers) != 0)
        exit_with_error(error);
    if (domus_slice_copy(zeros, sizeof zeros, &large.bytes) != 0)
        exit_with_error("no memory");
    struct subject flats = pickle_payload_as_bench_subject(&flat_type, &flat);
    struct subject lists = pickle_payload_as_bench_subject(&items_type, &items);
    struct subject slices = pickle_payload_as_bench_subject(&large_type, &large);
    measure_calls("flat_write", write_message, &flats, messages);
    measure_calls("flat_write_msgpack", write_message_by_msgpack, &flats, messages);
    measure_calls("flat_read", read_message, &flats, messages);
    measure_calls("flat_read_msgpack", read_message_by_msgpack, &flats, messages);
    measure_calls("items_write", write_message, &lists, messages / 4 + 1);
    measure_calls("items_read", read_message, &lists, messages / 4 + 1);
    measure_calls("slice_write", write_message, &slices, messages / 4 + 1);
    measure_calls("slice_read", read_message, &slices, messages / 4 + 1);
    printf("flat_bytes %u bytes\n", flats.bytes.size);
    domus_slice_free(flats.bytes);
    domus_slice_free(lists.bytes);
    domus_slice_free(slices.bytes);
    domus_slice_free(large.bytes);
    domus_picklers_free(picklers);
    return 0;
}
