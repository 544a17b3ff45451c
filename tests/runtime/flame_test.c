/* runtime/control/flame.h: stacks of a CPU profile become a tree, text with one line for each stack
 * (folded stacks), and a flame graph. */
#include "base/memory.h"
#include "runtime/control/flame.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (4u << 20)

static char text[TEXT_MAX];
static size_t length;
static size_t fails_at; /* the writer of the test fails when it has got so many bytes; 0: never */
static uint32_t fails;  /* number of calls of the writer that have failed */

static int append_piece_to_text(void *context, const char *piece, size_t size)
{
    ck_assert_ptr_eq(context, text);
    ck_assert_uint_ge(size, 1);
    ck_assert_uint_lt(length + size, TEXT_MAX);
    if (fails_at != 0 && length >= fails_at) {
        fails++;
        return -EPIPE;
    }
    memcpy(text + length, piece, size);
    length += size;
    text[length] = '\0';
    return 0;
}

static domi_flame flame;

static void begin_flame_graph(void)
{
    ck_assert_int_eq(domi_flame_init(&flame), 0);
    fails_at = 0;
}

/* Add a stack that is given as names with a blank between two of them. Returns 0 or -ENOMEM. */
static int try_to_add_stack(const char *stack, uint64_t weight)
{
    uint32_t names[DOMI_FLAME_DEPTH_MAX];
    uint32_t depth = 0;
    char copy[1024];
    char *rest = copy;

    snprintf(copy, sizeof copy, "%s", stack);
    for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        int result = domi_flame_find_or_add_name(&flame, name, &names[depth++]);
        if (result != 0)
            return result;
    }
    return domi_flame_add_stack(&flame, names, depth, weight);
}

static void add_stack_to_flame(const char *stack, uint64_t weight)
{
    ck_assert_int_eq(try_to_add_stack(stack, weight), 0);
}

static const char *write_folded_stacks(void)
{
    length = 0;
    text[0] = '\0';
    domi_flame_sort_children(&flame);
    ck_assert_int_eq(domi_flame_write_folded(&flame, append_piece_to_text, text), 0);
    return text;
}

static const char *write_flame_graph(const char *title)
{
    length = 0;
    text[0] = '\0';
    domi_flame_sort_children(&flame);
    ck_assert_int_eq(domi_flame_write_svg(&flame, title, append_piece_to_text, text), 0);
    return text;
}

static uint32_t count_part_in_text(const char *part)
{
    uint32_t count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* Check by an XML parser that the written flame graph is well-formed. */
static void expect_graph_is_well_formed(void)
{
    FILE *parser = popen("timeout 60 /usr/bin/python3 -c 'import sys, xml.dom.minidom as m; "
                         "m.parse(sys.stdin.buffer)'",
                         "w");

    ck_assert_ptr_nonnull(parser);
    ck_assert_uint_eq(fwrite(text, 1, length, parser), length);
    ck_assert_int_eq(pclose(parser), 0);
}

DOMT_TEST(stacks_are_merged_and_sorted)
{
    begin_flame_graph();
    add_stack_to_flame("b f g", 2);
    add_stack_to_flame("a", 1);
    add_stack_to_flame("b f h", 3);
    add_stack_to_flame("b f g", 4);
    add_stack_to_flame("b f", 5);
    add_stack_to_flame("b e", 6);
    ck_assert_str_eq(write_folded_stacks(), "a 1\nb;e 6\nb;f 5\nb;f;g 6\nb;f;h 3\n");
    ck_assert_uint_eq(domi_flame_node_at(&flame, 0)->total, 21);
    domi_flame_fini(&flame);
}

DOMT_TEST(names_cannot_break_a_line)
{
    uint32_t name;
    char wide[600];

    begin_flame_graph();
    add_stack_to_flame("a;b\n\x01\xff& f", 1);
    ck_assert_str_eq(write_folded_stacks(), "a:b\\n\\x01\\xff&;f 1\n");
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    ck_assert_int_eq(domi_flame_find_or_add_name(&flame, wide, &name), 0);
    ck_assert_uint_eq(strlen(domi_flame_text_of_name(&flame, name)), DOMUS_CPU_PROFILE_NAME_MAX);
    domi_flame_fini(&flame);
}

DOMT_TEST(many_children_are_sorted_and_none_is_lost)
{
    char stack[64];
    char last[64] = "";
    uint32_t count = 0;

    begin_flame_graph();
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(stack, sizeof stack, "root n%08u", i * 2654435761u % 100000007u);
        add_stack_to_flame(stack, 1);
    }
    char *rest = (char *)(uintptr_t)write_folded_stacks();
    for (char *line = strtok_r(rest, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_int_lt(strcmp(last, line), 0);
        snprintf(last, sizeof last, "%s", line);
        count++;
    }
    ck_assert_uint_eq(count, 5000);
    domi_flame_fini(&flame);
}

DOMT_TEST(deepest_stack_is_whole)
{
    char stack[4 * DOMI_FLAME_DEPTH_MAX] = "";

    begin_flame_graph();
    for (uint32_t i = 0; i < DOMI_FLAME_DEPTH_MAX; i++)
        strncat(stack, "f ", sizeof stack - strlen(stack) - 1);
    add_stack_to_flame(stack, 7);
    write_folded_stacks();
    ck_assert_uint_eq(count_part_in_text("f"), DOMI_FLAME_DEPTH_MAX);
    write_flame_graph("deep");
    ck_assert_uint_eq(count_part_in_text("<rect x"), DOMI_FLAME_DEPTH_MAX + 1);
    expect_graph_is_well_formed();
    domi_flame_fini(&flame);
}

DOMT_TEST(graph_is_xml_and_has_a_box_for_each_node)
{
    begin_flame_graph();
    add_stack_to_flame("one f<int>&g \"quoted'", 3);
    add_stack_to_flame("two h", 1);
    write_flame_graph("3 < 4 & so on");
    ck_assert_uint_eq(count_part_in_text("<g>"), 6);
    ck_assert_uint_eq(count_part_in_text("<title>all: 4 samples, 100.0 %</title>"), 1);
    ck_assert_uint_eq(count_part_in_text("<title>f&lt;int&gt;&amp;g: 3 samples, 75.0 %</title>"),
                      1);
    ck_assert_uint_eq(count_part_in_text("<title>3 &lt; 4 &amp; so on</title>"), 1);
    /* The 4 samples share a width of 1,180 px. Of the first row's two boxes, one begins at the
     * margin and has 3 samples, and the other one begins behind it. */
    ck_assert_uint_eq(count_part_in_text("<rect x=\"10.0\" y=\"74\" width=\"885.0\""), 1);
    ck_assert_uint_eq(count_part_in_text("<rect x=\"895.0\" y=\"74\" width=\"295.0\""), 1);
    ck_assert_uint_eq(count_part_in_text("<rect x=\"10.0\" y=\"91\" width=\"1180.0\""), 1);
    expect_graph_is_well_formed();
    domi_flame_fini(&flame);
}

DOMT_TEST(narrow_boxes_are_left_out)
{
    begin_flame_graph();
    add_stack_to_flame("wide f", 99999);
    add_stack_to_flame("narrow g", 1);
    write_flame_graph("");
    ck_assert_uint_eq(count_part_in_text("<title>wide:"), 1);
    ck_assert_uint_eq(count_part_in_text("<title>narrow:"), 0);
    ck_assert_uint_eq(count_part_in_text("<title>g:"), 0);
    ck_assert_uint_eq(count_part_in_text("narrow;g"), 0);
    domi_flame_fini(&flame);
}

DOMT_TEST(graph_of_nothing_is_xml_too)
{
    begin_flame_graph();
    ck_assert_str_eq(write_folded_stacks(), "");
    write_flame_graph("nothing");
    ck_assert_uint_eq(count_part_in_text("<g>"), 0);
    expect_graph_is_well_formed();
    domi_flame_fini(&flame);
}

DOMT_TEST(error_of_the_writer_ends_the_text)
{
    char stack[64];

    begin_flame_graph();
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(stack, sizeof stack, "root n%08u", i);
        add_stack_to_flame(stack, 1);
    }
    domi_flame_sort_children(&flame);
    length = 0;
    fails_at = 5000;
    ck_assert_int_eq(domi_flame_write_folded(&flame, append_piece_to_text, text), -EPIPE);
    ck_assert_uint_lt(length, 5000 + 4096);
    ck_assert_uint_eq(fails, 1);
    length = 0;
    ck_assert_int_eq(domi_flame_write_svg(&flame, "", append_piece_to_text, text), -EPIPE);
    ck_assert_uint_lt(length, 5000 + 4096);
    ck_assert_uint_eq(fails, 2);
    domi_flame_fini(&flame);
}

/* Each allocation fails once, and after each failure the flame has exactly the stacks that were
 * added before. */
DOMT_TEST(add_without_memory_leaves_graph_as_it_was)
{
    int64_t n = 0;
    int result = -ENOMEM;
    uint64_t failures = 0;

    for (; result != 0; n++) {
        uint64_t added = 0;
        char stack[64];
        domi_memory_fail_allocation_after(n, 0);
        result = domi_flame_init(&flame);
        for (uint32_t i = 0; i < 1000 && result == 0; i++) {
            snprintf(stack, sizeof stack, "root name-%u of-%u", i, i % 7);
            result = try_to_add_stack(stack, 1);
            added += result == 0;
        }
        domi_memory_fail_allocation_after(-1, 0);
        failures += result != 0;
        if (result == 0 || added != 0) {
            ck_assert_uint_eq(domi_flame_node_at(&flame, 0)->total, added);
            domi_flame_fini(&flame);
        } else if (flame.nodes.at != NULL) {
            domi_flame_fini(&flame);
        }
        ck_assert_int_lt(n, 1000);
    }
    ck_assert_uint_ge(failures, 6);
}

DOMT_SUITE(60)
