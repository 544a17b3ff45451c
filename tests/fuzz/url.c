/* Fuzzes addresses of HTTP. The input is a base, a line feed, and a reference. An address that is
 * written again from its parts is the same, and resolving a resolved address again changes
 * nothing. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_url.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Write an address from its parts. */
static domus_slice write_url(const domus_http_url *url)
{
    domus_appender text = {0};
    domus_slice made;

    (void)domus_append_text(&text, "%s://%.*s:%u", url->secure ? "https" : "http",
                            (int)url->host_size, url->host, url->port);
    (void)domus_append(&text, url->target, url->target_size);
    must(domus_append_end(&text, &made) == 0);
    return made;
}

/* Check that no byte in the parts of an address can end a line or a header. */
static void check_parts(const domus_http_url *url)
{
    must(url->host_size != 0 && url->host_size <= DOMUS_HTTP_HOST_MAX && url->port != 0);
    for (uint32_t i = 0; i < url->host_size; i++)
        must(strchr("/?#@\\% \r\n", url->host[i]) == NULL);
    for (uint32_t i = 0; i < url->target_size; i++)
        must(url->target[i] > ' ' && url->target[i] < 0x7f && url->target[i] != '#');
    must(url->target_size == 0 || *url->target == '/' || *url->target == '?');
}

/* Parse an address. Returns whether it is valid. */
static bool check_address(const char *text, size_t size)
{
    domus_http_url url, again;

    if (domus_http_url_parse(text, size, &url) != 0)
        return false;
    check_parts(&url);
    domus_slice written = write_url(&url);
    if (written.size <= DOMUS_HTTP_URL_MAX) {
        must(domus_http_url_parse(domus_slice_data(written), written.size, &again) == 0);
        must(domus_http_url_same_origin(&url, &again));
        must(url.target_size == again.target_size &&
             memcmp(url.target, again.target, url.target_size) == 0);
    }
    domus_slice_free(written);
    return true;
}

static domus_slice resolve(const char *base, size_t base_size, const char *text, size_t size)
{
    domus_appender to = {0};
    domus_slice made = {NULL, 0, 0};

    if (domus_http_url_resolve(base, base_size, text, size, &to) == 0)
        must(domus_append_end(&to, &made) == 0);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *base = (const char *)data;
    const char *end = size != 0 ? memchr(base, '\n', size) : NULL;
    size_t base_size = end != NULL ? (size_t)(end - base) : size;
    size_t rest = end != NULL ? size - base_size - 1 : 0;

    bool is_base = check_address(base, base_size);
    domus_slice made = resolve(base, base_size, base + size - rest, rest);
    if (is_base && check_address(domus_slice_data(made), made.size)) {
        domus_slice once = resolve(base, base_size, domus_slice_data(made), made.size);
        domus_slice twice = resolve(base, base_size, domus_slice_data(once), once.size);
        must(once.size != 0 && domus_slice_equals(twice, domus_slice_data(once), once.size));
        domus_slice_free(once);
        domus_slice_free(twice);
    }
    domus_slice_free(made);
    return 0;
}
