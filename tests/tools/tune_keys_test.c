/* The keys whose values `domus tune` tries: names, values, and how a candidate is written. */
#include "tools/domus/tune/keys.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static tune_keys keys;

static const tune_key *find_key(size_t number)
{
    ck_assert_uint_lt(number, keys.count);
    return &keys.each[number];
}

DOMT_TEST(names_are_ends_of_paths)
{
    keys.count = 0;
    ck_assert_msg(tune_keys_add(&keys, "ioRatio,idle.spin,scheduler.steal.floor"), "%s",
                  keys.error);
    ck_assert_msg(tune_keys_add(&keys, "pools.work.throughput"), "%s", keys.error);
    ck_assert_str_eq(find_key(0)->path, "scheduler.ioRatio");
    ck_assert_uint_eq(find_key(0)->count, 4);
    ck_assert_str_eq(find_key(0)->values[0], "20");
    ck_assert_str_eq(find_key(1)->path, "scheduler.idle.spin");
    ck_assert_str_eq(find_key(2)->path, "scheduler.steal.floor");
    ck_assert_str_eq(find_key(3)->path, "pools.work.throughput");
    ck_assert_str_eq(find_key(3)->values[3], "256");
}

DOMT_TEST(own_values_take_the_place_of_the_tables)
{
    keys.count = 0;
    ck_assert(tune_keys_add(&keys, "ioRatio"));
    ck_assert(tune_keys_set(&keys, "ioRatio=30,70"));
    ck_assert(tune_keys_set(&keys, "web.shards=1,8"));
    ck_assert(tune_keys_set(&keys, "pools.work.throughput=9"));
    ck_assert_uint_eq(keys.count, 3);
    ck_assert_uint_eq(find_key(0)->count, 2);
    ck_assert_str_eq(find_key(0)->path, "scheduler.ioRatio");
    ck_assert_str_eq(find_key(0)->values[1], "70");
    ck_assert_str_eq(find_key(1)->path, "web.shards");
    ck_assert_str_eq(find_key(2)->values[0], "9");
}

DOMT_TEST(all_keys_but_those_of_pools_are_taken_without_names)
{
    keys.count = 0;
    tune_keys_add_all(&keys);
    ck_assert_uint_eq(keys.count, 13);
    for (size_t i = 0; i < keys.count; i++)
        ck_assert_ptr_null(strstr(keys.each[i].path, "pools"));
}

DOMT_TEST(wrong_keys_and_values_are_refused)
{
    static const struct {
        const char *names, *values, *error;
    } wrong[] = {
        {"ratio", NULL, "'ratio' is no key with values of its own: name them by --values"},
        {"Ratio", NULL, "'Ratio' is no key with values of its own: name them by --values"},
        {"oRatio", NULL, "'oRatio' is no key with values of its own: name them by --values"},
        {"", NULL, "'' is no key"},
        {"ioRatio,", NULL, "'' is no key"},
        {"a b", NULL, "'a b' is no key"},
        {"ioRatio,ioRatio", NULL, "'scheduler.ioRatio' is there twice"},
        {"pools..throughput", NULL, "'pools..throughput' is no key"},
        {NULL, "ioRatio", "'ioRatio' is not KEY=VALUE,VALUE"},
        {NULL, "=5", "'=5' is not KEY=VALUE,VALUE"},
        {NULL, "a.b=", "'' has a value that is empty, too long or there twice"},
        {NULL, "a.b=1,,2", "'1,,2' has a value that is empty, too long or there twice"},
        {NULL, "a.b=1,2,1", "'1,2,1' has a value that is empty, too long or there twice"},
        {NULL, "a.b=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "'a.b' has more than 16 values"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        keys.count = 0;
        ck_assert(wrong[i].names != NULL ? !tune_keys_add(&keys, wrong[i].names)
                                         : !tune_keys_set(&keys, wrong[i].values));
        ck_assert_str_eq(keys.error, wrong[i].error);
    }
}

DOMT_TEST(keys_have_a_bound)
{
    char text[16];

    keys.count = 0;
    for (int i = 0; i < 16; i++) {
        snprintf(text, sizeof text, "a.k%d=1", i);
        ck_assert(tune_keys_set(&keys, text));
    }
    ck_assert(!tune_keys_set(&keys, "a.k16=1"));
    ck_assert_str_eq(keys.error, "'a.k16' is one key more than 16");
    ck_assert(tune_keys_set(&keys, "a.k15=2"));
}

/* Write a candidate with the last value of each key as YAML. */
static void write_yaml(const char *const *texts, char *ret_text, size_t size)
{
    tune_point point = {{0}};
    FILE *out = fmemopen(ret_text, size, "w");

    keys.count = 0;
    for (; *texts != NULL; texts++)
        ck_assert_msg(tune_keys_set(&keys, *texts), "%s", keys.error);
    for (size_t i = 0; i < keys.count; i++)
        point.choice[i] = (uint8_t)keys.each[i].count;
    ck_assert_ptr_nonnull(out);
    tune_keys_yaml(&keys, &point, out);
    ck_assert_int_eq(fclose(out), 0);
}

DOMT_TEST(yaml_has_keys_that_begin_alike_together)
{
    char text[512];

    write_yaml((const char *const[]){"ioRatio=30,70", "io.buffers.size=8KiB", "steal.floor=8",
                                     "io.buffers.count=256", "idle.spin=0", NULL},
               text, sizeof text);
    ck_assert_str_eq(text, "scheduler:\n"
                           "  ioRatio: 70\n"
                           "  steal:\n"
                           "    floor: 8\n"
                           "  idle:\n"
                           "    spin: 0\n"
                           "io:\n"
                           "  buffers:\n"
                           "    size: 8KiB\n"
                           "    count: 256\n");
}

/* A list in one file would replace the whole list of another file. */
DOMT_TEST(yaml_has_no_elements_of_lists)
{
    char text[512];

    write_yaml((const char *const[]){"pools.work.throughput=8", "poolsize.a=1", "ioRatio=30",
                                     "listeners.web.backlog=9", NULL},
               text, sizeof text);
    ck_assert_str_eq(text, "poolsize:\n"
                           "  a: 1\n"
                           "scheduler:\n"
                           "  ioRatio: 30\n");
    ck_assert(tune_keys_is_element(&keys, 0) && !tune_keys_is_element(&keys, 1));
    ck_assert(tune_keys_is_element(&keys, 3) && !tune_keys_is_element(&keys, 2));
}

DOMT_TEST(yaml_quotes_odd_values)
{
    char text[512];

    write_yaml((const char *const[]){"a.b=it's: #1", NULL}, text, sizeof text);
    ck_assert_str_eq(text, "a:\n  b: 'it''s: #1'\n");
}

DOMT_TEST(candidates_are_shown)
{
    char text[128];
    tune_point point = {{2, 0, 1}};

    keys.count = 0;
    ck_assert(tune_keys_set(&keys, "ioRatio=30,70") && tune_keys_set(&keys, "a.b=1") &&
              tune_keys_set(&keys, "io.buffers.size=8KiB"));
    tune_keys_show(&keys, &point, text, sizeof text);
    ck_assert_str_eq(text, "ioRatio=70 io.buffers.size=8KiB");
    tune_keys_show(&keys, &point, text, 10);
    ck_assert_str_eq(text, "ioRatio=7");
    tune_keys_assignment(&keys, &point, 2, text, sizeof text);
    ck_assert_str_eq(text, "io.buffers.size=8KiB");
    tune_keys_show(&keys, &(tune_point){{0}}, text, sizeof text);
    ck_assert_str_eq(text, "today's values");
}

DOMT_SUITE(20)
