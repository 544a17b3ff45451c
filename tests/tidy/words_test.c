/* Words that may not stand in code or begin a comment, each with the words to write instead. */
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that may not stand in code, each with the words to write instead. */

enum scope {
    EVERYWHERE,
    LIBRARIES, /* the word is banned in libdomus and libdomus-config */
    LIBDOMUS,
    SOCKETS, /* the word is banned in code that uses sockets: io, and runtime without runtime/os */
};

/* Banned calls: a word with an opening parenthesis behind it. `except` is the begin of the paths in
 * which the word may stand; NULL: in none. */
static const struct banned {
    const char *word;
    enum scope scope;
    const char *except;
    const char *instead;
} banned[] = {
    {"strcpy", EVERYWHERE, NULL, "memcpy with a checked length, or snprintf"},
    {"strcat", EVERYWHERE, NULL, "snprintf at the end of what is there"},
    {"sprintf", EVERYWHERE, NULL, "snprintf"},
    {"vsprintf", EVERYWHERE, NULL, "vsnprintf"},
    {"gets", EVERYWHERE, NULL, "fgets"},
    {"strtok", EVERYWHERE, NULL, "strtok_r"},
    {"atoi", EVERYWHERE, NULL, "strtol, which tells what is no number"},
    {"atol", EVERYWHERE, NULL, "strtol, which tells what is no number"},
    {"atoll", EVERYWHERE, NULL, "strtoll, which tells what is no number"},
    {"atof", EVERYWHERE, NULL, "strtod, which tells what is no number"},
    {"alloca", EVERYWHERE, NULL, "an array with a limit"},
    {"__builtin_alloca", EVERYWHERE, NULL, "an array with a limit"},
    {"rand", EVERYWHERE, NULL, "base/random: chance has a seed"},
    {"srand", EVERYWHERE, NULL, "base/random: chance has a seed"},
    {"random", EVERYWHERE, NULL, "base/random: chance has a seed"},
    {"atomic_thread_fence", EVERYWHERE, NULL,
     "a read-modify-write on both sides: ThreadSanitizer cannot see a fence"},
    {"__atomic_thread_fence", EVERYWHERE, NULL,
     "a read-modify-write on both sides: ThreadSanitizer cannot see a fence"},
    {"__sync_synchronize", EVERYWHERE, NULL,
     "a read-modify-write on both sides: ThreadSanitizer cannot see a fence"},
    {"signal", EVERYWHERE, NULL, "sigaction"},
    {"sigaction", LIBDOMUS, "runtime/system/",
     "nothing: only stalls, CPU profiles and crashes have handlers"},
    {"sleep", LIBRARIES, NULL, "a timer: nothing blocks a thread"},
    {"usleep", LIBRARIES, NULL, "a timer: nothing blocks a thread"},
    {"nanosleep", LIBRARIES, "base/clock", "a timer: nothing blocks a thread"},
    {"clock_gettime", LIBDOMUS, "base/clock", "domi_clock_now, or the now_ns that was handed in"},
    {"gettimeofday", LIBRARIES, NULL, "domi_clock_now, or the now_ns that was handed in"},
    {"time", LIBRARIES, NULL, "domi_clock_now, or the now_ns that was handed in"},
    {"__rdtsc", LIBRARIES, "base/clock", "domi_clock_now, or the now_ns that was handed in"},
    {"__builtin_ia32_rdtsc", LIBRARIES, "base/clock",
     "domi_clock_now, or the now_ns that was handed in"},
    {"assert", LIBRARIES, NULL, "DOMI_CHECK, which stays in release, or static_assert"},
    {"abort", LIBRARIES, "base/check", "DOMI_CHECK, which says what and where"},
    {"exit", LIBRARIES, "config/main", "an error value: the library ends no program"},
    {"printf", LIBRARIES, "config/main", "text for the caller: the library prints nothing"},
    {"vprintf", LIBRARIES, "config/main", "text for the caller: the library prints nothing"},
    {"puts", LIBRARIES, "config/main", "text for the caller: the library prints nothing"},
    {"putchar", LIBRARIES, "config/main", "text for the caller: the library prints nothing"},
    {"socket", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"socketpair", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"bind", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"listen", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"connect", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"accept", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"accept4", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"shutdown", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"close", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"getsockopt", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"setsockopt", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"getsockname", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"getpeername", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"ioctl", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"fcntl", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"recv", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"recvfrom", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"recvmsg", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"send", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"sendto", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"sendmsg", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"read", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"write", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"eventfd", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"eventfd_read", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"eventfd_write", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"ppoll", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"epoll_ctl", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"epoll_wait", SOCKETS, "io/backend/", "a slot of domi_sockets (io/backend/backend.h)"},
    {"perror", LIBRARIES, "config/main", "text for the caller: the library prints nothing"},
};

static bool is_path_in_scope_of_ban(const char *path, enum scope scope)
{
    static const char *const libdomus[] = {"base/", "house/", "io/", "runtime/"};

    if (scope == EVERYWHERE) {
        return true;
    }
    if (scope == SOCKETS) {
        return domt_text_starts_with(path, "io/") || (domt_text_starts_with(path, "runtime/") &&
                                                      !domt_text_starts_with(path, "runtime/os/"));
    }
    for (size_t i = 0; i < sizeof libdomus / sizeof libdomus[0]; i++) {
        if (domt_text_starts_with(path, libdomus[i])) {
            return true;
        }
    }
    return scope == LIBRARIES &&
           (domt_text_starts_with(path, "config/") || domt_text_starts_with(path, "protocols/") ||
            domt_text_starts_with(path, "include/"));
}

/* Returns the next place in `text`, from `from` on, where `word` stands alone and is no member of a
 * structure. */
static const char *find_next_banned_word(const char *text, const char *from, const char *word)
{
    for (const char *p = domt_find_word(text, from, word); p != NULL;
         p = domt_find_word(text, p + 1, word)) {
        if (p > text && (p[-1] == '.' || (p > text + 1 && p[-1] == '>' && p[-2] == '-'))) {
            continue;
        }
        return p;
    }
    return NULL;
}

/* Returns whether the call reads a clock of used CPU time: such a clock tells no time of day, so
 * any layer may read it. */
static bool does_call_read_cpu_time(const char *call)
{
    const char *clock = strchr(call, '(') + 1;

    clock += strspn(clock, " \n");
    return domt_text_starts_with(clock, "CLOCK_THREAD_CPUTIME_ID") ||
           domt_text_starts_with(clock, "CLOCK_PROCESS_CPUTIME_ID");
}

static void report_banned_calls(const domt_source *source, domt_report *report)
{
    for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++) {
        const struct banned *ban = &banned[i];
        if (!is_path_in_scope_of_ban(source->path, ban->scope) ||
            (ban->except != NULL && domt_text_starts_with(source->path, ban->except))) {
            continue;
        }
        const char *p = find_next_banned_word(source->code, source->code, ban->word);
        for (; p != NULL; p = find_next_banned_word(source->code, p + 1, ban->word)) {
            const char *after = p + strlen(ban->word);
            if (after[strspn(after, " ")] != '(' ||
                (strcmp(ban->word, "clock_gettime") == 0 && does_call_read_cpu_time(p))) {
                continue;
            }
            domt_report_add_offence(report, source->path, domt_line_number_of(source->code, p),
                                    "%s(): write %s", ban->word, ban->instead);
        }
    }
}

/* The rule of banned words that need no parenthesis behind them. */
static void report_uses_of_streams(const domt_source *source, domt_report *report)
{
    static const char *const streams[] = {"stdout", "stderr"};

    for (size_t i = 0; i < 2; i++) {
        if (!is_path_in_scope_of_ban(source->path, LIBRARIES) ||
            domt_text_starts_with(source->path, "config/main")) {
            continue;
        }
        const char *p = find_next_banned_word(source->code, source->code, streams[i]);
        for (; p != NULL; p = find_next_banned_word(source->code, p + 1, streams[i])) {
            domt_report_add_offence(report, source->path, domt_line_number_of(source->code, p),
                                    "%s: the library prints nothing", streams[i]);
        }
    }
}

/* The rule of the clock: only runtime reads it; other layers are given `now_ns`, so that a test kit
 * controls time. */
static void report_clock_outside_runtime(const domt_source *source, domt_report *report)
{
    if (!is_path_in_scope_of_ban(source->path, LIBDOMUS) ||
        domt_text_starts_with(source->path, "base/clock") ||
        domt_text_starts_with(source->path, "runtime/")) {
        return;
    }
    const char *p = find_next_banned_word(source->code, source->code, "domi_clock_now");
    for (; p != NULL; p = find_next_banned_word(source->code, p + 1, "domi_clock_now")) {
        domt_report_add_offence(report, source->path, domt_line_number_of(source->code, p),
                                "domi_clock_now: only runtime reads the clock, take now_ns");
    }
}

/* The rule of promises also looks at comments, so this file writes the banned words in two
 * parts. */
static void report_promises_in_comments(const domt_source *source, domt_report *report)
{
    static const char *const promises[] = {"TO"
                                           "DO",
                                           "FIX"
                                           "ME",
                                           "X"
                                           "XX"};

    for (size_t i = 0; i < sizeof promises / sizeof promises[0]; i++) {
        const char *p = find_next_banned_word(source->text, source->text, promises[i]);
        for (; p != NULL; p = find_next_banned_word(source->text, p + 1, promises[i])) {
            domt_report_add_offence(report, source->path, domt_line_number_of(source->text, p),
                                    "%s: do it, or open an issue", promises[i]);
        }
    }
}

DOMT_TEST(banned_calls_are_not_made)
{
    domt_tree_check_rule_holds(report_banned_calls);
}

DOMT_TEST(libraries_print_nothing)
{
    domt_tree_check_rule_holds(report_uses_of_streams);
}

DOMT_TEST(only_runtime_reads_the_clock)
{
    domt_tree_check_rule_holds(report_clock_outside_runtime);
}

DOMT_TEST(comments_promise_nothing)
{
    domt_tree_check_rule_holds(report_promises_in_comments);
}

DOMT_TEST(tidy_sees_every_banned_call)
{
    char text[128];
    char expected[128];

    for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++) {
        const char *path = banned[i].scope == EVERYWHERE ? "tests/base/planted.c" : "io/planted.c";
        snprintf(text, sizeof text, "void f(void)\n{\n    %s (x);\n}\n", banned[i].word);
        snprintf(expected, sizeof expected, ":3: %s()", banned[i].word);
        domt_tree_check_rule_sees_offence(report_banned_calls, path, text, expected);
    }
}

DOMT_TEST(tidy_sees_a_library_that_prints)
{
    domt_tree_check_rule_sees_offence(report_uses_of_streams, "config/planted.c",
                                      "int a = fputs(b, stderr);\n", "stderr");
    domt_tree_check_rule_sees_offence(report_uses_of_streams, "base/planted.c",
                                      "FILE *f = stdout;\n", "stdout");
}

DOMT_TEST(tidy_sees_a_clock_outside_runtime)
{
    domt_tree_check_rule_sees_offence(report_clock_outside_runtime, "house/planted.c",
                                      "a = domi_clock_now(clock);\n", "now_ns");
}

DOMT_TEST(tidy_sees_promise_in_comment)
{
    domt_tree_check_rule_sees_offence(report_promises_in_comments, "io/planted.c",
                                      "/* TO"
                                      "DO: later */\n",
                                      "open an issue");
    domt_tree_check_rule_sees_offence(report_promises_in_comments, "io/planted.c",
                                      "/* FIX"
                                      "ME */\n",
                                      "open an issue");
    domt_tree_check_rule_sees_offence(report_promises_in_comments, "bench/planted.c",
                                      "int a; // X"
                                      "XX\n",
                                      "open an issue");
}

/* The rules allow banned words in comments, in literals, as members and within longer names, and
 * also clocks of CPU time. */
DOMT_TEST(tidy_accepts_other_words)
{
    domt_tree_check_rule_accepts(report_banned_calls, "io/planted.c",
                                 "/* rand() */ const char *a = \"\\\"rand(\";\n");
    domt_tree_check_rule_accepts(
        report_banned_calls, "io/planted.c",
        "int b = table->signal(c) + table.exit(d) + my_rand(e) + rand_(f) + rand;\n");
    domt_tree_check_rule_accepts(report_banned_calls, "io/planted.c",
                                 "clock_gettime(CLOCK_THREAD_CPUTIME_ID, &c);\n");
    domt_tree_check_rule_accepts(report_banned_calls, "base/clock_planted.c",
                                 "clock_gettime(CLOCK_MONOTONIC, &c);\n");
    domt_tree_check_rule_accepts(report_banned_calls, "tests/base/planted.c",
                                 "usleep(1); printf(a);\n");
    domt_tree_check_rule_accepts(report_uses_of_streams, "config/main.c", "FILE *f = stderr;\n");
    domt_tree_check_rule_accepts(report_clock_outside_runtime, "runtime/planted.c",
                                 "a = domi_clock_now(clock);\n");
    domt_tree_check_rule_accepts(report_promises_in_comments, "io/planted.c",
                                 "char a[] = \"domt-XXXXXX\";\n");
}

/* --- openings --------------------------------------------------------------------------------- */

/* Openings that no comment may have. A comment is a plain sentence. One that begins with What, Who,
 * Those, Of or By puts a clause where a noun belongs; one that begins or ends with "..." leans on
 * another line; and "See the header." alone says nothing. Readers of such comments could only
 * guess. The rule looks at all comments of the tree's C files and of the models, sentence by
 * sentence. */

#define COMMENT_MAX 16384

/* Write the text of the comment [from, end) as one line, without its marks. `at` gets the place in
 * the file of each character. */
static size_t write_comment_as_one_line(const char *from, const char *end, char *text,
                                        const char **at)
{
    size_t length = 0;
    bool gap = true;

    for (const char *p = from + 2; p < end - 2 && length < COMMENT_MAX - 1; p++) {
        bool is_mark = *p == '*' && gap;
        if (isspace((unsigned char)*p) || is_mark) {
            if (!gap)
                text[length] = ' ', at[length++] = p;
            gap = true;
            continue;
        }
        text[length] = *p;
        at[length++] = p;
        gap = false;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return length;
}

static bool begins_with_banned_word(const char *sentence)
{
    static const char *const words[] = {"What", "Who", "Whom", "Whose", "Those", "Of", "By"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (domt_text_starts_with(sentence, words[i]) &&
            !domt_is_identifier_char(sentence[strlen(words[i])]))
            return true;
    }
    return false;
}

/* Returns whether a sentence begins at index `i` of the text: at its start, or behind a punctuation
 * mark and a space. */
static bool is_begin_of_sentence(const char *text, size_t i)
{
    return i == 0 || (i >= 2 && text[i - 1] == ' ' && strchr(".:;?!", text[i - 2]) != NULL);
}

static void check_openings_of_comment(const domt_source *source, const char *from, const char *end,
                                      domt_report *report)
{
    static char text[COMMENT_MAX];
    static const char *at[COMMENT_MAX];
    size_t length = write_comment_as_one_line(from, end, text, at);

    if (length == 0)
        return;
    if (strcmp(text, "See the header.") == 0)
        domt_report_add_offence(report, source->path, domt_line_number_of(source->text, from),
                                "say what this file adds to its header");
    if (domt_text_starts_with(text, "...") ||
        (length >= 3 && strcmp(text + length - 3, "...") == 0))
        domt_report_add_offence(report, source->path, domt_line_number_of(source->text, from),
                                "\"%.40s\" leans on another line", text);
    for (size_t i = 0; i < length; i++) {
        if (is_begin_of_sentence(text, i) && begins_with_banned_word(text + i))
            domt_report_add_offence(report, source->path, domt_line_number_of(source->text, at[i]),
                                    "\"%.40s\": begin with a noun", text + i);
    }
}

static void check_openings_of_comments(const domt_source *source, domt_report *report)
{
    for (const char *p = source->text; *p != '\0';) {
        const char *end = domt_end_of_comment_or_literal(p);
        if (end == NULL) {
            p++;
            continue;
        }
        if (domt_text_starts_with(p, "/*"))
            check_openings_of_comment(source, p, end, report);
        p = end;
    }
}

DOMT_TEST(comments_open_as_plain_sentences)
{
    domt_tree_check_rule_holds(check_openings_of_comments);
}

DOMT_TEST(comments_of_models_open_as_plain_sentences)
{
    static domt_report report;
    glob_t found;

    ck_assert_int_eq(glob(DOMT_SOURCE_DIR "/models/*.pml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        domt_tree_visit_file(DOMT_SOURCE_DIR, found.gl_pathv[i], check_openings_of_comments,
                             &report);
    globfree(&found);
    ck_assert_msg(report.count == 0, "%u:\n%s", report.count, report.text);
}

DOMT_TEST(tidy_sees_each_banned_opening)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"\n/* What is dropped is freed. */\n", "What is dropped"},
        {"\n/* It is freed. Who comes late\n * finds nothing. */\n", "Who comes late"},
        {"\n/* Those that wait go first. */\n", "Those that wait"},
        {"\n/* It is\n * free. Of two, the first. */\n", "Of two"},
        {"\n/* By this it is told. */\n", "By this"},
        {"\n/* ... which is so much */\n", "leans"},
        {"\n/* the first of these ... */\n", "leans"},
        {"\n/* See the header. */\n", "what this file adds"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_tree_check_rule_sees_offence(check_openings_of_comments, "base/slab.c", rows[i].text,
                                          rows[i].expected);
    domt_tree_check_rule_sees_offence(check_openings_of_comments, "tests/base/slab_test.c",
                                      rows[0].text, rows[0].expected);
    domt_tree_check_rule_accepts(
        check_openings_of_comments, "base/slab.c",
        "\n/* Whatever is freed is poisoned. Often it is not. See the header, too. */\n"
        "\nstatic const char *text = \"/* What */\";\n");
}

DOMT_SUITE(60)
