/* Inner channels as a stage sees them: the insides of domus/inner.h and domus/lend.h. The owner of
 * a wire that can have inner channels fills the tables (io/inner/, or the kit). One thread at a
 * time. */
#ifndef DOMI_IO_WIRE_INNER_H
#define DOMI_IO_WIRE_INNER_H

#include <domus/lend.h>

/* The functions of domus/inner.h by which a stage acts on one inner channel. */
typedef struct domi_inner_ways {
    void (*drop)(domus_inner *inner, int error);
    domus_inner_state (*look)(const domus_inner *inner, int *ret_error);
    int (*pass)(domus_inner *inner, const void *bytes, size_t size);
    void (*end)(domus_inner *inner);
    void (*rest)(domus_inner *inner);
    uint64_t (*unused)(const domus_inner *inner);
    const char *(*bytes)(const domus_inner *inner, size_t *ret_size);
    void (*took)(domus_inner *inner, size_t size);
    void (*refuse)(domus_inner *inner);
    void (*fail)(domus_inner *inner, int error);
    bool (*has_ask)(const domus_inner *inner);
    bool (*is_broken)(const domus_inner *inner);
    /* Returns the address of the inner channel; nobody's address, if it has ended. */
    domus_address (*address)(const domus_inner *inner);
} domi_inner_ways;

/* The part of an inner channel that the wire of its outer channel sees. */
struct domus_inner {
    const domi_inner_ways *ways;
    void *data; /* a pointer of the stage that has opened the inner channel */
};

/* The functions for inner channels that the owner of a wire provides for its stages. */
typedef struct domi_inners {
    /* Open an inner channel whose pipeline is that of the outer one without the first `skipped`
     * stages. */
    int (*open)(domus_wire *wire, uint32_t skipped, void *data, domus_inner **ret_inner);
    domus_inner *(*next)(domus_wire *wire);
    void (*set_carried)(domus_wire *wire, uint32_t count);
    bool (*is_full)(const domus_wire *wire);
    bool (*is_draining)(const domus_wire *wire);
    bool (*is_inner)(const domus_wire *wire);
    /* record that a stage has left the pipeline (domus_wire_leave()) */
    void (*note_left)(domus_wire *wire);
    void (*lend)(domus_wire *wire, uint32_t most);
} domi_inners;

#endif
