/* Tells the user which field of a text is wrong, how, and where. */
#include "protocols/json/fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void domi_json_fault_record(domi_json_fault *fault, int error, const char *format, va_list list)
{
    if (fault->error != 0)
        return;
    fault->error = error;
    fault->from = DOMUS_JSON_PATH_MAX;
    fault->is_cut = false;
    if (vsnprintf(fault->words, sizeof fault->words, format, list) < 0)
        fault->words[0] = '\0';
}

/* Put bytes before the path of a fault. The first three bytes of the buffer stay free for the "..."
 * of a path that is cut. */
static void put_bytes_before_path_of_fault(domi_json_fault *fault, const char *bytes, size_t size)
{
    if (fault->is_cut || fault->from < size + 3) {
        fault->is_cut = true;
        return;
    }
    fault->from -= (uint32_t)size;
    memcpy(fault->path + fault->from, bytes, size);
}

/* Put the name of a field before the path of a fault, with a dot between them unless an index
 * follows. */
void domi_json_fault_put_name_before(domi_json_fault *fault, const char *name)
{
    if (fault->from != DOMUS_JSON_PATH_MAX && fault->path[fault->from] != '[')
        put_bytes_before_path_of_fault(fault, ".", 1);
    put_bytes_before_path_of_fault(fault, name, strlen(name));
}

void domi_json_fault_put_index_before(domi_json_fault *fault, uint64_t index)
{
    char text[24];
    int size = snprintf(text, sizeof text, "[%llu]", (unsigned long long)index);

    if (fault->from != DOMUS_JSON_PATH_MAX && fault->path[fault->from] != '[')
        put_bytes_before_path_of_fault(fault, ".", 1);
    put_bytes_before_path_of_fault(fault, text, size > 0 ? (size_t)size : 0);
}

int domi_json_fault_fill_in_error(const domi_json_fault *fault, domus_json_error *ret_error)
{
    if (ret_error == NULL)
        return fault->error;
    *ret_error = (domus_json_error){.error = fault->error};
    (void)snprintf(ret_error->path, sizeof ret_error->path, "%s%.*s", fault->is_cut ? "..." : "",
                   (int)(DOMUS_JSON_PATH_MAX - fault->from), fault->path + fault->from);
    memcpy(ret_error->words, fault->words, sizeof ret_error->words);
    return fault->error;
}

void domi_json_fault_add_line_and_column(domus_json_error *ret_error, const char *text,
                                         size_t offset)
{
    const char *line = text;
    const char *end = text + offset;

    if (ret_error == NULL)
        return;
    if (ret_error->line == 0) {
        ret_error->line = 1;
        ret_error->column = 1;
    }
    for (const char *next = line; offset != 0; line = next) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL)
            break;
        next++;
        ret_error->line++;
        ret_error->column = 1;
    }
    ret_error->column += (uint32_t)(end - line);
    ret_error->offset += offset;
}

const char *domi_json_copy_shown_part(const char *text, size_t size,
                                      char shown[DOMI_JSON_SHOWN_MAX + 4])
{
    size_t fits = size < DOMI_JSON_SHOWN_MAX ? size : DOMI_JSON_SHOWN_MAX;

    for (size_t i = 0; i < fits; i++)
        shown[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    memcpy(shown + fits, fits < size ? "..." : "", fits < size ? 4 : 1);
    return shown;
}

const char *domus_json_explain(const domus_json_error *error, char *text, size_t size)
{
    const char *between = error->path[0] != '\0' ? ": " : "";
    int done;

    if (size == 0)
        return text;
    if (error->line == 0)
        done = snprintf(text, size, "%s%s%s", error->path, between, error->words);
    else
        done = snprintf(text, size, "%s%s%s (line %llu, column %u)", error->path, between,
                        error->words, (unsigned long long)error->line, error->column);
    if (done < 0)
        text[0] = '\0';
    return text;
}

int domus_json_status(const domus_json_error *error)
{
    switch (error->error) {
    case -EBADMSG:
        return 400;
    case -EFBIG:
        return 413;
    case -ENOMEM:
        return 503;
    default:
        return 422;
    }
}
