/* Reads the values of a reply of RESP one by one. */
#include "protocols/resp/double.h"
#include "protocols/resp/scan.h"

#include <errno.h>

static bool is_kind_of_line(domus_resp_kind kind)
{
    return kind == DOMUS_RESP_SIMPLE || kind == DOMUS_RESP_ERROR || kind == DOMUS_RESP_INTEGER ||
           kind == DOMUS_RESP_DOUBLE || kind == DOMUS_RESP_BIG_NUMBER;
}

int domus_resp_read(domus_resp_reader *reader, domus_resp_value *ret_value)
{
    const char *bytes = domus_slice_data(reader->bytes) + reader->at;
    uint32_t size = reader->bytes.size - reader->at;
    domi_resp_item item;

    if (size == 0)
        return 0;
    int head = domi_resp_scan_head_of_value(bytes, size, 0, &item);
    if (head <= 0 || item.body > size - (uint32_t)head)
        return -EPROTO;
    domus_resp_value value = {.kind = item.kind, .count = item.count, .integer = item.integer};
    value.text = (domus_slice){reader->bytes.page, reader->bytes.offset + reader->at, 0};
    if (is_kind_of_line(item.kind)) {
        value.text.offset += 1;
        value.text.size = item.line;
    } else if (item.body != 0) {
        const char *end = bytes + head + item.body;
        if (end[-2] != '\r' || end[-1] != '\n')
            return -EPROTO;
        /* the bytes of a verbatim string begin with its format, such as "txt:", which is left
         * out */
        uint32_t format = item.kind == DOMUS_RESP_VERBATIM ? 4 : 0;
        value.text.offset += (uint32_t)head + format;
        value.text.size = item.body - 2 - format;
    }
    value.number = item.kind == DOMUS_RESP_DOUBLE ? domi_resp_read_double(bytes + 1, item.line)
                                                  : (double)item.integer;
    reader->at += (uint32_t)head + item.body;
    *ret_value = value;
    return 1;
}

int domus_resp_skip(domus_resp_reader *reader, const domus_resp_value *value)
{
    uint64_t rest = value->count;
    domus_resp_value next;

    while (rest != 0) {
        if (domus_resp_read(reader, &next) != 1)
            return -EPROTO;
        rest += next.count;
        if (next.kind != DOMUS_RESP_ATTRIBUTE)
            rest--;
    }
    return 0;
}
