/* Refuses a text: records what is wrong, and builds the path of the fault from the frames that are
 * open. */
#include "protocols/json/reader.h"

bool domi_json_refuse_text(domi_json_reader *reader, size_t offset, int error, const char *format,
                           ...)
{
    domi_json_fault *fault = &reader->fault;
    va_list list;

    if (fault->error != 0)
        return false;
    va_start(list, format);
    domi_json_fault_record(fault, error, format, list);
    va_end(list);
    fault->offset = offset;
    for (const domi_json_frame *frame = reader->top; frame != reader->frames; frame--) {
        if (frame->table == NULL)
            domi_json_fault_put_index_before(fault, frame->next);
        else if (frame->field != NULL)
            domi_json_fault_put_name_before(fault, frame->field->name);
    }
    return false;
}
