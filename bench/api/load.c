/* The load of `bench api` on one server: it checks each answer, and prints what it has measured.
 *
 *     api_load PORT PID get|list|insert RATE SECONDS REQUESTS COOKIE
 *
 * RATE is requests a second, or 0 for a closed loop; it ends when SECONDS have passed and REQUESTS
 * are sent; PID is the server, whose CPU time is taken; COOKIE is `session=...`, for inserts.
 * Issues with ids of FIRST to LAST are asked for in turn. They were made by bench/api.py, so an
 * answer is known byte by byte from the id in it; of a list the size and both ends are compared.
 *
 * stdout: lines `name value`. Exit 1 if an answer is wrong or lacks. */
#include "bench/request_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONNECTIONS 64
/* the first id of an issue that is asked for; each id has four digits, so that all requests have
 * the same size */
#define FIRST      1100
#define LAST       9999
#define COOKIE_MAX 512 /* bytes of the argument COOKIE, at most */
#define ITEMS      20
#define TAIL       16 /* bytes at the end of a body that are kept until the whole body has come */
#define HEAD_DONE  (UINT64_C(1) << 32)
#define BEGUN      (UINT64_C(1) << 33)

/* The JSON of an issue, as bench/api.py has made it: its id occurs three times, and the time of its
 * creation follows from the id. */
static const char issue[] =
    "{\"id\":%u,\"title\":\"Issue %u\",\"body\":\"The page of an order shows the sum of another "
    "one after the list was sorted by customer. Seen with order %u, in each browser that was "
    "tried.\",\"state\":\"open\",\"priority\":3,\"author\":\"ada\",\"created\":1764450%06u}";

static const char new_issue[] =
    "{\"title\":\"The sum is wrong\",\"body\":\"The page of an order shows the sum of another one "
    "after the list was sorted by customer. Seen in each browser that was tried.\",\"priority\":2}";

enum kind { GET, LIST, INSERT };

static const char *const kind_names[] = {"get", "list", "insert"};

struct asked {
    enum kind kind;
    unsigned next; /* id of the issue in the next request */
    size_t digits; /* offset of the id's digits in the bytes of a request */
    char rest[1024];
};

static void write_next_id_into_request(void *context, char *request)
{
    struct asked *asked = context;
    char text[8];

    snprintf(text, sizeof text, "%04u", asked->next);
    memcpy(request + asked->digits, text, 4);
    asked->next = asked->next < LAST ? asked->next + 1 : FIRST;
}

/* Returns the value of a field in the head of an answer, which ends with an empty line; NULL if
 * there is no such field. */
static const char *find_field_value_in_head(const char *head, size_t size, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = head, *end; line < head + size; line = end + 1) {
        if (strncasecmp(line, name, length) == 0)
            return line + length;
        end = memchr(line, '\n', (size_t)(head + size - line));
        if (end == NULL)
            break;
    }
    return NULL;
}

/* Check the head of an answer, and remember in `place` how long the body is. Returns as
 * check_next_bytes_of_answer(). */
static int check_head_of_answer(const struct asked *asked, uint64_t *place, const char *bytes,
                                size_t size)
{
    const char *status = asked->kind == INSERT ? "HTTP/1.1 201 " : "HTTP/1.1 200 ";
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);

    if (end == NULL)
        return size < REQUEST_LOAD_KEPT_MAX ? 0 : -EBADMSG;
    size_t head = (size_t)(end - bytes) + 4;
    const char *length = find_field_value_in_head(bytes, head, "content-length: ");
    if (memcmp(bytes, status, strlen(status)) != 0 || length == NULL)
        return -EBADMSG;
    *place = HEAD_DONE | (strtoul(length, NULL, 10) & UINT32_MAX);
    return (int)head;
}

/* Returns the number behind `key` at the beginning of a text; 0 if the text does not begin with
 * `key`. */
static unsigned number_behind_begin_of_text(const char *text, const char *key)
{
    size_t length = strlen(key);
    unsigned number = 0;

    if (memcmp(text, key, length) != 0)
        return 0;
    for (text += length; *text >= '0' && *text <= '9' && number < 100000000; text++)
        number = 10 * number + (unsigned)(*text - '0');
    return number;
}

/* Returns whether the body of an answer begins correctly. The body has `size` bytes, of which at
 * least 2 * TAIL have come, or, if it is an issue, all. */
static bool does_answer_body_begin_correctly(enum kind kind, const char *bytes, size_t size)
{
    char text[REQUEST_LOAD_KEPT_MAX];
    unsigned id =
        number_behind_begin_of_text(bytes, kind == LIST ? "{\"items\":[{\"id\":" : "{\"id\":");

    if (id == 0)
        return false;
    if (kind == INSERT) {
        int length = snprintf(text, sizeof text, "{\"id\":%u,%.30s", id, new_issue + 1);
        return (size_t)length < size && memcmp(bytes, text, (size_t)length) == 0;
    }
    int length = snprintf(text, sizeof text, issue, id, id, id, id);
    return kind == LIST ? size == sizeof "{\"items\":[],\"next\":1234}" - 1 +
                                      ITEMS * (size_t)length + ITEMS - 1
                        : size == (size_t)length && memcmp(bytes, text, size) == 0;
}

static bool does_answer_body_end_correctly(enum kind kind, const char *end)
{
    static const char next[] = "}],\"next\":1234}";

    return kind == LIST ? memcmp(end - (sizeof next - 1), next, sizeof next - 6) == 0
                        : end[-1] == '}';
}

/* Check the next bytes of an answer. `place` keeps three things: HEAD_DONE; BEGUN if the beginning
 * of the body was correct; and how many bytes of the body have not come. Few bytes are kept between
 * calls, so an issue is checked as a whole, and a list piece by piece. */
static int check_next_bytes_of_answer(const void *context, uint64_t *place, const char *bytes,
                                      size_t size, bool *ret_ends)
{
    const struct asked *asked = context;

    if ((*place & HEAD_DONE) == 0)
        return check_head_of_answer(asked, place, bytes, size);
    size_t left = *place & UINT32_MAX;
    if (asked->kind != LIST && left >= REQUEST_LOAD_KEPT_MAX)
        return -EBADMSG;
    if (size < (asked->kind == LIST ? TAIL * 2 : left))
        return 0;
    if ((*place & BEGUN) == 0 &&
        (left < TAIL * 2 || !does_answer_body_begin_correctly(asked->kind, bytes, left)))
        return -EBADMSG;
    *ret_ends = size >= left;
    if (*ret_ends)
        return does_answer_body_end_correctly(asked->kind, bytes + left) ? (int)left : -EBADMSG;
    size_t part = left - size >= TAIL * 2 ? size : left - TAIL * 2;
    *place = HEAD_DONE | BEGUN | (left - part);
    return (int)part;
}

static void make_kind_of_requests_for_load(struct request_load_kind *load, struct asked *asked,
                                           const char *cookie)
{
    static const char *const starts[] = {"GET /issues/", "GET /issues?limit=20&before=", ""};
    const char *start = starts[asked->kind];

    *load = (struct request_load_kind){.check = check_next_bytes_of_answer, .context = asked};
    if (asked->kind != INSERT) {
        asked->digits = strlen(start);
        load->vary = write_next_id_into_request;
        load->request_size =
            (uint32_t)snprintf(load->request, sizeof load->request,
                               "%s0000 HTTP/1.1\r\nHost: localhost\r\n\r\n", start);
        return;
    }
    load->request_size = (uint32_t)snprintf(load->request, sizeof load->request,
                                            "POST /issues HTTP/1.1\r\nHost: localhost\r\n");
    load->rest = asked->rest;
    load->rest_size = (uint32_t)snprintf(asked->rest, sizeof asked->rest,
                                         "Cookie: %s\r\nContent-Type: application/json\r\n"
                                         "Content-Length: %zu\r\n\r\n%s",
                                         cookie, strlen(new_issue), new_issue);
}

int main(int argc, char **argv)
{
    static struct request_load_kind load;
    static struct asked asked = {.next = FIRST};
    struct request_load_result result;
    int kind = argc != 8 ? -1 : 2;

    while (kind >= 0 && strcmp(argv[3], kind_names[kind]) != 0)
        kind--;
    if (kind < 0 || strlen(argv[7]) > COOKIE_MAX) {
        fprintf(stderr, "usage: api_load PORT PID get|list|insert RATE SECONDS REQUESTS COOKIE\n");
        return 2;
    }
    asked.kind = (enum kind)kind;
    make_kind_of_requests_for_load(&load, &asked, argv[7]);
    int error = request_load_run_to_its_end(
        &(struct request_load_options){.port = (uint16_t)strtoul(argv[1], NULL, 10),
                                       .watched = (pid_t)strtol(argv[2], NULL, 10),
                                       .kind = &load,
                                       .connections = CONNECTIONS,
                                       .depth = 1,
                                       .rate = strtod(argv[4], NULL),
                                       .duration_ns = (uint64_t)(strtod(argv[5], NULL) * 1e9),
                                       .requests_least = strtoull(argv[6], NULL, 10),
                                       .stall_ns = UINT64_C(5000000000)},
        &result);
    if (error != 0) {
        fprintf(stderr, "api_load %s: %s\n", argv[3], strerror(-error));
        return 1;
    }
    printf("rate %.1f\ncpu %.3f\np50 %.1f\np99 %.1f\nbusy %.3f\n", result.rate,
           (double)result.watched_cpu_ns * 1e-3 / (double)result.requests, result.p50_us,
           result.p99_us, result.busy);
    return 0;
}
