/* Fuzzes urls. The input is a base url, a line feed, and a reference. A url that is written again
 * from its parts is the same, and resolving a resolved url again changes nothing. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_url.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Write a url from its parts, as it was before it was parsed. */
static domus_slice write_url_from_parts(const domus_http_url *url)
{
    domus_appender text = {0};
    domus_slice made;

    (void)domus_append_text(&text, "%s://%.*s:%u", url->secure ? "https" : "http",
                            (int)url->host_size, url->host, url->port);
    (void)domus_append(&text, url->target, url->target_size);
    domt_fuzz_abort_unless(domus_append_end(&text, &made) == 0);
    return made;
}

/* Check that no byte in the parts of a url can end a line or a header. */
static void check_parts_of_url(const domus_http_url *url)
{
    domt_fuzz_abort_unless(url->host_size != 0 && url->host_size <= DOMUS_HTTP_HOST_MAX &&
                           url->port != 0);
    for (uint32_t i = 0; i < url->host_size; i++)
        domt_fuzz_abort_unless(strchr("/?#@\\% \r\n", url->host[i]) == NULL);
    for (uint32_t i = 0; i < url->target_size; i++)
        domt_fuzz_abort_unless(url->target[i] > ' ' && url->target[i] < 0x7f &&
                               url->target[i] != '#');
    domt_fuzz_abort_unless(url->target_size == 0 || *url->target == '/' || *url->target == '?');
}

/* Parse a url. Returns whether it is valid. */
static bool parse_and_check_url(const char *text, size_t size)
{
    domus_http_url url, again;

    if (domus_http_url_parse(text, size, &url) != 0)
        return false;
    check_parts_of_url(&url);
    domus_slice written = write_url_from_parts(&url);
    if (written.size <= DOMUS_HTTP_URL_MAX) {
        domt_fuzz_abort_unless(
            domus_http_url_parse(domus_slice_data(written), written.size, &again) == 0);
        domt_fuzz_abort_unless(domus_http_url_same_origin(&url, &again));
        domt_fuzz_abort_unless(url.target_size == again.target_size &&
                               memcmp(url.target, again.target, url.target_size) == 0);
    }
    domus_slice_free(written);
    return true;
}

static domus_slice resolve_reference(const char *base, size_t base_size, const char *text,
                                     size_t size)
{
    domus_appender to = {0};
    domus_slice made = {NULL, 0, 0};

    if (domus_http_url_resolve(base, base_size, text, size, &to) == 0)
        domt_fuzz_abort_unless(domus_append_end(&to, &made) == 0);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *base = (const char *)data;
    const char *end = size != 0 ? memchr(base, '\n', size) : NULL;
    size_t base_size = end != NULL ? (size_t)(end - base) : size;
    size_t rest = end != NULL ? size - base_size - 1 : 0;

    bool is_base = parse_and_check_url(base, base_size);
    domus_slice made = resolve_reference(base, base_size, base + size - rest, rest);
    if (is_base && parse_and_check_url(domus_slice_data(made), made.size)) {
        domus_slice once = resolve_reference(base, base_size, domus_slice_data(made), made.size);
        domus_slice twice = resolve_reference(base, base_size, domus_slice_data(once), once.size);
        domt_fuzz_abort_unless(once.size != 0 &&
                               domus_slice_equals(twice, domus_slice_data(once), once.size));
        domus_slice_free(once);
        domus_slice_free(twice);
    }
    domus_slice_free(made);
    return 0;
}
