/* Uploads: fields are kept in memory, files go to disk or to a function, whole or in pieces; and
 * whatever fails leaves neither a file nor a descriptor behind. The test kit uses files of the real
 * disk. */
#include "tests/http/served.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <domus/await.h>
#include <domus/http_upload.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TYPE   "multipart/form-data; boundary=X"
#define SECOND DOMT_SERVED_S

static domt_tree tree;
static domus_budget memory, disk;

/* The bytes that the function of this test has taken of a file. */
static char taken[65536];
static size_t taken_size;
static int take_error;  /* result that the taking function returns */
static bool take_waits; /* true: the taking function lets the upload wait for 1 ms */

/* --- the service ------------------------------------------------------------------------------ */

typedef struct receive_frame {
    domus_http_upload_options options;
    domus_http_upload *upload;
    uint32_t at; /* index of the received part that gets a name next */
} receive_frame;

static int record_bytes_of_file(domus_stack *stack, void *context,
                                const domus_http_upload_part *part, domus_slice bytes, bool is_last,
                                domus_resumed *then)
{
    ck_assert_ptr_eq(context, taken);
    ck_assert(is_last == (bytes.size == 0));
    ck_assert_ptr_nonnull(part->filename);
    ck_assert_uint_le(taken_size + bytes.size, sizeof taken);
    memcpy(taken + taken_size, domus_slice_data(bytes), bytes.size);
    taken_size += bytes.size;
    domus_slice_free(bytes);
    if (take_error != 0)
        return take_error;
    return take_waits ? domus_sleep(stack, DOMT_SERVED_MS, then) : 0;
}

static bool is_path_of_request(const domus_http_request *request, const char *path)
{
    return domus_slice_equals(domus_http_path(request), path, strlen(path));
}

/* Answer with a text about the received parts, or with the words of the error. */
static int answer_with_parts_of_upload(domus_stack *stack, const domus_http_upload *upload)
{
    domus_http_response response = {.status = 200, .media = "text/plain"};
    domus_appender text = {0};
    int error = domus_http_upload_error(upload);
    const char *wrong = domus_http_upload_wrong(upload);

    if (error != 0 && *wrong == '\0')
        return error;
    if (error != 0)
        (void)domus_append_text(&text, "%s: %s\n", strerrorname_np(-error), wrong);
    for (uint32_t i = 0; error == 0 && i < domus_http_upload_count(upload); i++) {
        const domus_http_upload_part *part = domus_http_upload_part_at(upload, i);
        ck_assert_int_eq(part->name[part->name_size], 0);
        if (part->filename != NULL)
            (void)domus_append_text(&text, "%s: %s %s %llu%s\n", part->name, part->filename,
                                    part->type, (unsigned long long)part->size,
                                    part->file != NULL ? " on disk" : "");
        else
            (void)domus_append_text(&text, "%s=%.*s\n", part->name, (int)part->value.size,
                                    domus_slice_data(part->value));
    }
    error = domus_append_end(&text, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static int give_next_file_a_name(domus_stack *stack, receive_frame *frame, domus_resumed *then)
{
    const domus_http_upload_part *part = domus_http_upload_part_at(frame->upload, frame->at);
    char name[32];

    snprintf(name, sizeof name, "kept-%u", frame->at++);
    return domus_file_link(stack, part->file, frame->options.directory, name, DOMUS_FILE_BENEATH,
                           then);
}

/* Returns whether the upload has another file that is to get a name. */
static bool has_next_file_for_name(receive_frame *frame)
{
    uint32_t count = domus_http_upload_count(frame->upload);

    if (domus_http_upload_error(frame->upload) != 0)
        return false;
    while (frame->at < count && domus_http_upload_part_at(frame->upload, frame->at)->file == NULL)
        frame->at++;
    return frame->at < count;
}

static int begin_upload_of_request(receive_frame *frame, const domus_http_request *request)
{
    frame->options = (domus_http_upload_options){
        .limits = {.whole_max = 20000, .part_max = 10000},
        .files_max = 2,
        .field_max = 100,
        .fields_max = 1000,
        .directory = is_path_of_request(request, "/disk") ? frame->options.directory : NULL,
        .take = is_path_of_request(request, "/take") ? record_bytes_of_file : NULL,
        .context = taken,
        .memory = &memory,
        .disk = &disk,
    };
    return domus_http_upload_open(request, &frame->options, &frame->upload);
}

static void close_upload_and_directory(receive_frame *frame)
{
    ck_assert_ptr_null(domus_http_upload_close(frame->upload));
    domus_file_close(frame->options.directory);
}

DOMUS_SEQUENCE(receive, receive_frame)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);
    int result;

    DOMUS_BEGIN;
    if (is_path_of_request(request, "/disk")) {
        DOMUS_AWAIT(domus_file_open(stack, NULL, tree.root, DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY,
                                    0, then));
        if (answer->error != 0 || domus_take_answer(stack, answer) != 0)
            return -EIO;
        frame->options.directory = *(domus_file *const *)answer->payload;
    }
    result = begin_upload_of_request(frame, request);
    if (result != 0) {
        close_upload_and_directory(frame);
        return result;
    }
    while (domus_http_upload_goes_on(stack, frame->upload, answer, then))
        DOMUS_AWAIT(DOMUS_PARKED);
    while (has_next_file_for_name(frame))
        DOMUS_AWAIT(give_next_file_a_name(stack, frame, then));
    result = answer_with_parts_of_upload(stack, frame->upload);
    close_upload_and_directory(frame);
    return result;
    DOMUS_END;
}

static const domus_pipeline whole = {.stages = (const domus_pipeline_stage[]){
                                         {&domus_http_stage, &domt_served_whole}, {NULL, NULL}}};
static const domus_pipeline streams = {
    .stages =
        (const domus_pipeline_stage[]){{&domus_http_stage, &domt_served_streams}, {NULL, NULL}}};
static const domus_on_peer rows[] = {DOMUS_ON_PEER(&domus_http_request_type, receive, 0),
                                     {.type = NULL}};
static const domus_behaviour services[] = {
    {.name = "whole", .kind = DOMUS_CHANNELS, .pipeline = &whole, .on_peer = rows},
    {.name = "streams", .kind = DOMUS_CHANNELS, .pipeline = &streams, .on_peer = rows},
};

/* --- the world -------------------------------------------------------------------------------- */

static uint32_t count_entries_of_directory(const char *path)
{
    DIR *directory = opendir(path);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static uint32_t fds_before;

static domus_testkit *start_service_with_directory(const domus_behaviour *service)
{
    memory = disk = (domus_budget){.bytes_max = 1 << 20};
    taken_size = 0;
    take_error = 0;
    take_waits = false;
    domt_tree_make(&tree);
    fds_before = count_entries_of_directory("/proc/self/fd");
    return domt_served_start_kit(NULL, service, 1);
}

/* Check that only `files` files with names are left in the directory, and nothing else. */
static void end_service_and_check_files(domus_testkit *kit, uint32_t files)
{
    domt_served_end_kit(kit);
    ck_assert_uint_eq(memory.used_bytes, 0);
    ck_assert_uint_eq(disk.used_bytes, 0);
    ck_assert_uint_eq(count_entries_of_directory(tree.root), files + 2);
    ck_assert_uint_eq(count_entries_of_directory("/proc/self/fd"), fds_before);
    domt_tree_remove_copy(&tree);
}

static void send_head_of_upload(domus_peer *peer, const char *path, const char *type, size_t size)
{
    char head[256];

    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", path,
             type, size);
    domt_served_send_text(peer, head);
}

/* Send a body to the service, and check the answer. */
static void check_answer_to_upload(domus_testkit *kit, const char *path, const char *body,
                                   size_t size, const char *expected)
{
    domus_peer *peer = domt_served_connect_peer(kit);
    char text[1024];

    send_head_of_upload(peer, path, TYPE, size);
    ck_assert_int_eq(domus_peer_send(peer, body, size), 0);
    snprintf(text, sizeof text,
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nContent-Type: text/plain\r\n\r\n%s",
             strlen(expected), expected);
    domt_served_expect_text(kit, peer, text);
    domus_peer_close(peer);
}

static void check_content_of_file(const char *name, const char *bytes, size_t size)
{
    char path[PATH_MAX];
    static char got[32768];
    struct stat status;

    snprintf(path, sizeof path, "%s/%s", tree.root, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(got, 1, sizeof got, file), size);
    ck_assert_mem_eq(got, bytes, size);
    ck_assert_int_eq(fstat(fileno(file), &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    fclose(file);
}

#define FIELD(name, is) "--X\r\nContent-Disposition: form-data; name=" name "\r\n\r\n" is "\r\n"
#define FILE_HEAD(name, file)                                                                      \
    "--X\r\nContent-Disposition: form-data; name=" name "; filename=\"" file                       \
    "\"\r\nContent-Type: a/b\r\n\r\n"
#define END "--X--\r\n"

/* Write a body with a file of this size, whose bytes are CRs and digits. Returns the size of the
 * body; the file begins at `*ret_at`. */
static size_t make_body_with_file(char *to, size_t size, size_t *ret_at)
{
    static const char before[] = FIELD("a", "1") FILE_HEAD("f", "../x");
    static const char after[] = "\r\n" FIELD("a", "2") END;

    memcpy(to, before, sizeof before - 1);
    *ret_at = sizeof before - 1;
    for (size_t i = 0; i < size; i++)
        to[*ret_at + i] = i % 7 == 0   ? '\r'
                          : i % 7 == 1 ? '\n'
                          : i % 7 < 4  ? '-'
                                       : (char)('0' + i % 10);
    memcpy(to + *ret_at + size, after, sizeof after);
    return *ret_at + size + sizeof after - 1;
}

DOMT_TEST(uploaded_files_are_written_to_disk)
{
    for (uint32_t which = 0; which < 2; which++) {
        domus_testkit *kit = start_service_with_directory(&services[which]);
        static char body[20000];
        size_t at;
        size_t size = make_body_with_file(body, 9000, &at);
        check_answer_to_upload(kit, "/disk", body, size, "a=1\nf: ../x a/b 9000 on disk\na=2\n");
        check_content_of_file("kept-1", body + at, 9000);
        end_service_and_check_files(kit, 1);
    }
}

DOMT_TEST(uploaded_files_are_given_to_a_function)
{
    for (uint32_t which = 0; which < 4; which++) {
        domus_testkit *kit = start_service_with_directory(&services[which % 2]);
        static char body[20000];
        size_t at;
        size_t size = make_body_with_file(body, 9000, &at);
        take_waits = which >= 2;
        check_answer_to_upload(kit, "/take", body, size, "a=1\nf: ../x a/b 9000\na=2\n");
        ck_assert_uint_eq(taken_size, 9000);
        ck_assert_mem_eq(taken, body + at, 9000);
        end_service_and_check_files(kit, 0);
    }
}

DOMT_TEST(limits_of_uploads_are_exact)
{
    for (uint32_t which = 0; which < 2; which++) {
        static const char hundred[] =
            "0123456789012345678901234567890123456789012345678901234567890123"
            "456789012345678901234567890123456789";
        domus_testkit *kit = start_service_with_directory(&services[which]);
        static char body[32768];
        size_t at;
        snprintf(body, sizeof body, FIELD("a", "%s") END, hundred);
        snprintf(taken, sizeof taken, "a=%s\n", hundred);
        check_answer_to_upload(kit, "/memory", body, strlen(body), taken);
        snprintf(body, sizeof body, FIELD("a", "%s1") END, hundred);
        check_answer_to_upload(kit, "/memory", body, strlen(body),
                               "EMSGSIZE: a field is too large\n");
        size_t used = 0;
        for (uint32_t i = 0; i < 10; i++)
            used += (size_t)snprintf(body + used, sizeof body - used, FIELD("a", "0123456789"));
        snprintf(body + used, sizeof body - used, END);
        check_answer_to_upload(kit, "/memory", body, strlen(body),
                               "EMSGSIZE: the fields are too large\n");
        static const char two[] = FILE_HEAD("f", "x") "1\r\n" FILE_HEAD("g", "y") "22\r\n";
        snprintf(body, sizeof body, "%s%s", two, FILE_HEAD("none", "") "\r\n" END);
        check_answer_to_upload(kit, "/disk", body, strlen(body),
                               "f: x a/b 1 on disk\ng: y a/b 2 on disk\nnone:  a/b 0\n");
        snprintf(body, sizeof body, "%s%s", two, FILE_HEAD("h", "z") "3\r\n" END);
        check_answer_to_upload(kit, "/disk", body, strlen(body),
                               "EMSGSIZE: there are too many files\n");
        check_answer_to_upload(kit, "/memory", two, sizeof two - 1,
                               "EPROTO: a file is not taken here\n");
        check_answer_to_upload(kit, "/disk", body, make_body_with_file(body, 10001, &at),
                               "EMSGSIZE: a part is too large\n");
        check_answer_to_upload(kit, "/take", body, make_body_with_file(body, 10000, &at),
                               "a=1\nf: ../x a/b 10000\na=2\n");
        end_service_and_check_files(kit, 2);
    }
}

/* Send a body with a file, and check the status with which the upload fails. */
static void check_status_of_failed_upload(domus_testkit *kit, const char *path, const char *type,
                                          const char *line)
{
    static char body[20000];
    domus_peer *peer = domt_served_connect_peer(kit);
    size_t at;
    size_t size = make_body_with_file(body, 5000, &at);

    send_head_of_upload(peer, path, type, size);
    (void)domus_peer_send(peer, body, size);
    domt_served_expect_text(kit, peer, line);
    domus_peer_close(peer);
}

DOMT_TEST(failed_uploads_leave_no_file)
{
    for (uint32_t which = 0; which < 2; which++) {
        domus_testkit *kit = start_service_with_directory(&services[which]);
        check_status_of_failed_upload(kit, "/disk", "text/plain", "HTTP/1.1 415 ");
        check_status_of_failed_upload(kit, "/disk", "multipart/form-data", "HTTP/1.1 400 ");
        disk.bytes_max = 4999;
        check_status_of_failed_upload(kit, "/disk", TYPE, "HTTP/1.1 503 ");
        disk.bytes_max = 5000;
        memory.bytes_max = 100;
        check_status_of_failed_upload(kit, "/disk", TYPE, "HTTP/1.1 503 ");
        memory.bytes_max = 1000;
        check_status_of_failed_upload(kit, "/disk", TYPE, "HTTP/1.1 200 ");
        take_error = -EACCES;
        check_status_of_failed_upload(kit, "/take", TYPE, "HTTP/1.1 403 ");
        end_service_and_check_files(kit, 1);
    }
}

/* The client disconnects at several places of an upload: before a file, within it, and after it. */
DOMT_TEST(clients_that_go_in_an_upload_leave_no_file)
{
    domus_testkit *kit = start_service_with_directory(&services[1]);
    static char body[20000];
    size_t at;
    size_t size = make_body_with_file(body, 3000, &at);

    for (size_t cut = 1; cut < size; cut += 271) {
        domus_peer *peer = domt_served_connect_peer(kit);
        send_head_of_upload(peer, cut % 2 != 0 ? "/disk" : "/take", TYPE, size);
        ck_assert_int_eq(domus_peer_send(peer, body, cut), 0);
        domt_served_advance_kit(kit, SECOND);
        if (cut % 3 == 0)
            domus_peer_reset(peer);
        else
            domus_peer_close(peer);
        domt_served_advance_kit(kit, SECOND);
        ck_assert_uint_eq(memory.used_bytes, 0);
        ck_assert_uint_eq(disk.used_bytes, 0);
    }
    end_service_and_check_files(kit, 0);
}

DOMT_SUITE(60)
