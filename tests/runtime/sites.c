/* The site of tests/runtime/sites.h, and functions that replace those of the C library and may
 * refuse. */
#include "tests/runtime/sites.h"

#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND DOMT_PIPE_SECOND

domt_site_type domt_site;

/* --- the calls of the library ----------------------------------------------------------------- */

const char *domt_site_whole_path(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", domt_site.tree.root, name);
    return path;
}

/* This function is not static, because the C library may declare the functions below, which call
 * it, as inline ones. */
void domt_site_shrink_file(void);
void domt_site_shrink_file(void)
{
    struct stat status;
    ck_assert_int_eq(stat(domt_site_whole_path("a.txt"), &status), 0);
    ck_assert_int_eq(truncate(domt_site_whole_path("a.txt"), status.st_size - 1), 0);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t position, int flags)
{
    if (domt_site.shrinks)
        domt_site_shrink_file();
    if (domt_site.reads_wait) {
        domt_site.waits++;
        errno = EAGAIN;
        return -1;
    }
    return syscall(SYS_preadv2, fd, parts, count, (long)position, 0L, flags);
}

ssize_t pread(int fd, void *to, size_t size, off_t position)
{
    if (domt_site.shrinks)
        domt_site_shrink_file();
    return syscall(SYS_pread64, fd, to, size, position);
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *status)
{
    if (domt_site.looks_wait != 0) {
        domt_site.looks_wait--;
        errno = EAGAIN;
        return -1;
    }
    return (int)syscall(SYS_statx, fd, path, flags, mask, status);
}

/* --- the service ------------------------------------------------------------------------------ */

static int on_request_serve_files(domus_stack *stack, void *self, const void *payload)
{
    return domus_http_serve(stack, &domt_site.files, domus_http_path(payload));
}

static int serve_files_after_sleep(domus_stack *stack, void *self, const domus_answer *slept)
{
    ck_assert_int_eq(slept->error, 0);
    return domus_http_serve(stack, &domt_site.files,
                            domus_http_path(domus_asked(stack, &domus_http_request_type)));
}

static int on_request_sleep_then_serve(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_ptr_null(domus_asked(stack, &domus_http_response_type));
    return domus_sleep(stack, 1, serve_files_after_sleep);
}

static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};

const domus_behaviour domt_site_service = {
    .name = "site",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = on_request_serve_files}, {.type = NULL}}};

const domus_behaviour domt_site_late_service = {
    .name = "late site",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = on_request_sleep_then_serve}, {.type = NULL}}};

static int on_request_forward(domus_stack *stack, void *self, const void *payload)
{
    return domus_forward(stack, domt_site.far);
}

const domus_behaviour domt_site_far_service = {
    .name = "far site",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = on_request_forward}, {.type = NULL}}};

static const domus_behaviour far_actor = {
    .name = "server of files",
    .on = (const domus_on[]){{&domus_http_request_type, on_request_serve_files, 0}, {0}}};

void domt_site_write_file(const char *name, const char *text)
{
    const struct timespec times[2] = {{1700000000, 123456789}, {1700000000, 123456789}};
    domt_tree_write(&domt_site.tree, name, text);
    ck_assert_int_eq(utimensat(AT_FDCWD, domt_site_whole_path(name), times, 0), 0);
}

static void write_large_file(void)
{
    static char text[DOMT_SITE_LARGE + 1];
    for (uint32_t i = 0; i < DOMT_SITE_LARGE; i++)
        text[i] = domt_file_byte_at(i);
    domt_site_write_file("large.bin", text);
}

static void make_socket_file(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", domt_site_whole_path("socket"));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)close(fd);
}

void domt_site_make_directory(void)
{
    domt_tree_make(&domt_site.tree);
    domt_site_write_file("index.html", "home");
    domt_site_write_file("a.txt", "0123456789");
    domt_site_write_file("a.txt.gz", "packed");
    domt_site_write_file("lone.txt.gz", "packed");
    domt_site_write_file("empty", "");
    domt_site_write_file("sub/index.html", "sub home");
    domt_site_write_file("sub/a b.css", "style");
    domt_site_write_file(".secret", "secret");
    domt_site_write_file(".git/config", "secret");
    domt_site_write_file("odd/index.html/file", "x");
    write_large_file();
    ck_assert_int_eq(mkdir(domt_site_whole_path("bare"), 0700), 0);
    ck_assert_int_eq(mkfifo(domt_site_whole_path("fifo"), 0600), 0);
    make_socket_file();
    ck_assert_int_eq(symlink("/etc/passwd", domt_site_whole_path("out")), 0);
    ck_assert_int_eq(symlink("../../../../../../etc/passwd", domt_site_whole_path("up")), 0);
    ck_assert_int_eq(symlink("/dev/zero", domt_site_whole_path("zero")), 0);
    ck_assert_int_eq(symlink("/proc/self/root", domt_site_whole_path("root")), 0);
    ck_assert_int_eq(symlink("circle", domt_site_whole_path("circle")), 0);
    ck_assert_int_eq(symlink("a.txt", domt_site_whole_path("in")), 0);
    ck_assert_int_eq(symlink("../a.txt", domt_site_whole_path("sub/in")), 0);
}

void domt_site_open_kit(const domus_config *config, const domus_behaviour *behaviour)
{
    domt_site.kit = domt_pipes_new_kit(config, behaviour, 1);
    int fd = open(domt_site.tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    domt_site.files = (domus_http_files){
        .root = domt_file_handle_of_descriptor(domus_testkit_system(domt_site.kit), fd)};
    domt_site.files.root->is_directory = true;
    if (behaviour == &domt_site_far_service)
        ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(domt_site.kit), &far_actor, NULL,
                                             &domt_site.far),
                         0);
}

void domt_site_close_kit(void)
{
    domus_file_close(domt_site.files.root);
    domt_pipes_end_kit(domt_site.kit);
}

void domt_site_make_and_open(const domus_config *config, const domus_behaviour *behaviour)
{
    domt_site_make_directory();
    domt_site_open_kit(config, behaviour);
}

void domt_site_close_and_remove(void)
{
    domt_site_close_kit();
    domt_tree_remove_copy(&domt_site.tree);
}

/* Send a request on a connection of its own, and read the whole answer into domt_site.answer.
 * Returns the status of the answer; 0: none came. */
unsigned domt_site_ask(const char *method, const char *target, const char *fields)
{
    static char text[8192];
    unsigned status = 0;
    size_t size;
    domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);

    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", method,
             target, fields);
    domt_pipes_peer_send(domt_site.kit, peer, text);
    for (int i = 0; i < 100 && !domus_peer_has_end(peer) && domus_peer_error(peer) == 0; i++)
        ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 100), 0);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_uint_lt(size, sizeof domt_site.answer);
    memcpy(domt_site.answer, got, size);
    domt_site.answer[size] = '\0';
    domt_site.answer_size = size;
    (void)sscanf(domt_site.answer, "HTTP/1.1 %u", &status);
    domus_peer_take(peer, size);
    domus_peer_close(peer);
    return status;
}

unsigned domt_site_get(const char *target, const char *fields)
{
    return domt_site_ask("GET", target, fields);
}

const char *domt_site_body_of_answer(void)
{
    const char *end_of_head = strstr(domt_site.answer, "\r\n\r\n");
    ck_assert_ptr_nonnull(end_of_head);
    return end_of_head + 4;
}

void domt_site_check_get(const char *target, const char *fields, unsigned status, const char *body)
{
    unsigned got = domt_site_get(target, fields);

    ck_assert_msg(got == status && strcmp(domt_site_body_of_answer(), body) == 0, "%s %s: %u %s",
                  target, fields, got, domt_site_body_of_answer());
}

bool domt_site_answer_has_line(const char *line)
{
    char whole[512];
    snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
    const char *at = strstr(domt_site.answer, whole);
    return at != NULL && at < domt_site_body_of_answer();
}

const char *domt_site_tag_of_answer(void)
{
    static char value[128];
    ck_assert_int_eq(sscanf(strstr(domt_site.answer, "\r\nETag: "), "\r\nETag: %127[^\r]", value),
                     1);
    return value;
}
