/* Files: uploads that belong to an issue, and the files of the page.
 *
 * An uploaded file has no name on disk while it comes, so nothing is left of an upload that fails.
 * Then it gets a random name; the name that its sender gave is only shown. Its room on disk is
 * reserved before its row is written, and its row before its name: the table `disk` has one row,
 * with the bytes that all files take. (A crash may leave reserved room without a row, or a row
 * without a file, which stay counted.) */
#include "api.h"

#include <domus/http_upload.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define TITLE_SIZE 129u
#define BLOCK      4096 /* unit in bytes by which the disk space of a file is counted */

struct api_files api_files;

/* Open the directory whose path is the value of a key of the configuration. */
static int open_directory_of_config_key(domus_system *system, const char *key, const char *path,
                                        domus_file **ret_directory)
{
    int error = domus_outside_file_open(system, path, DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0,
                                        ret_directory);

    if (error != 0)
        fprintf(stderr, "api: %s: cannot open %s\n", key, path);
    return error;
}

int api_open_directories(domus_system *system)
{
    /* if mkdir() fails, the open of the directory tells why */
    (void)mkdir(api_settings.uploads, 0700);
    int error = open_directory_of_config_key(system, "api.pages", api_settings.pages,
                                             &api_files.pages.root);
    return error != 0 ? error
                      : open_directory_of_config_key(system, "api.uploads", api_settings.uploads,
                                                     &api_files.uploads.root);
}

void api_close_directories(void)
{
    domus_file_close(api_files.pages.root);
    domus_file_close(api_files.uploads.root);
}

struct file {
    char name[33]; /* name of the file on disk: 32 hexadecimal digits, and a zero */
    char title[TITLE_SIZE];
    int64_t size; /* number of bytes in the file */
};

static const domus_json_field file_fields[] = {
    {DOMUS_JSON_TEXT("name", struct file, name)},
    {DOMUS_JSON_TEXT("title", struct file, title)},
    {DOMUS_JSON_INT("size", struct file, size, 0, INT64_MAX)},
};
static const domus_json_table file_table = DOMUS_JSON_TABLE(struct file, file_fields);

static const domus_sql_statement reserve = {
    .text = "UPDATE disk SET used = used + $1 WHERE used + $1 <= $2"};
static const domus_sql_statement insert = {
    .text = "INSERT INTO file (name, issue, title, size) VALUES ($1, $2, $3, $4)"};

struct upload {
    int64_t issue;
    domus_http_upload *upload;
    struct file file;
    int64_t room; /* disk space in bytes to be reserved: the file, and a block for its metadata */
    int error;
};

/* Read from an upload the values that are stored in the row of the file. Returns whether it has a
 * file. */
static bool describe_uploaded_file(struct upload *frame)
{
    const domus_http_upload_part *part = domus_http_upload_find(frame->upload, "file", 0);
    domus_http_session_id chance;

    if (part == NULL || part->file == NULL || domus_http_session_make_id(&chance) != 0)
        return false;
    for (size_t i = 0; i < sizeof chance.bytes; i++)
        snprintf(frame->file.name + 2 * i, 3, "%02x", chance.bytes[i]);
    snprintf(frame->file.title, sizeof frame->file.title, "%s", part->filename);
    frame->file.size = (int64_t)part->size;
    frame->room = (frame->file.size + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
    return true;
}

static int close_upload_and_return_result(struct upload *frame, int result)
{
    frame->upload = domus_http_upload_close(frame->upload);
    return result;
}

DOMUS_SEQUENCE(receive, struct upload)
{
    const domus_http_upload_options options = {
        .limits = {.part_max = api_settings.upload_max, .filename_max = TITLE_SIZE - 1},
        .files_max = 1,
        .directory = api_files.uploads.root,
        .disk = &api_files.coming};
    const domus_sql_result *done;
    domus_appender place = {0};
    char undo[160];

    DOMUS_BEGIN;
    if ((frame->error = domus_http_upload_open(message, &options, &frame->upload)) != 0)
        return frame->error;
    while (domus_http_upload_goes_on(stack, frame->upload, answer, then))
        DOMUS_AWAIT(DOMUS_PARKED);
    if ((frame->error = domus_http_upload_error(frame->upload)) != 0)
        return close_upload_and_return_result(frame, frame->error);
    if (!describe_uploaded_file(frame))
        return close_upload_and_return_result(
            frame, domus_http_refuse(stack, 422, "a field \"file\" with a file is wanted"));
    DOMUS_TRY_AWAIT(domus_sql_query(
        stack, api_database, &reserve,
        DOMUS_SQL_VALUES(domus_sql_int(frame->room), domus_sql_int((int64_t)api_settings.disk)),
        then));
    if ((frame->error = domus_sql_result_of(answer, &done)) != 0)
        return close_upload_and_return_result(frame, domus_sql_fail(stack, frame->error, answer));
    if (done->affected == 0)
        return close_upload_and_return_result(
            frame, domus_http_refuse(stack, 507, "there is no room for it"));
    DOMUS_TRY_AWAIT(domus_sql_query(
        stack, api_database, &insert,
        DOMUS_SQL_VALUES(domus_sql_text(frame->file.name), domus_sql_int(frame->issue),
                         domus_sql_text(frame->file.title), domus_sql_int(frame->file.size)),
        then));
    frame->error = domus_sql_result_of(answer, &done);
    if (frame->error == 0) {
        DOMUS_TRY_AWAIT(
            domus_file_link(stack, domus_http_upload_find(frame->upload, "file", 0)->file,
                            api_files.uploads.root, frame->file.name, DOMUS_FILE_BENEATH, then));
        frame->error = answer->error;
    } else if (frame->error == -EPERM)
        frame->error = -ENOENT; /* no row was inserted, because there is no such issue */
    if (close_upload_and_return_result(frame, frame->error) == 0) {
        api_tell_board_that_issue_changed(stack, frame->issue);
        (void)domus_append_text(&place, "Location: /files/%s\r\n", frame->file.name);
        return domus_http_reply_json(stack, 201, &file_table, &frame->file, &place);
    }
    snprintf(undo, sizeof undo,
             "DELETE FROM file WHERE name = '%s'; UPDATE disk SET used = used - %lld",
             frame->file.name, (long long)frame->room);
    DOMUS_AWAIT(domus_sql_script(stack, api_database, undo, then));
    return frame->error;
    DOMUS_END;
}

int api_add_file(domus_stack *stack, void *self, const domus_http_request *request,
                 const domus_http_match *match)
{
    struct upload *frame = domus_frame(stack);

    if (domus_http_route_number(match, "id", 1, INT64_MAX, &frame->issue) != 0)
        return -ENOENT;
    return DOMUS_BEGIN_SEQUENCE(receive, API_FRAME_MAX, stack, self, request);
}

int api_serve_uploaded_or_page_file(domus_stack *stack, void *self,
                                    const domus_http_request *request,
                                    const domus_http_match *match)
{
    (void)self, (void)request;
    return domus_http_serve(stack,
                            match->route->id == API_UPLOADS ? &api_files.uploads : &api_files.pages,
                            domus_http_route_value(match, "path"));
}
