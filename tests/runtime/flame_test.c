/* Flame graphs and the names in them: stacks become a tree, and functions and probes have their
 * names. */
#include "base/memory.h"
#include "runtime/control/flame.h"
#include "runtime/os/symbols.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* runtime/control/flame.h: stacks of a CPU profile become a tree, text with one line for each
 * stack (folded stacks), and a flame graph. */

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
    /* The 4 samples share a width of 1,180 px. The first row has two boxes: one begins at the
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

/* --- symbols ---------------------------------------------------------------------------------- */

/* Names of functions and probes in the file of a program. runtime/os/symbols.c: functions have
 * names, also those that no module exports. base/probe.h: the probes of the libraries are there,
 * and the scripts in examples/trace use no others. The kernel may not let this process trace, so
 * nothing is traced. */

/* --- functions -------------------------------------------------------------------------------- */

static char name[64];

__attribute__((noinline)) static int sum_in_static_function(int by)
{
    static volatile int sum;
    for (int i = 0; i < by; i++)
        sum += i * by;
    return sum;
}

DOMT_TEST(static_function_has_its_name)
{
    domi_symbols *symbols = domi_symbols_new();
    uintptr_t begin = (uintptr_t)sum_in_static_function;

    ck_assert_int_eq(sum_in_static_function(1), 0);
    for (uintptr_t at = begin; at < begin + 8; at++) {
        ck_assert_uint_eq(domi_symbols_find_name(symbols, at, name, sizeof name), begin);
        ck_assert_str_eq(name, "sum_in_static_function");
    }
    uintptr_t before = domi_symbols_find_name(symbols, begin - 1, name, sizeof name);
    ck_assert_uint_ne(before, begin);
    ck_assert_str_ne(name, "sum_in_static_function");
    domi_symbols_free(symbols);
}

DOMT_TEST(function_of_another_module_has_its_name)
{
    domi_symbols *symbols = domi_symbols_new();
    ck_assert_uint_ne(domi_symbols_find_name(symbols, (uintptr_t)qsort_r, name, sizeof name), 0);
    ck_assert_ptr_nonnull(strstr(name, "qsort_r"));
    domi_symbols_free(symbols);
}

DOMT_TEST(address_outside_of_modules_is_named_so)
{
    domi_symbols *symbols = domi_symbols_new();
    void *code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(code, MAP_FAILED);
    ck_assert_uint_eq(domi_symbols_find_name(symbols, (uintptr_t)code, name, sizeof name), 0);
    ck_assert_str_eq(name, "code without a module");
    ck_assert_uint_eq(domi_symbols_find_name(symbols, 1, name, sizeof name), 0);
    munmap(code, 4096);
    domi_symbols_free(symbols);
}

DOMT_TEST(long_symbol_name_is_cut)
{
    domi_symbols *symbols = domi_symbols_new();
    ck_assert_uint_ne(domi_symbols_find_name(symbols, (uintptr_t)sum_in_static_function, name, 7),
                      0);
    ck_assert_str_eq(name, "sum_in");
    domi_symbols_free(symbols);
}

/* Without memory for the table of symbols, a function has the name that the loader knows, or its
 * place in the module. */
DOMT_TEST(name_of_function_is_found_without_memory)
{
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_symbols_new());
    domi_memory_fail_allocation_after(-1, 0);
    for (int64_t n = 0; n < 6; n++) {
        domi_symbols *symbols = domi_symbols_new();
        name[0] = '\0';
        domi_memory_fail_allocation_after(n, 0);
        (void)domi_symbols_find_name(symbols, (uintptr_t)sum_in_static_function, name, sizeof name);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_str_ne(name, "");
        if (n < 3)
            ck_assert_str_ne(name, "sum_in_static_function");
        domi_symbols_free(symbols);
    }
    ck_assert_str_eq(name, "sum_in_static_function");
}

/* --- probes ----------------------------------------------------------------------------------- */

#ifdef DOMI_USDT

static char text_symbols[4 << 20];

/* Run a shell command, and write its output to `text`. Returns the exit status of the command. */
static int run_command(const char *command)
{
    FILE *file = popen(command, "r"); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_ptr_nonnull(file);
    size_t size = fread(text_symbols, 1, sizeof text_symbols - 1, file);
    text_symbols[size] = '\0';
    return pclose(file);
}

DOMT_TEST(each_kernel_probe_is_in_the_program_file)
{
    static const char *const names[] = {"phase",         "run__begin", "run__end", "turn__begin",
                                        "send",          "send__belt", "wake",     "park__begin",
                                        "park__end",     "steal",      "stall",    "channel__open",
                                        "channel__close"};
    char command[256], line[64];

    if (run_command("command -v readelf") != 0)
        return;
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe 2>/dev/null", (int)getpid());
    (void)run_command(command);
    ck_assert_ptr_nonnull(strstr(text_symbols, "Provider: domus"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(line, sizeof line, "Name: %s\n", names[i]);
        ck_assert_msg(strstr(text_symbols, line) != NULL, "%s", names[i]);
    }
    /* No probe has a semaphore, because the program would have to check it each time. */
    for (const char *at = text_symbols; (at = strstr(at, "Semaphore: ")) != NULL; at++)
        ck_assert(strncmp(at, "Semaphore: 0x0000000000000000", 29) == 0);
}

DOMT_TEST(scripts_name_only_probes_that_there_are)
{
    char command[1024], probe[64], *rest;

    ck_assert_int_eq(run_command("cat '" DOMT_SOURCE_DIR "'/examples/trace/*.bt | "
                                 "grep -o 'usdt:\\*:domus:[a-z_]*' | sort -u"),
                     0);
    ck_assert_uint_gt(strlen(text_symbols), 100);
    static char wanted[4096];
    ck_assert_uint_lt(strlen(text_symbols), sizeof wanted);
    memcpy(wanted, text_symbols, strlen(text_symbols) + 1);
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe 2>/dev/null", (int)getpid());
    (void)run_command(command);
    for (const char *at = strtok_r(wanted, "\n", &rest); at != NULL;
         at = strtok_r(NULL, "\n", &rest)) {
        snprintf(probe, sizeof probe, "Name: %s\n", strrchr(at, ':') + 1);
        ck_assert_msg(strstr(text_symbols, probe) != NULL, "%s", at);
    }
}

#else

DOMT_TEST(build_without_probes_has_none_to_check)
{
}

#endif

DOMT_SUITE(60)
