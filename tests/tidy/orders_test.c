/* docs/decisions/memory-order.md has a row for each atomic access with an order of memory: its
 * folder, the order, and the word that is accessed. So nobody writes a weaker order without an
 * argument for it, and the page has no row that no access needs. Each litmus test is named on the
 * page, and each model names functions that are there. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE     "docs/decisions/memory-order.md"
#define ROWS_MAX 1024
#define WORD_MAX 64

/* A row of the page's table, with one of the words that the row names. */
typedef struct row {
    char where[WORD_MAX];
    char order[WORD_MAX];
    char word[WORD_MAX];
    bool is_used;
} row;

static row rows[ROWS_MAX];
static size_t rows_count;

static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
#define ORDERS (sizeof orders / sizeof orders[0])
static uint32_t counts[ORDERS]; /* how often the visited sources use each order of memory */

static void copy_word_of_length(char to[WORD_MAX], const char *from, size_t length)
{
    ck_assert(length < WORD_MAX);
    snprintf(to, WORD_MAX, "%.*s", (int)length, from);
}

/* Read a row of the page's table, "| `WHERE` | ORDER | WORD ... |". A line that is no such row is
 * passed over. */
static void read_row_of_page(const char *line)
{
    char where[WORD_MAX], order[WORD_MAX];
    int words = 0;

    if (sscanf(line, "| `%63[a-z0-9_/]` | %63[a-z_] | %n", where, order, &words) != 2 || words == 0)
        return;
    for (const char *p = line + words; *p != '|' && *p != '\n'; p += strspn(p, " ")) {
        size_t length = strcspn(p, " |\n");
        ck_assert(rows_count < ROWS_MAX);
        row *one = &rows[rows_count++];
        memcpy(one->where, where, sizeof where);
        memcpy(one->order, order, sizeof order);
        copy_word_of_length(one->word, p, length);
        p += length;
    }
}

static void read_rows_of_page(void)
{
    if (rows_count != 0)
        return;
    char *text = domt_tree_read_text(DOMT_SOURCE_DIR "/" PAGE);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        read_row_of_page(line);
    }
    free(text);
    ck_assert_uint_gt(rows_count, 200);
}

static bool has_access_a_row(const char *path, const char *order, const char *word)
{
    bool is_there = false;

    for (size_t i = 0; i < rows_count; i++) {
        if (!domt_text_starts_with(path, rows[i].where) || strcmp(rows[i].order, order) != 0 ||
            strcmp(rows[i].word, word) != 0)
            continue;
        rows[i].is_used = is_there = true;
    }
    return is_there;
}

/* --- accesses -------------------------------------------------------------------------------- */

/* Returns the end of the call's argument that begins at `p`: a comma, or the parenthesis that
 * closes the call. */
static const char *end_of_call_argument(const char *p)
{
    for (int depth = 0; *p != '\0'; p++) {
        if (depth == 0 && (*p == ',' || *p == ')'))
            return p;
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    }
    return p;
}

/* Find the name of the accessed word: the last identifier of the argument that is no part of an
 * index. */
static void find_accessed_word(const char *p, const char *end, char ret_word[WORD_MAX])
{
    int depth = 0;

    ret_word[0] = '\0';
    while (p < end) {
        depth += (*p == '[') - (*p == ']');
        size_t length = 0;
        while (p + length < end && domt_is_identifier_char(p[length]))
            length++;
        if (length != 0 && depth == 0 && !isdigit((unsigned char)*p))
            copy_word_of_length(ret_word, p, length);
        p += length != 0 ? length : 1;
    }
}

/* Find the order of memory that the argument names, in lower case; the result is empty if it names
 * none. */
static void find_memory_order(const char *p, const char *end, char ret_order[WORD_MAX])
{
    p += strspn(p, " \n");
    const char *name = domt_text_starts_with(p, "memory_order_") ? p + strlen("memory_order_")
                       : domt_text_starts_with(p, "__ATOMIC_")   ? p + strlen("__ATOMIC_")
                                                                 : NULL;

    ret_order[0] = '\0';
    if (name == NULL)
        return;
    copy_word_of_length(ret_order, name, (size_t)(end - name));
    for (char *c = ret_order; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
}

/* Check that the atomic access whose opening parenthesis is before `p` has a row on the page. */
static void check_access_has_a_row(const domt_source *source, const char *p, domt_report *report)
{
    char word[WORD_MAX], order[WORD_MAX];
    const char *end = end_of_call_argument(p);

    find_accessed_word(p, end, word);
    while (*end == ',') {
        p = end + 1;
        end = end_of_call_argument(p);
        find_memory_order(p, end, order);
        for (size_t i = 0; i < ORDERS; i++)
            counts[i] += strcmp(order, orders[i]) == 0;
        if (order[0] != '\0' && !has_access_a_row(source->path, order, word))
            domt_report_add_offence(report, source->path, domt_line_number_of(source->code, p),
                                    "no row of " PAGE " has `%s` with %s", word, order);
    }
}

static void check_atomic_accesses_of_file(const domt_source *source, domt_report *report)
{
    static const char *const folders[] = {"base/",    "house/",     "io/",
                                          "runtime/", "protocols/", "config/"};
    bool is_library = false;

    read_rows_of_page();
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        is_library = is_library || domt_text_starts_with(source->path, folders[i]);
    if (!is_library)
        return;
    for (const char *p = source->code; (p = strstr(p, "atomic_")) != NULL;) {
        const char *name_end = p;
        while (domt_is_identifier_char(*name_end))
            name_end++;
        if (*name_end == '(')
            check_access_has_a_row(source, name_end + 1, report);
        p = name_end;
    }
}

/* Check the page's counts of the accesses with each order. A word may have rows with several
 * orders, so its rows do not show that one of its accesses got a weaker order; but each change of
 * an order changes two of these counts. */
static void check_counts_of_orders(void)
{
    char *text = domt_tree_read_text(DOMT_SOURCE_DIR "/" PAGE);
    char expected[128];
    size_t used = 0;

    for (size_t i = 0; i < ORDERS; i++)
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s %u",
                                 i != 0 ? ", " : "", orders[i], counts[i]);
    ck_assert_msg(strstr(text, expected) != NULL,
                  PAGE ": the sources have '%s'. Has the order that changed an argument there?",
                  expected);
    free(text);
}

DOMT_TEST(each_memory_order_has_a_row)
{
    memset(counts, 0, sizeof counts);
    domt_tree_check_rule_holds(check_atomic_accesses_of_file);
    check_counts_of_orders();
    for (size_t i = 0; i < rows_count; i++)
        ck_assert_msg(rows[i].is_used, PAGE ": nobody below %s accesses `%s` with %s",
                      rows[i].where, rows[i].word, rows[i].order);
}

DOMT_TEST(tidy_sees_memory_order_without_a_row)
{
    domt_tree_check_rule_sees_offence(
        check_atomic_accesses_of_file, "base/planted.c",
        "int f(atomic_int *a) { return atomic_load_explicit(a, memory_order_relaxed); }\n",
        "`a` with relaxed");
    domt_tree_check_rule_sees_offence(
        check_atomic_accesses_of_file, "io/planted.c",
        "int f(int *a) { return __atomic_load_n(&x[a].b, __ATOMIC_ACQUIRE); }\n",
        "`b` with acquire");
    domt_tree_check_rule_accepts(check_atomic_accesses_of_file, "base/planted.c",
                                 "/* memory_order_relaxed */ int memory_order;\n");
    domt_tree_check_rule_accepts(
        check_atomic_accesses_of_file, "bench/planted.c",
        "int f(atomic_int *a) { return atomic_load_explicit(a, memory_order_relaxed); }\n");
}

/* --- litmus tests ---------------------------------------------------------------------------- */

DOMT_TEST(each_litmus_test_is_named_on_page)
{
    char *text = domt_tree_read_text(DOMT_SOURCE_DIR "/" PAGE);
    glob_t found;

    ck_assert_int_eq(glob(DOMT_SOURCE_DIR "/models/litmus/*.litmus", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char quoted[WORD_MAX];
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        snprintf(quoted, sizeof quoted, "`%.*s`", (int)strcspn(name, "."), name);
        ck_assert_msg(strstr(text, quoted) != NULL, PAGE " does not name %s", name);
    }
    globfree(&found);
    free(text);
}

/* --- models ----------------------------------------------------------------------------------- */

/* Check the list of a model's head: each word with a slash is a source, and each other word with an
 * underscore stands in the source before it. Returns the number of these words. */
static uint32_t check_list_of_modelled_functions(const char *model, char *list)
{
    char *code = NULL, *rest;
    uint32_t count = 0;

    for (char *word = strtok_r(list, " \n,;()*", &rest); word != NULL;
         word = strtok_r(NULL, " \n,;()*", &rest)) {
        char path[DOMT_PATH_MAX];
        if (strchr(word, '/') != NULL) {
            free(code);
            size_t size = strlen(word);
            size -= word[size - 1] == '.'; /* it ends a sentence */
            snprintf(path, sizeof path, "%s/%.*s", DOMT_SOURCE_DIR, (int)size, word);
            code = domt_tree_read_text(path);
        } else if (strchr(word, '_') != NULL) {
            word[strcspn(word, ".:")] = '\0';
            ck_assert_msg(code != NULL && domt_find_word(code, code, word) != NULL,
                          "%s: %s is not in the source that is named before it", model, word);
            count++;
        }
    }
    free(code);
    return count;
}

DOMT_TEST(each_model_names_functions_that_are_there)
{
    uint32_t count = 0;
    glob_t found;

    ck_assert_int_eq(glob(DOMT_SOURCE_DIR "/models/*.pml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = domt_tree_read_text(found.gl_pathv[i]);
        char *list = strstr(text, "Models: ");
        char *end = list != NULL ? strstr(list, "Holds: ") : NULL;
        ck_assert_msg(end != NULL, "%s: its head does not say what it models and holds",
                      found.gl_pathv[i]);
        *end = '\0';
        count += check_list_of_modelled_functions(found.gl_pathv[i], list);
        free(text);
    }
    globfree(&found);
    ck_assert_uint_ge(count, 100);
}

/* herd7 is in no stable Debian yet, so a machine has it only if somebody installed it with `./dev
 * litmus`. The mutants of the models show that the tests can fail and change only with the models,
 * so the short form leaves them out. */
static void run_litmus_command(const char *option, const char *missing)
{
    static char output[65536];
    int status = domt_run_shell(output, sizeof output, "'%s/models/litmus/run' %s 2>&1",
                                DOMT_SOURCE_DIR, option);

    if (status == 77)
        printf("left out: %s\n", missing);
    else
        ck_assert_msg(status == 0, "status %d:\n%s", status, output);
}

DOMT_TEST(litmus_tests_hold_if_herd7_is_installed)
{
    run_litmus_command(getenv("DOMT_LONG") != NULL ? "" : "--short",
                       "there is no herd7; ./dev litmus gets it");
}

DOMT_TEST(compilers_emit_instructions_of_litmus_tests)
{
    run_litmus_command("--mapping", "there is no compiler for AArch64");
}

DOMT_TEST(missing_litmus_test_is_reported_in_one_line)
{
    char output[512];
    int status = domt_run_shell(output, sizeof output, "'%s/models/litmus/run' nosuch 2>&1",
                                DOMT_SOURCE_DIR);

    ck_assert_int_eq(status, 2);
    ck_assert_str_eq(output, "litmus: there is no test nosuch (models/litmus/*.litmus are all)\n");
}

DOMT_SUITE(300)
