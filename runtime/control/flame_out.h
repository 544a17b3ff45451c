/* An output for the text of a flame: it gathers the text, and gives it to a function of the user in
 * pieces of some KiB. After an error nothing more is written. One thread. */
#ifndef DOMI_RUNTIME_CONTROL_FLAME_OUT_H
#define DOMI_RUNTIME_CONTROL_FLAME_OUT_H

#include <domus/cpu_profile.h>

#define DOMI_FLAME_OUT_BYTES 4096u
/* most bytes that one call of domi_flame_out_add_formatted() writes */
#define DOMI_FLAME_OUT_FORMAT 512u

typedef struct domi_flame_out {
    domus_cpu_profile_write *write;
    void *context; /* argument that the user's function `write` gets */
    int error;     /* first negative errno that `write` has returned; 0: none */
    size_t length; /* bytes of `text` that are gathered and not written yet */
    char text[DOMI_FLAME_OUT_BYTES];
} domi_flame_out;

void domi_flame_out_begin(domi_flame_out *out, domus_cpu_profile_write *write, void *context);
void domi_flame_out_add_text(domi_flame_out *out, const char *text, size_t length);
void domi_flame_out_add_formatted(domi_flame_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write the gathered bytes that are not written yet. Returns 0, or the first negative errno that
 * `write` has returned. */
int domi_flame_out_flush(domi_flame_out *out);

#endif
