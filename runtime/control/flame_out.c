/* Gathers pieces of text and writes them to a function of the user; flame_out.h tells more. */
#include "runtime/control/flame_out.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void domi_flame_out_begin(domi_flame_out *out, domus_cpu_profile_write *write, void *context)
{
    out->write = write;
    out->context = context;
    out->error = 0;
    out->length = 0;
}

static void flush_gathered_text(domi_flame_out *out)
{
    if (out->error == 0 && out->length != 0) {
        int result = out->write(out->context, out->text, out->length);
        out->error = result < 0 ? result : 0;
    }
    out->length = 0;
}

void domi_flame_out_add_text(domi_flame_out *out, const char *text, size_t length)
{
    DOMI_CHECK(length <= sizeof out->text);
    if (length > sizeof out->text - out->length)
        flush_gathered_text(out);
    memcpy(out->text + out->length, text, length);
    out->length += length;
}

void domi_flame_out_add_formatted(domi_flame_out *out, const char *format, ...)
{
    char text[DOMI_FLAME_OUT_FORMAT];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    DOMI_CHECK(length >= 0 && (size_t)length < sizeof text);
    domi_flame_out_add_text(out, text, (size_t)length);
}

int domi_flame_out_flush(domi_flame_out *out)
{
    flush_gathered_text(out);
    return out->error;
}
