/* Stores the parts of an upload, within its limits and its budgets. Owner thread: that of the
 * upload's actor. */
#include "protocols/http/multipart/uploaded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 8u /* parts of an upload for which memory is allocated at first */

/* Count bytes of form fields, which a stranger makes this side hold in memory. Returns 0, or the
 * error of the upload. */
static int count_bytes_of_form_fields(domus_http_upload *upload, uint64_t size)
{
    if (size > upload->options.fields_max - upload->fields)
        return domi_upload_set_error(upload, -EMSGSIZE, "the fields are too large");
    int error =
        domus_budget_charge(upload->options.memory, &upload->charged_memory, upload->fields + size);
    if (error != 0)
        return domi_upload_set_error(upload, error, "");
    upload->fields += size;
    return 0;
}

/* Allocate memory for one more part of the upload. Returns false without memory. */
static bool make_room_for_part_of_upload(domus_http_upload *upload)
{
    uint32_t room = upload->room != 0 ? upload->room * 2 : ROOM;

    if (upload->count < upload->room)
        return true;
    domi_upload_part **parts = realloc(upload->parts, room * sizeof(domi_upload_part *));
    if (parts == NULL)
        return false;
    upload->parts = parts;
    upload->room = room;
    return true;
}

/* Copy a text, and append a zero. Returns where the copy ends. */
static char *copy_text_and_zero(char *to, const char *text, uint32_t size, const char **ret_copy)
{
    memcpy(to, text, size);
    to[size] = '\0';
    *ret_copy = to;
    return to + size + 1;
}

int domi_upload_add_part(domus_http_upload *upload, const domus_http_multipart_event *event)
{
    size_t texts = (size_t)event->name_size + event->filename_size + event->type_size + 3;
    int error = count_bytes_of_form_fields(upload, sizeof(domi_upload_part) + texts);

    if (error != 0)
        return error;
    if (event->filename != NULL && upload->options.take == NULL &&
        upload->options.directory == NULL)
        return domi_upload_set_error(upload, -EPROTO, "a file is not taken here");
    domi_upload_part *part =
        make_room_for_part_of_upload(upload) ? malloc(sizeof(domi_upload_part) + texts) : NULL;
    if (part == NULL)
        return domi_upload_set_error(upload, -ENOMEM, "");
    *part = (domi_upload_part){.value.size_max = upload->options.field_max};
    char *at = copy_text_and_zero(part->texts, event->name, event->name_size, &part->seen.name);
    at = copy_text_and_zero(at, event->type, event->type_size, &part->seen.type);
    if (event->filename != NULL)
        (void)copy_text_and_zero(at, event->filename, event->filename_size, &part->seen.filename);
    part->seen.name_size = event->name_size;
    part->seen.filename_size = event->filename_size;
    upload->parts[upload->count++] = part;
    return 0;
}

int domi_upload_append_to_field(domus_http_upload *upload, const char *bytes, size_t size)
{
    domi_upload_part *part = domi_upload_newest_part(upload);

    if (size > upload->options.field_max - part->seen.size)
        return domi_upload_set_error(upload, -EMSGSIZE, "a field is too large");
    int error = count_bytes_of_form_fields(upload, size);
    if (error != 0)
        return error;
    error = domus_append(&part->value, bytes, size);
    if (error != 0)
        return domi_upload_set_error(upload, error, "");
    part->seen.size += size;
    return 0;
}

int domi_upload_end_field(domus_http_upload *upload)
{
    domi_upload_part *part = domi_upload_newest_part(upload);
    int error = domus_append_end(&part->value, &part->seen.value);

    return error != 0 ? domi_upload_set_error(upload, error, "") : 0;
}

int domi_upload_count_file_bytes(domus_http_upload *upload, size_t size)
{
    domus_http_upload_part *part = &domi_upload_newest_part(upload)->seen;
    bool is_on_disk = upload->options.take == NULL;

    if (part->size == 0 && upload->files++ == upload->options.files_max)
        return domi_upload_set_error(upload, -EMSGSIZE, "there are too many files");
    int error = is_on_disk ? domus_budget_charge(upload->options.disk, &upload->charged_disk,
                                                 upload->written + size)
                           : 0;
    if (error != 0)
        return domi_upload_set_error(upload, error, "");
    upload->written += is_on_disk ? size : 0;
    part->size += size;
    return 0;
}

void domi_upload_free_parts(domus_http_upload *upload)
{
    for (uint32_t i = 0; i < upload->count; i++) {
        domi_upload_part *part = upload->parts[i];
        domus_append_drop(&part->value);
        domus_slice_free(part->seen.value);
        domus_file_close(part->seen.file);
        free(part);
    }
    free(upload->parts);
    (void)domus_budget_charge(upload->options.memory, &upload->charged_memory, 0);
    (void)domus_budget_charge(upload->options.disk, &upload->charged_disk, 0);
}

uint32_t domus_http_upload_count(const domus_http_upload *upload)
{
    return upload->count;
}

const domus_http_upload_part *domus_http_upload_part_at(const domus_http_upload *upload,
                                                        uint32_t index)
{
    return index < upload->count ? &upload->parts[index]->seen : NULL;
}

const domus_http_upload_part *domus_http_upload_find(const domus_http_upload *upload,
                                                     const char *name, uint32_t skip)
{
    size_t size = strlen(name);

    for (uint32_t i = 0; i < upload->count; i++) {
        const domus_http_upload_part *part = &upload->parts[i]->seen;
        if (part->name_size == size && memcmp(part->name, name, size) == 0 && skip-- == 0)
            return part;
    }
    return NULL;
}
