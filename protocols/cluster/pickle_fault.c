/* Records which field of a pickled message is wrong, and how. */
#include "protocols/cluster/pickle_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int domi_pickle_fault_record(domi_pickle_fault *fault, int error, const char *format, ...)
{
    va_list list;

    if (fault->error != 0)
        return fault->error;
    fault->error = error;
    fault->from = DOMI_PICKLE_FAULT_PATH;
    fault->is_cut = false;
    va_start(list, format);
    if (vsnprintf(fault->what, sizeof fault->what, format, list) < 0)
        fault->what[0] = '\0';
    va_end(list);
    return error;
}

static int put_bytes_before_fault_path(domi_pickle_fault *fault, const char *bytes, size_t size)
{
    if (fault->is_cut || fault->from < size) {
        fault->is_cut = true;
        return fault->error;
    }
    fault->from -= (uint32_t)size;
    memcpy(fault->path + fault->from, bytes, size);
    return fault->error;
}

int domi_pickle_fault_put_field_name(domi_pickle_fault *fault, const char *name)
{
    put_bytes_before_fault_path(fault, name, strlen(name));
    return put_bytes_before_fault_path(fault, ".", 1);
}

int domi_pickle_fault_put_element_index(domi_pickle_fault *fault, uint64_t index)
{
    char text[24];
    int size = snprintf(text, sizeof text, "[%llu]", (unsigned long long)index);

    return put_bytes_before_fault_path(fault, text, size > 0 ? (size_t)size : 0);
}

int domi_pickle_fault_write_as_text(const domi_pickle_fault *fault, const char *name, char *error,
                                    size_t error_size)
{
    if (error_size != 0)
        (void)snprintf(error, error_size, "%s%s%.*s: %s", name, fault->is_cut ? "..." : "",
                       (int)(DOMI_PICKLE_FAULT_PATH - fault->from), fault->path + fault->from,
                       fault->what);
    return fault->error;
}
