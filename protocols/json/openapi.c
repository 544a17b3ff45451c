/* Writes the OpenAPI description of a service: each path with the operations of its rows, which the
 * notes of their handlers describe. Rows belong to one path if their paths are the same text. */
#include "protocols/json/schema.h"

#include <domus/json_openapi.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define JSON     "application/json"
#define PROBLEM  "application/problem+json"
#define NAME_MAX DOMUS_JSON_NAME_MAX /* bytes of the name of a path's segment, at most */

/* The answer for failures, which every operation may give. */
static const char failure[] =
    "{\"description\":\"A failure\",\"content\":{\"" PROBLEM "\":{\"schema\":{\"type\":\"object\","
    "\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},"
    "\"instance\":{\"type\":\"string\"}}}}}}";

/* The methods of HTTP that OpenAPI knows. HEAD and OPTIONS are described only if a row has them,
 * because a router answers them by itself. */
static const struct method {
    uint8_t method;
    const char *name;
} methods[] = {
    {DOMUS_HTTP_GET, "get"},         {DOMUS_HTTP_HEAD, "head"},   {DOMUS_HTTP_POST, "post"},
    {DOMUS_HTTP_PUT, "put"},         {DOMUS_HTTP_PATCH, "patch"}, {DOMUS_HTTP_DELETE, "delete"},
    {DOMUS_HTTP_OPTIONS, "options"}, {DOMUS_HTTP_TRACE, "trace"},
};

static void put_key_and_text(domus_json_writer *writer, const char *key, const char *text)
{
    domus_json_put_key(writer, key);
    domus_json_put_text(writer, text);
}

/* --- paths ------------------------------------------------------------------------------------ */

/* Find the next segment in braces in a path. Returns the text behind it; NULL if there is none. */
static const char *find_next_segment(const char *path, const char **ret_name, size_t *ret_size)
{
    const char *name = strchr(path, '{');

    if (name == NULL)
        return NULL;
    size_t size = strcspn(++name, "}");
    *ret_name = name;
    *ret_size = size != 0 && name[size - 1] == '*' ? size - 1 : size;
    return name + size;
}

/* Returns whether all braces in a path are around whole segments. A router takes other braces as
 * plain characters, but OpenAPI does not. */
static bool do_braces_hold_whole_segments(const char *path)
{
    for (const char *at = path; (at = strchr(at, '{')) != NULL;) {
        size_t size = strcspn(at, "}/");

        if (at == path || at[-1] != '/' || at[size] != '}' ||
            (at[size + 1] != '/' && at[size + 1] != '\0'))
            return false;
        at += size;
    }
    return true;
}

/* Write the path of a row as a key of the description, without the '*' in its last segment. */
static int put_path_as_key(domus_json_writer *writer, const char *path)
{
    domus_appender bytes = {0};
    const char *star = strstr(path, "*}");
    domus_slice key;

    if (star != NULL)
        (void)domus_append_text(&bytes, "%.*s%s", (int)(star - path), path, star + 1);
    else
        (void)domus_append_text(&bytes, "%s", path);
    (void)domus_append(&bytes, "", 1);
    int error = domus_append_end(&bytes, &key);
    if (error == 0) {
        error = domus_json_put_key(writer, domus_slice_data(key));
        domus_slice_free(key);
    }
    return error;
}

/* Returns whether two paths are the same except for the names in their braces. */
static bool have_paths_same_shape(const char *left, const char *right)
{
    while (*left == *right && *left != '\0') {
        if (*left == '{') {
            left += strcspn(left, "}");
            right += strcspn(right, "}");
        } else {
            left++;
            right++;
        }
    }
    return *left == *right;
}

/* --- parameters ------------------------------------------------------------------------------- */

static void begin_parameter_up_to_its_schema(domus_json_writer *writer, const char *name,
                                             const char *place, bool required)
{
    domus_json_put_object(writer);
    put_key_and_text(writer, "name", name);
    put_key_and_text(writer, "in", place);
    domus_json_put_key(writer, "required");
    domus_json_put_bool(writer, required);
    domus_json_put_key(writer, "schema");
}

static const domus_json_field *find_field_by_name(const domus_json_table *table, const char *name,
                                                  size_t size)
{
    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        if (table->fields[i].name_size == size && memcmp(table->fields[i].name, name, size) == 0)
            return &table->fields[i];
    }
    return NULL;
}

/* Write the segments in braces of a path as parameters. Returns 0; -EINVAL when the note describes
 * a segment that the path does not have, or a name is too long. */
static int put_segments_of_path(domus_json_writer *writer, const char *path,
                                const domus_openapi_note *note)
{
    uint32_t left = note->path != NULL ? note->path->count : 0;
    const char *name;
    size_t size;

    while ((path = find_next_segment(path, &name, &size)) != NULL) {
        const domus_json_field *field = find_field_by_name(note->path, name, size);
        char text[NAME_MAX + 1];

        if (size > NAME_MAX)
            return -EINVAL;
        (void)snprintf(text, sizeof text, "%.*s", (int)size, name);
        begin_parameter_up_to_its_schema(writer, text, "path", true);
        if (field != NULL)
            domi_json_put_field_schema(writer, field);
        else
            domus_json_put_raw(writer, "{\"type\":\"string\"}", 17);
        domus_json_put_end(writer);
        left -= field != NULL;
    }
    return left == 0 ? 0 : -EINVAL;
}

static int put_parameters_of_operation(domus_json_writer *writer, const char *path,
                                       const domus_openapi_note *note)
{
    domus_json_put_key(writer, "parameters");
    domus_json_put_array(writer);
    int error = put_segments_of_path(writer, path, note);
    for (uint32_t i = 0; note->query != NULL && i < note->query->count; i++) {
        const domus_json_field *field = &note->query->fields[i];

        begin_parameter_up_to_its_schema(writer, field->name, "query", field->required);
        domi_json_put_field_schema(writer, field);
        domus_json_put_end(writer);
    }
    domus_json_put_end(writer);
    return error;
}

/* --- operations ------------------------------------------------------------------------------- */

/* Write the content of a request's or answer's body: JSON that a table describes, or only a media
 * type. */
static void write_content_of_body(domus_json_writer *writer, const domus_json_table *table,
                                  const char *media)
{
    if (table == NULL && media == NULL)
        return;
    domus_json_put_key(writer, "content");
    domus_json_put_object(writer);
    domus_json_put_key(writer, table != NULL ? JSON : media);
    domus_json_put_object(writer);
    if (table != NULL) {
        domus_json_put_key(writer, "schema");
        domus_json_put_schema(writer, table);
    }
    domus_json_put_end(writer);
    domus_json_put_end(writer);
}

static void put_answers_of_operation(domus_json_writer *writer, const domus_openapi_note *note)
{
    char status[8];

    (void)snprintf(status, sizeof status, "%u", note->status != 0 ? note->status : 200u);
    domus_json_put_key(writer, "responses");
    domus_json_put_object(writer);
    domus_json_put_key(writer, status);
    domus_json_put_object(writer);
    put_key_and_text(writer, "description", "No failure");
    write_content_of_body(writer, note->answer, note->answer_media);
    domus_json_put_end(writer);
    domus_json_put_key(writer, "default");
    domus_json_put_raw(writer, failure, sizeof failure - 1);
    domus_json_put_end(writer);
}

static int put_operation_of_row(domus_json_writer *writer, const char *path,
                                const domus_openapi_note *note)
{
    if (note->status != 0 && (note->status < 200 || note->status > 399))
        return -EINVAL;
    domus_json_put_object(writer);
    if (note->summary != NULL)
        put_key_and_text(writer, "summary", note->summary);
    int error = put_parameters_of_operation(writer, path, note);
    if (note->body != NULL || note->body_media != NULL) {
        domus_json_put_key(writer, "requestBody");
        domus_json_put_object(writer);
        domus_json_put_key(writer, "required");
        domus_json_put_bool(writer, true);
        write_content_of_body(writer, note->body, note->body_media);
        domus_json_put_end(writer);
    }
    put_answers_of_operation(writer, note);
    domus_json_put_end(writer);
    return error;
}

/* --- description of the service --------------------------------------------------------------- */

static const domus_openapi_note *find_note_of_handler(const domus_openapi_note *notes,
                                                      domus_http_handler *handle)
{
    while (notes->handle != NULL && notes->handle != handle)
        notes++;
    return notes->handle != NULL ? notes : NULL;
}

/* Write the operations of a path. If two rows have the same method, the first one counts, as it
 * does for a router. */
static int put_operations_of_path(domus_json_writer *writer, const char *path,
                                  const domus_http_row *rows, const domus_openapi_note *notes)
{
    uint32_t done = 0;
    int error = 0;

    for (const domus_http_row *row = rows; row->on.path != NULL && error == 0; row++) {
        const domus_openapi_note *note = find_note_of_handler(notes, row->handle);

        if (strcmp(row->on.path, path) != 0)
            continue;
        for (size_t i = 0; i < sizeof methods / sizeof methods[0] && error == 0; i++) {
            uint32_t bit = UINT32_C(1) << methods[i].method;
            if ((row->on.methods & ~done & bit) == 0 || note == NULL)
                continue;
            domus_json_put_key(writer, methods[i].name);
            error = put_operation_of_row(writer, path, note);
        }
        done |= row->on.methods;
    }
    return error;
}

/* Returns 1 if an earlier row has the same path, so that it was written; -EINVAL if an earlier path
 * differs only in the names in braces; 0 otherwise. */
static int was_same_path_written_before(const domus_http_row *rows, const domus_http_row *row,
                                        const domus_openapi_note *notes)
{
    for (; rows != row; rows++) {
        if (find_note_of_handler(notes, rows->handle) == NULL ||
            !have_paths_same_shape(rows->on.path, row->on.path))
            continue;
        return strcmp(rows->on.path, row->on.path) == 0 ? 1 : -EINVAL;
    }
    return 0;
}

static int put_paths_of_service(domus_json_writer *writer, const domus_http_row *rows,
                                const domus_openapi_note *notes)
{
    domus_json_put_key(writer, "paths");
    domus_json_put_object(writer);
    for (const domus_http_row *row = rows; row->on.path != NULL; row++) {
        if (find_note_of_handler(notes, row->handle) == NULL)
            continue;
        int error = do_braces_hold_whole_segments(row->on.path)
                        ? was_same_path_written_before(rows, row, notes)
                        : -EINVAL;
        if (error < 0)
            return error;
        if (error != 0)
            continue;
        if ((error = put_path_as_key(writer, row->on.path)) != 0)
            return error;
        domus_json_put_object(writer);
        if ((error = put_operations_of_path(writer, row->on.path, rows, notes)) != 0)
            return error;
        domus_json_put_end(writer);
    }
    domus_json_put_end(writer);
    return 0;
}

int domus_openapi_write(const domus_openapi_info *info, const domus_http_row *rows,
                        const domus_openapi_note *notes, domus_appender *to)
{
    domus_json_writer writer = {.to = to};

    if (info->title == NULL || info->version == NULL)
        return -EINVAL;
    domus_json_put_object(&writer);
    put_key_and_text(&writer, "openapi", "3.1.0");
    domus_json_put_key(&writer, "info");
    domus_json_put_object(&writer);
    put_key_and_text(&writer, "title", info->title);
    put_key_and_text(&writer, "version", info->version);
    if (info->description != NULL)
        put_key_and_text(&writer, "description", info->description);
    domus_json_put_end(&writer);
    int error = put_paths_of_service(&writer, rows, notes);
    if (error != 0)
        return error;
    domus_json_put_end(&writer);
    return domus_json_finish(&writer);
}
