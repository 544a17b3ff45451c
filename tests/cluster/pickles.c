/* The struct with a member of each kind, and messages with given bytes, which
 * tests/cluster/pickles.h describes. */
#include "tests/cluster/pickles.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const domus_pickle_word colors[] = {
    {"blue", DOMT_BLUE}, {"red", DOMT_RED}, {"green", DOMT_GREEN}, {NULL, 0}};
static const domus_pickle_word modes[] = {{"slow", 0}, {"fast", 7}, {"off", 255}, {NULL, 0}};

static const domus_pickle_field part_fields[] = {
    {DOMUS_PICKLE(1, domt_part, id, UINT_RANGE(1, 60000, 1))},
    {DOMUS_PICKLE(2, domt_part, text, OWNED_TEXT(40, NULL))},
    {DOMUS_PICKLE_ARRAY(3, domt_part, small, UINT(0))},
    {DOMUS_PICKLE(4, domt_part, ratio, REAL(0.5))},
    {DOMUS_PICKLE(5, domt_part, bytes, SLICE(5000))},
};
const domus_pickle_table domt_part_table = DOMUS_PICKLE_TABLE(domt_part, part_fields);

static const domus_pickle_field all_fields[] = {
    {DOMUS_PICKLE(1, domt_all, flag, BOOL(true))},
    {DOMUS_PICKLE(2, domt_all, i8, INT(-1))},
    {DOMUS_PICKLE(3, domt_all, i16, INT(-2))},
    {DOMUS_PICKLE(4, domt_all, i32, INT(-3))},
    {DOMUS_PICKLE(5, domt_all, i64, INT(-4))},
    {DOMUS_PICKLE(6, domt_all, u8, UINT(1))},
    {DOMUS_PICKLE(7, domt_all, u16, UINT(2))},
    {DOMUS_PICKLE(8, domt_all, u32, UINT(3))},
    {DOMUS_PICKLE(9, domt_all, u64, UINT(UINT64_MAX))},
    {DOMUS_PICKLE(10, domt_all, small, REAL(1.5))},
    {DOMUS_PICKLE(11, domt_all, large, REAL(-2.25))},
    {DOMUS_PICKLE(12, domt_all, color, ENUM(colors, DOMT_BLUE))},
    {DOMUS_PICKLE(13, domt_all, mode, WORD(modes, 255))},
    {DOMUS_PICKLE(14, domt_all, text, TEXT("default"))},
    {DOMUS_PICKLE(15, domt_all, owned, OWNED_TEXT(300, "mine"))},
    {DOMUS_PICKLE(16, domt_all, slice, SLICE(5000))},
    {DOMUS_PICKLE(17, domt_all, address, ADDRESS)},
    {DOMUS_PICKLE(18, domt_all, endpoint, ENDPOINT)},
    {DOMUS_PICKLE(19, domt_all, part, STRUCT(domt_part_table))},
    {DOMUS_PICKLE_ARRAY(20, domt_all, fixed, INT(9))},
    {DOMUS_PICKLE_LIST(21, domt_all, listed, listed_count, UINT(0))},
    {DOMUS_PICKLE_OWNED(22, domt_all, parts, part_count, DOMT_ALL_PARTS_MAX,
                        STRUCT(domt_part_table))},
    {DOMUS_PICKLE_OWNED(23, domt_all, texts, text_count, DOMT_ALL_TEXTS_MAX,
                        OWNED_TEXT(70000, NULL))},
    {DOMUS_PICKLE_LIST(24, domt_all, names, name_count, TEXT(NULL))},
    {DOMUS_PICKLE_ARRAY(25, domt_all, slices, SLICE(100))},
    {DOMUS_PICKLE_ARRAY(26, domt_all, bits, BOOL(true))},
    {DOMUS_PICKLE(27, domt_all, extra, INT_RANGE(-10, 10, 4)),
     DOMUS_PICKLE_HAS(domt_all, has_extra)},
    {DOMUS_PICKLE(28, domt_all, inner, STRUCT(domt_part_table)),
     DOMUS_PICKLE_HAS(domt_all, has_inner)},
    {DOMUS_PICKLE_LIST(29, domt_all, endpoints, endpoint_count, ENDPOINT)},
    {DOMUS_PICKLE_ARRAY(30, domt_all, reals, REAL(0.125))},
    {DOMUS_PICKLE_ARRAY(31, domt_all, colors, WORD(colors, DOMT_GREEN))},
    {DOMUS_PICKLE_ARRAY(127, domt_all, addresses, ADDRESS)},
};
const domus_pickle_table domt_all_table = DOMUS_PICKLE_TABLE(domt_all, all_fields);

static void release_payload_of_type_all(void *all)
{
    domus_pickle_release(&domt_all_table, all);
}

const domus_type domt_all_type = {"all", sizeof(domt_all), release_payload_of_type_all};
const domus_pickler domt_all_picklers[] = {
    {.type = &domt_all_type, .version = 3, .table = &domt_all_table}, {.type = NULL}};

static int write_address(void *context, domus_address address, unsigned char *bytes)
{
    memcpy(bytes, &address.house, sizeof address.house);
    memcpy(bytes + sizeof address.house, &address.lease, sizeof address.lease);
    return sizeof address.house + sizeof address.lease;
}

static int read_address(void *context, const unsigned char *bytes, size_t size,
                        domus_address *ret_address)
{
    if (size != sizeof ret_address->house + sizeof ret_address->lease)
        return -EBADMSG;
    memcpy(&ret_address->house, bytes, sizeof ret_address->house);
    memcpy(&ret_address->lease, bytes + sizeof ret_address->house, sizeof ret_address->lease);
    return 0;
}

const domus_pickle_context domt_addresses = {.write_address = write_address,
                                             .read_address = read_address};

/* --- random members --------------------------------------------------------------------------- */

typedef struct domt_filler {
    domi_random random;
    int borders;
} domt_filler;

/* Returns a random integer from `least` to `most`, often a small one, or one at the limit of an
 * encoding's size. */
static int64_t draw_integer_of_range(domt_filler *filler, int64_t least, int64_t most)
{
    if (filler->borders == 0)
        return least;
    if (filler->borders == 1)
        return most;
    if (filler->borders == 2)
        return least > 0 ? least : 0;
    uint64_t bits = domi_random_next_bits(&filler->random);
    uint64_t value = bits >> domi_random_below(&filler->random, 64);
    /* in a third of the cases the value is a power of two, or 1 less or 1 more */
    if (domi_random_below(&filler->random, 3) == 0)
        value = (UINT64_C(1) << domi_random_below(&filler->random, 64)) - 1 +
                domi_random_below(&filler->random, 3);
    int64_t signed_value = (int64_t)((bits & 1) != 0 ? value : 0 - value);
    return signed_value < least || signed_value > most
               ? least + (int64_t)(value % ((uint64_t)most - (uint64_t)least + 1))
               : signed_value;
}

static uint32_t draw_count_at_most(domt_filler *filler, uint32_t most)
{
    return (uint32_t)draw_integer_of_range(filler, 0, most);
}

static double draw_real_of_range(domt_filler *filler, double least, double most)
{
    if (filler->borders < 3)
        return filler->borders == 0 ? least : filler->borders == 1 ? most : 0;
    return (double)(int64_t)domi_random_next_bits(&filler->random) / 4096.0;
}

static void draw_letters_into_text(domt_filler *filler, char *to, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        to[i] = (char)(1 + domi_random_below(&filler->random, 255));
    to[size] = '\0';
}

static char *draw_owned_text(domt_filler *filler, uint32_t most)
{
    uint32_t size = draw_count_at_most(filler, most);

    if (filler->borders == 2)
        return NULL;
    char *text = malloc((size_t)size + 1);
    ck_assert_ptr_nonnull(text);
    draw_letters_into_text(filler, text, size);
    return text;
}

static domus_slice draw_slice(domt_filler *filler, uint32_t most)
{
    static char bytes[5000];
    domus_slice made;
    uint32_t size = draw_count_at_most(filler, most);

    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (char)domi_random_next_bits(&filler->random);
    ck_assert_int_eq(domus_slice_copy(bytes, size, &made), 0);
    return made;
}

static domus_address draw_address(domt_filler *filler)
{
    domus_address made = {NULL, 0};

    if (filler->borders != 2) {
        made.house = (struct domi_house *)(uintptr_t)domi_random_next_bits(&filler->random);
        made.lease = (uint32_t)domi_random_next_bits(&filler->random) | 1;
    }
    return made;
}

static domus_endpoint draw_endpoint(domt_filler *filler)
{
    static const uint16_t families[] = {AF_INET, AF_INET6, AF_UNIX, 0};
    domus_endpoint made = {0};
    int choice = filler->borders < 3 ? filler->borders : (int)domi_random_below(&filler->random, 4);

    made.family = families[choice == 2 && filler->borders == 2 ? 3 : choice];
    if (made.family == 0)
        return made;
    made.size = made.family == AF_INET    ? 4
                : made.family == AF_INET6 ? 16
                                          : (uint16_t)draw_count_at_most(filler, sizeof made.bytes);
    if (made.family != AF_UNIX)
        made.port = (uint16_t)draw_integer_of_range(filler, 0, 65535);
    for (uint32_t i = 0; i < made.size; i++)
        made.bytes[i] = (unsigned char)domi_random_next_bits(&filler->random);
    return made;
}

static domt_color draw_color(domt_filler *filler)
{
    static const domt_color all[] = {DOMT_BLUE, DOMT_GREEN, DOMT_RED};

    return all[filler->borders < 3 ? (uint32_t)filler->borders
                                   : domi_random_below(&filler->random, 3)];
}

static domt_part draw_part(domt_filler *filler)
{
    domt_part made = {.id = (uint16_t)draw_integer_of_range(filler, 1, 60000),
                      .text = draw_owned_text(filler, 40),
                      .ratio = (float)draw_real_of_range(filler, -FLT_MAX, FLT_MAX),
                      .bytes = draw_slice(filler, 5000)};

    for (int i = 0; i < 3; i++)
        made.small[i] = (uint8_t)draw_integer_of_range(filler, 0, 255);
    return made;
}

static void fill_numbers_of_all(domt_all *all, domt_filler *filler)
{
    static const uint8_t modes_there[] = {0, 255, 7};

    all->flag = draw_integer_of_range(filler, 0, 1) != 0;
    all->i8 = (int8_t)draw_integer_of_range(filler, INT8_MIN, INT8_MAX);
    all->i16 = (int16_t)draw_integer_of_range(filler, INT16_MIN, INT16_MAX);
    all->i32 = (int32_t)draw_integer_of_range(filler, INT32_MIN, INT32_MAX);
    all->i64 = draw_integer_of_range(filler, INT64_MIN, INT64_MAX);
    all->u8 = (uint8_t)draw_integer_of_range(filler, 0, UINT8_MAX);
    all->u16 = (uint16_t)draw_integer_of_range(filler, 0, UINT16_MAX);
    all->u32 = (uint32_t)draw_integer_of_range(filler, 0, UINT32_MAX);
    all->u64 = (uint64_t)draw_integer_of_range(filler, INT64_MIN, INT64_MAX) ^ UINT64_C(1) << 63;
    all->small = (float)draw_real_of_range(filler, -FLT_MAX, FLT_MAX);
    all->large = draw_real_of_range(filler, -DBL_MAX, DBL_MAX);
    all->color = draw_color(filler);
    all->mode = modes_there[filler->borders < 3 ? (uint32_t)filler->borders
                                                : domi_random_below(&filler->random, 3)];
    for (int i = 0; i < 4; i++)
        all->fixed[i] = (int16_t)draw_integer_of_range(filler, INT16_MIN, INT16_MAX);
    all->listed_count = (uint8_t)draw_count_at_most(filler, 5);
    for (int i = 0; i < all->listed_count; i++)
        all->listed[i] = (uint32_t)draw_integer_of_range(filler, 0, UINT32_MAX);
    for (int i = 0; i < 3; i++)
        all->bits[i] = draw_integer_of_range(filler, 0, 1) != 0;
    all->has_extra = draw_integer_of_range(filler, 0, 1) != 0;
    all->extra = all->has_extra ? (int32_t)draw_integer_of_range(filler, -10, 10) : 4;
    for (int i = 0; i < 2; i++) {
        all->reals[i] = draw_real_of_range(filler, DBL_MIN, DBL_EPSILON);
        all->colors[i] = draw_color(filler);
    }
}

void domt_all_fill_at_random(domt_all *all, uint64_t seed, int borders)
{
    domt_filler filler = {.borders = borders};

    domi_random_init(&filler.random, seed);
    memset(all, 0, sizeof *all);
    fill_numbers_of_all(all, &filler);
    draw_letters_into_text(&filler, all->text, draw_count_at_most(&filler, 7));
    all->owned = draw_owned_text(&filler, 300);
    all->slice = draw_slice(&filler, 5000);
    all->address = draw_address(&filler);
    all->endpoint = draw_endpoint(&filler);
    all->part = draw_part(&filler);
    all->part_count = draw_count_at_most(&filler, DOMT_ALL_PARTS_MAX);
    if (all->part_count != 0)
        all->parts = calloc(all->part_count, sizeof *all->parts);
    for (uint32_t i = 0; i < all->part_count; i++)
        all->parts[i] = draw_part(&filler);
    all->text_count = (uint16_t)draw_count_at_most(&filler, DOMT_ALL_TEXTS_MAX);
    if (all->text_count != 0)
        all->texts = calloc(all->text_count, sizeof *all->texts);
    for (uint32_t i = 0; i < all->text_count; i++)
        all->texts[i] = draw_owned_text(&filler, 70000);
    all->name_count = draw_count_at_most(&filler, 3);
    for (uint64_t i = 0; i < all->name_count; i++)
        draw_letters_into_text(&filler, all->names[i], draw_count_at_most(&filler, 5));
    for (int i = 0; i < 2; i++) {
        all->slices[i] = draw_slice(&filler, 100);
        all->addresses[i] = draw_address(&filler);
    }
    all->has_inner = draw_integer_of_range(&filler, 0, 1) != 0;
    all->inner = (domt_part){.id = 1, .ratio = 0.5F};
    if (all->has_inner)
        all->inner = draw_part(&filler);
    all->endpoint_count = (uint8_t)draw_count_at_most(&filler, 2);
    for (uint32_t i = 0; i < all->endpoint_count; i++)
        all->endpoints[i] = draw_endpoint(&filler);
}

void domt_all_free(domt_all *all)
{
    domus_pickle_release(&domt_all_table, all);
}

/* --- comparison, without the table ------------------------------------------------------------ */

static bool are_texts_same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static bool are_slices_same(domus_slice one, domus_slice other)
{
    return domus_slice_equals(one, domus_slice_data(other), other.size);
}

static bool are_parts_same(const domt_part *one, const domt_part *other)
{
    return one->id == other->id && are_texts_same(one->text, other->text) &&
           memcmp(one->small, other->small, sizeof one->small) == 0 &&
           memcmp(&one->ratio, &other->ratio, sizeof one->ratio) == 0 &&
           are_slices_same(one->bytes, other->bytes);
}

static bool are_numbers_of_all_same(const domt_all *one, const domt_all *other)
{
    return one->flag == other->flag && one->i8 == other->i8 && one->i16 == other->i16 &&
           one->i32 == other->i32 && one->i64 == other->i64 && one->u8 == other->u8 &&
           one->u16 == other->u16 && one->u32 == other->u32 && one->u64 == other->u64 &&
           memcmp(&one->small, &other->small, sizeof one->small) == 0 &&
           memcmp(&one->large, &other->large, sizeof one->large) == 0 &&
           one->color == other->color && one->mode == other->mode &&
           one->has_extra == other->has_extra && one->extra == other->extra &&
           one->has_inner == other->has_inner;
}

static bool are_lists_of_all_same(const domt_all *one, const domt_all *other)
{
    if (one->part_count != other->part_count || one->text_count != other->text_count)
        return false;
    for (uint32_t i = 0; i < one->part_count; i++) {
        if (!are_parts_same(&one->parts[i], &other->parts[i]))
            return false;
    }
    for (uint32_t i = 0; i < one->text_count; i++) {
        if (!are_texts_same(one->texts[i], other->texts[i]))
            return false;
    }
    for (int i = 0; i < 2; i++) {
        if (!are_slices_same(one->slices[i], other->slices[i]) ||
            !domus_address_equals(one->addresses[i], other->addresses[i]) ||
            one->colors[i] != other->colors[i])
            return false;
    }
    return one->listed_count == other->listed_count && one->name_count == other->name_count &&
           one->endpoint_count == other->endpoint_count &&
           memcmp(one->fixed, other->fixed, sizeof one->fixed) == 0 &&
           memcmp(one->listed, other->listed, sizeof one->listed) == 0 &&
           memcmp(one->names, other->names, sizeof one->names) == 0 &&
           memcmp(one->bits, other->bits, sizeof one->bits) == 0 &&
           memcmp(one->endpoints, other->endpoints, sizeof one->endpoints) == 0 &&
           memcmp(one->reals, other->reals, sizeof one->reals) == 0;
}

bool domt_all_is_same_as_other(const domt_all *one, const domt_all *other)
{
    return are_numbers_of_all_same(one, other) && are_lists_of_all_same(one, other) &&
           strcmp(one->text, other->text) == 0 && are_texts_same(one->owned, other->owned) &&
           are_slices_same(one->slice, other->slice) &&
           domus_address_equals(one->address, other->address) &&
           memcmp(&one->endpoint, &other->endpoint, sizeof one->endpoint) == 0 &&
           are_parts_same(&one->part, &other->part) && are_parts_same(&one->inner, &other->inner);
}

/* --- messages ------------------------------------------------------------------------------- */

domus_picklers *domt_make_picklers(const domus_pickler *list)
{
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_picklers *picklers = NULL;

    int result = domus_picklers_new(list, error, sizeof error, &picklers);
    ck_assert_msg(result == 0, "%d: %s", result, error);
    return picklers;
}

domus_slice domt_pickle_payload(const domus_picklers *picklers, const domus_pickle_context *context,
                                const domus_type *type, const void *payload)
{
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_appender appender = {0};
    domus_slice bytes;

    int result = domus_pickle(picklers, context, type, payload, &appender, error, sizeof error);
    ck_assert_msg(result == 0, "%d: %s", result, error);
    ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
    return bytes;
}

domus_slice domt_make_pickled_message(const char *name, uint32_t version, const void *body,
                                      size_t size)
{
    unsigned char head[11] = {0x93, 0xcf};
    uint64_t hash = domus_pickle_hash(name);
    domus_appender appender = {0};
    domus_slice bytes;

    for (int i = 0; i < 8; i++)
        head[2 + i] = (unsigned char)(hash >> (56 - 8 * i));
    ck_assert_uint_lt(version, 128);
    head[10] = (unsigned char)version;
    (void)domus_append(&appender, head, sizeof head);
    (void)domus_append(&appender, body, size);
    ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
    return bytes;
}

int domt_unpickle_message(const domus_picklers *picklers, const domus_pickle_context *context,
                          domus_slice bytes, void *payload, char *error, size_t error_size)
{
    domus_pickled pickled;
    int result = domus_pickled_open(picklers, context, bytes, &pickled, error, error_size);

    return result != 0 ? result : domus_unpickle(&pickled, context, payload, error, error_size);
}

void domt_expect_payload_is_read_back(const domus_pickler *list, const void *body, size_t size)
{
    domus_picklers *picklers = domt_make_picklers(list);
    const char *name = list->name != NULL ? list->name : list->type->name;
    domus_slice bytes = domt_make_pickled_message(name, list->version, body, size);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    void *payload = malloc((size_t)list->type->size + 1);

    int result =
        domt_unpickle_message(picklers, &domt_addresses, bytes, payload, error, sizeof error);
    ck_assert_msg(result == 0, "%d: %s", result, error);
    domus_slice again = domt_pickle_payload(picklers, &domt_addresses, list->type, payload);
    ck_assert(domus_slice_equals(again, domus_slice_data(bytes), bytes.size));
    if (list->type->release != NULL)
        list->type->release(payload);
    free(payload);
    domus_slice_free(again);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

void domt_expect_payload_is_refused(const domus_pickler *list, const void *body, size_t size,
                                    int error, const char *text)
{
    domus_picklers *picklers = domt_make_picklers(list);
    const char *name = list->name != NULL ? list->name : list->type->name;
    domus_slice bytes = domt_make_pickled_message(name, list->version, body, size);
    char told[DOMUS_PICKLE_ERROR_MAX] = "";
    unsigned char *payload = malloc((size_t)list->type->size + 1);

    memset(payload, 0xa5, list->type->size);
    int result =
        domt_unpickle_message(picklers, &domt_addresses, bytes, payload, told, sizeof told);
    ck_assert_msg(result == error && strcmp(told, text) == 0, "%d: %s\nnot %d: %s", result, told,
                  error, text);
    for (uint32_t i = 0; i < list->type->size; i++)
        ck_assert_uint_eq(payload[i], 0);
    free(payload);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}
