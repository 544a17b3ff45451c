/* Writes a flame as folded stacks: a line of text for each node at which stacks end. */
#include "runtime/control/flame.h"
#include "runtime/control/flame_out.h"

#include <inttypes.h>
#include <string.h>

static void write_line_of_stack(domi_flame_out *out, const domi_flame_walk *walk, uint64_t stacks)
{
    for (uint32_t i = 1; i <= walk->depth; i++) {
        const domi_flame_node *node = domi_flame_node_at(walk->flame, walk->path[i]);
        const char *name = domi_flame_text_of_name(walk->flame, node->name);
        if (i != 1)
            domi_flame_out_add_text(out, ";", 1);
        domi_flame_out_add_text(out, name, strlen(name));
    }
    domi_flame_out_add_formatted(out, " %" PRIu64 "\n", stacks);
}

int domi_flame_write_folded(const domi_flame *flame, domus_cpu_profile_write *write, void *context)
{
    domi_flame_walk walk;
    domi_flame_out out;

    domi_flame_out_begin(&out, write, context);
    domi_flame_walk_begin(&walk, flame);
    while (out.error == 0 && domi_flame_walk_to_next_node(&walk, true)) {
        uint64_t stacks = domi_flame_node_at(flame, walk.path[walk.depth])->self;
        if (stacks != 0)
            write_line_of_stack(&out, &walk, stacks);
    }
    return domi_flame_out_flush(&out);
}
