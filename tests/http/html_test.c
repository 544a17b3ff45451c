/* Texts of strangers stay texts within a page. */
#include "tests/support/suite.h"

#include <domus/http_html.h>

#include <errno.h>
#include <string.h>

static const struct {
    const char *text;
    size_t size;
    const char *html;
} rows[] = {
    {"", 0, ""},
    {"plain", 5, "plain"},
    {"&<>\"'", 5, "&amp;&lt;&gt;&quot;&#39;"},
    {"<script>a && \"b\"</script>", 25, "&lt;script&gt;a &amp;&amp; &quot;b&quot;&lt;/script&gt;"},
    {"&lt;", 4, "&amp;lt;"},
    {"\xc3\xa4 <", 4, "\xc3\xa4 &lt;"},
    {"<a", 1, "&lt;"},
};

DOMT_TEST(text_stays_text)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = strlen(rows[i].html);
        domus_appender page = {.size_max = (uint32_t)size};
        domus_slice made;

        ck_assert_int_eq(domus_http_append_html(&page, rows[i].text, rows[i].size), 0);
        ck_assert_int_eq(domus_append_end(&page, &made), 0);
        ck_assert(domus_slice_equals(made, rows[i].html, size));
        domus_slice_free(made);
        page = (domus_appender){.size_max = (uint32_t)size - 1};
        if (size > 1) {
            ck_assert_int_eq(domus_http_append_html(&page, rows[i].text, rows[i].size), -EMSGSIZE);
            domus_append_drop(&page);
        }
    }
}

DOMT_SUITE(10)
