/* A subject matches a pattern if and only if a model says so that tries all ways to cover the
 * subject's tokens. */
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>

#define TOKENS_MAX 5u

typedef struct tokens {
    uint32_t count;
    char text[TOKENS_MAX][4];
} tokens;

/* The model: returns whether the rest of the pattern covers the rest of the subject's tokens. */
static bool does_pattern_match(const tokens *pattern, uint32_t p, const tokens *subject, uint32_t s)
{
    if (p == pattern->count)
        return s == subject->count;
    if (s == subject->count)
        return false;
    if (strcmp(pattern->text[p], ">") == 0 && p + 1 == pattern->count)
        return true;
    if (strcmp(pattern->text[p], "*") != 0 && strcmp(pattern->text[p], subject->text[s]) != 0)
        return false;
    return does_pattern_match(pattern, p + 1, subject, s + 1);
}

static tokens draw_tokens(domi_random *random, const char *const *words, uint32_t count)
{
    tokens drawn = {.count = 1 + (uint32_t)domi_random_below(random, TOKENS_MAX)};

    for (uint32_t i = 0; i < drawn.count; i++)
        snprintf(drawn.text[i], sizeof drawn.text[i], "%s",
                 words[domi_random_below(random, count)]);
    return drawn;
}

static void join_tokens(const tokens *from, char text[64])
{
    size_t used = 0;

    for (uint32_t i = 0; i < from->count; i++)
        used += (size_t)snprintf(text + used, 64 - used, "%s%s", i != 0 ? "." : "", from->text[i]);
}

DOMT_TEST(patterns_match_as_the_model_says)
{
    static const char *const words[] = {"a", "b", "ab", "*", "*", ">"};
    char pattern_text[64], subject_text[64];
    uint32_t matches = 0;
    domi_random random;

    domi_random_init(&random, 1);
    for (uint32_t i = 0; i < 200000; i++) {
        tokens pattern = draw_tokens(&random, words, 6);
        tokens subject = draw_tokens(&random, words, 3);
        for (uint32_t k = 0; k + 1 < pattern.count; k++) {
            /* ">" is allowed as the last token of a pattern only */
            if (strcmp(pattern.text[k], ">") == 0)
                snprintf(pattern.text[k], sizeof pattern.text[k], "a");
        }
        join_tokens(&pattern, pattern_text);
        join_tokens(&subject, subject_text);
        bool wanted = does_pattern_match(&pattern, 0, &subject, 0);
        bool got = domus_testkit_cluster_matches(pattern_text, subject_text);
        ck_assert_msg(got == wanted, "%s and %s: %d", pattern_text, subject_text, got);
        matches += got;
    }
    ck_assert_uint_ge(matches, 15000);
}

DOMT_TEST(patterns_in_special_cases_match_as_listed)
{
    static const struct {
        const char *pattern;
        const char *subject;
        bool matches;
    } rows[] = {
        {">", "a", true},
        {">", "a.b.c", true},
        {"a.>", "a", false},
        {"a.>", "a.b", true},
        {"*", "a", true},
        {"*", "a.b", false},
        {"a.*.c", "a.b.c", true},
        {"a.*.c", "a.c", false},
        {"a", "ab", false},
        {"ab", "a", false},
        {"a.b", "a.b", true},
        {"a*", "ab", false},
        {"$KV.x.>", "$KV.x.k", true},
        {"a.>", "", false},
        {"a.b", "a", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(domus_testkit_cluster_matches(rows[i].pattern, rows[i].subject) ==
                          rows[i].matches,
                      "%s and %s", rows[i].pattern, rows[i].subject);
}

DOMT_SUITE(30)
