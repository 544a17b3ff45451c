/* This bench measures what it costs to read a JSON text of 1 KiB into a struct and to write it
 * again (domus/json.h). Beside it are RapidJSON by itself, which parses the same text in place and
 * keeps nothing, and jansson, which makes objects of the text, and is asked for none of them.
 *
 * `order` is that text: an object with texts, numbers, an object in an object, and five structs in
 * an array. `feed` reads an array of such orders, in pieces of 16 KiB. The figures are the CPU time
 * of this thread for one text, the median of ROUNDS.
 *
 * bench_json [TEXTS]. stdout: lines `name value unit`. For counts of instructions run it once with
 * TEXTS and once with twice as many under callgrind, and divide the difference. */
#include "bench/json_bare.h"
#include "bench/support/measure.h"

#include <domus/json_feed.h>

#include <float.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS      25u
#define TEXTS       4000u /* number of texts that are read or written in a round */
#define FEED_ORDERS 100u
#define FEED_PIECE  16384u

static const char text[] =
    "{\"id\":9007199254740993,\"customer\":{\"name\":\"Ana-Mar\xc3\xad"
    "a Lind\",\"email\":\"ana.lind@example.org\",\"vip\":true,\"address\":{\"street\":\"L\xc3\xa5"
    "nggatan 12\",\"city\":\"G\xc3\xb6"
    "teborg\",\"zip\":\"411 05\",\"country\":\"SE\"}},\"placed\":\"2026-11-29T21:08:37Z\","
    "\"currency\":\"EUR\",\"total\":1234.56,\"tax\":0.25,\"state\":\"paid\",\"coupon\":null,"
    "\"items\":[{\"sku\":\"A-1001\",\"title\":\"Mug, blue, \\\"large\\\"\",\"count\":2,"
    "\"price\":12.5,\"weight\":0.35,\"tags\":[\"kitchen\",\"blue\"]},{\"sku\":\"A-1002\","
    "\"title\":\"Teapot of cast iron\",\"count\":1,\"price\":89.95,\"weight\":2.1,"
    "\"tags\":[\"kitchen\"]},{\"sku\":\"B-0007\",\"title\":\"Tea, green, 250 g\",\"count\":4,"
    "\"price\":7.25,\"weight\":0.25,\"tags\":[]},{\"sku\":\"C-3141\",\"title\":\"Towel\","
    "\"count\":10,\"price\":4.99,\"weight\":0.12,\"tags\":[\"bath\",\"cotton\",\"white\"]},"
    "{\"sku\":\"D-2718\",\"title\":\"Lamp for the desk\",\"count\":1,\"price\":149,"
    "\"weight\":3.75,\"tags\":[\"office\"]}],\"note\":\"Leave it at the door,\\nplease ring twice. "
    "If nobody is at home, the neighbours of the second floor take it; their name is on the bell "
    "beside ours, and they are there until eight in the evening.\"}";

struct address {
    char street[64], city[32], zip[12], country[3];
};

struct customer {
    char name[64], email[64];
    bool vip;
    struct address address;
};

struct item {
    char sku[16];
    const char *title;
    uint32_t count;
    double price, weight;
    char tags[4][16];
    uint8_t tag_count;
};

struct order {
    uint64_t id;
    struct customer customer;
    char placed[24], currency[4];
    double total, tax;
    uint32_t state;
    bool has_coupon;
    char coupon[16];
    struct item *items;
    uint32_t item_count;
    const char *note;
};

static const char *const states[] = {"open", "paid", "sent", NULL};
static const domus_json_field address_fields[] = {
    {DOMUS_JSON_TEXT("street", struct address, street)},
    {DOMUS_JSON_TEXT("city", struct address, city)},
    {DOMUS_JSON_TEXT("zip", struct address, zip)},
    {DOMUS_JSON_TEXT("country", struct address, country)},
};
static const domus_json_table address_table = DOMUS_JSON_TABLE(struct address, address_fields);
static const domus_json_field customer_fields[] = {
    {DOMUS_JSON_TEXT("name", struct customer, name)},
    {DOMUS_JSON_TEXT("email", struct customer, email)},
    {DOMUS_JSON_BOOL("vip", struct customer, vip)},
    {DOMUS_JSON_OBJECT("address", struct customer, address, address_table)},
};
static const domus_json_table customer_table = DOMUS_JSON_TABLE(struct customer, customer_fields);
static const domus_json_field item_fields[] = {
    {DOMUS_JSON_TEXT("sku", struct item, sku), .required = true},
    {DOMUS_JSON_STRING("title", struct item, title, 200)},
    {DOMUS_JSON_UINT("count", struct item, count, 1, 1000)},
    {DOMUS_JSON_REAL("price", struct item, price, 0, 1e6)},
    {DOMUS_JSON_REAL("weight", struct item, weight, 0, 1e6)},
    {DOMUS_JSON_LIST("tags", struct item, tags, tag_count, TEXT)},
};
static const domus_json_table item_table = DOMUS_JSON_TABLE(struct item, item_fields);
static const domus_json_field order_fields[] = {
    {DOMUS_JSON_UINT("id", struct order, id, 0, UINT64_MAX), .required = true},
    {DOMUS_JSON_OBJECT("customer", struct order, customer, customer_table)},
    {DOMUS_JSON_TEXT("placed", struct order, placed)},
    {DOMUS_JSON_TEXT("currency", struct order, currency)},
    {DOMUS_JSON_REAL("total", struct order, total, 0, DBL_MAX)},
    {DOMUS_JSON_REAL("tax", struct order, tax, 0, 1)},
    {DOMUS_JSON_WORD("state", struct order, state, states)},
    {DOMUS_JSON_TEXT("coupon", struct order, coupon), DOMUS_JSON_HAS(struct order, has_coupon)},
    {DOMUS_JSON_ARRAY("items", struct order, items, item_count, 100, OBJECT(item_table))},
    {DOMUS_JSON_STRING("note", struct order, note, 1000)},
};
static const domus_json_table order_table = DOMUS_JSON_TABLE(struct order, order_fields);

static struct order order; /* the order that is written as JSON, and into which it is read */
static char *array;        /* a JSON array of FEED_ORDERS orders */
static size_t array_size;

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "json: %s\n", what);
    exit(1);
}

static void read_order_by_domus_once(void)
{
    domus_json_memory memory;
    struct order got;

    if (domus_json_read(&order_table, NULL, text, sizeof text - 1, &got, &memory, NULL) != 0)
        exit_with_error("the text is not read");
    domus_json_release(&memory);
}

static void check_json_text_by_domus_once(void)
{
    if (domus_json_check(NULL, text, sizeof text - 1, NULL) != 0)
        exit_with_error("the text is no JSON");
}

static void read_order_by_rapidjson_once(void)
{
    static char copy[sizeof text + 16];

    memcpy(copy, text, sizeof text);
    if (bench_json_bare(copy) == 0)
        exit_with_error("RapidJSON does not take the text");
}

static void read_order_by_jansson_once(void)
{
    json_t *made = json_loadb(text, sizeof text - 1, JSON_REJECT_DUPLICATES, NULL);

    if (made == NULL)
        exit_with_error("jansson does not take the text");
    json_decref(made);
}

static void write_order_by_domus_once(void)
{
    domus_appender appender = {0};

    if (domus_json_write(&order_table, &order, &appender, NULL) != 0)
        exit_with_error("the struct is not written");
    domus_append_drop(&appender);
}

static void feed_json_array_of_orders_by_domus(void)
{
    domus_json_feed_options options = {.table = &order_table};
    domus_json_feed *feed;
    domus_json_memory memory;
    struct order got;

    if (domus_json_feed_new(&options, &feed) != 0)
        exit_with_error("no memory");
    for (size_t at = 0; at < array_size; at += FEED_PIECE) {
        size_t left = array_size - at;
        if (domus_json_feed_put(feed, array + at, left < FEED_PIECE ? left : FEED_PIECE) != 0)
            exit_with_error("the array is not taken");
        while (domus_json_feed_next(feed, &got, &memory, NULL) == 1)
            domus_json_release(&memory);
    }
    if (domus_json_feed_end(feed, NULL) != 0 || domus_json_feed_count(feed) != FEED_ORDERS)
        exit_with_error("the array is not read");
    domus_json_feed_free(feed);
}

static void make_json_array_of_orders(void)
{
    array_size = FEED_ORDERS * sizeof text + 1;
    array = malloc(array_size);
    if (array == NULL)
        exit_with_error("no memory");
    for (size_t i = 0; i < FEED_ORDERS; i++) {
        array[i * sizeof text] = i == 0 ? '[' : ',';
        memcpy(array + i * sizeof text + 1, text, sizeof text - 1);
    }
    array[array_size - 1] = ']';
}

/* Measure and print `calls` calls of the function `one`, each of which handles `each` texts. */
static void measure_and_print_calls(const char *name, void (*one)(void), uint64_t calls,
                                    uint32_t each)
{
    double rounds[ROUNDS];

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = measure_thread_cpu_ns();
        for (uint64_t i = 0; i < calls; i++)
            one();
        rounds[round] =
            (double)(measure_thread_cpu_ns() - begin_ns) / ((double)calls * (double)each);
    }
    printf("%s %.0f ns\n", name, measure_sort_and_get_median(rounds, ROUNDS));
}

int main(int argc, char **argv)
{
    uint64_t texts = argc > 1 ? strtoull(argv[1], NULL, 10) : TEXTS;
    domus_json_memory memory;
    char error[128];

    if (texts == 0)
        exit_with_error("usage: bench_json [TEXTS]");
    if (domus_json_check_table(&order_table, error, sizeof error) != 0)
        exit_with_error(error);
    if (domus_json_read(&order_table, NULL, text, sizeof text - 1, &order, &memory, NULL) != 0)
        exit_with_error("the text is not read");
    make_json_array_of_orders();
    printf("order_bytes %zu bytes\n", sizeof text - 1);
    measure_and_print_calls("order_read", read_order_by_domus_once, texts, 1);
    measure_and_print_calls("order_check", check_json_text_by_domus_once, texts, 1);
    measure_and_print_calls("order_read_rapidjson", read_order_by_rapidjson_once, texts, 1);
    measure_and_print_calls("order_read_jansson", read_order_by_jansson_once, texts / 10 + 1, 1);
    measure_and_print_calls("order_write", write_order_by_domus_once, texts, 1);
    measure_and_print_calls("feed_read", feed_json_array_of_orders_by_domus,
                            texts / FEED_ORDERS + 1, FEED_ORDERS);
    domus_json_release(&memory);
    free(array);
    return 0;
}
