/* A flame as a flame graph in SVG: boxes for nodes, the outermost at the bottom.
 *
 * All figures are written as integers, or as tenths with a point, because the decimal point of
 * printf() depends on the locale. Names have printable ASCII only (flame.h), so the characters that
 * XML knows are all that is escaped. */
#include "runtime/control/flame.h"
#include "runtime/control/flame_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Measures of the flame graph in pixels. Horizontal positions are in tenths of pixels. */
#define WIDTH  1200u
#define MARGIN 10u
#define HEAD   40u /* pixels for the title of the flame graph, above the boxes */
#define ROW    17u /* height of a node's box in pixels, with the gap to the next row */
/* width of the flame graph without its margins, in tenths of a pixel */
#define WIDE ((uint64_t)(WIDTH - 2 * MARGIN) * 10)
/* width of a letter of a box's name in tenths of a pixel, at 12 px and fixed width */
#define LETTER      72u
#define LETTERS     3u /* number of letters for which a box must have room to be given a name */
#define WIDTH_LEAST 1u /* boxes that are narrower, in tenths of a pixel, are left out */

/* The left edge and the width of a node's box in the flame graph, in tenths of a pixel. */
typedef struct box {
    uint64_t left;
    uint64_t width;
} box;

/* Returns the box of the node at which a walk is. Its edges are rounded, not its width, so that
 * boxes side by side have no gap between them. No product overflows: a sample counts as less than
 * 2^24, and there are fewer than 2^25 samples. */
static box make_box_of_node(const domi_flame_walk *walk)
{
    const domi_flame_node *node = domi_flame_node_at(walk->flame, walk->path[walk->depth]);
    uint64_t all = domi_flame_node_at(walk->flame, 0)->total;
    uint64_t from = walk->before[walk->depth];

    if (all == 0)
        return (box){0, 0};
    uint64_t left = from * WIDE / all;
    uint64_t right = (from + node->total) * WIDE / all;
    return (box){left, right - left};
}

/* Returns the depth of the deepest node of a flame whose box is wide enough to be drawn. */
static uint32_t find_depth_of_drawn_boxes(const domi_flame *flame)
{
    domi_flame_walk walk;
    uint32_t depth = 0;
    bool into = true;

    domi_flame_walk_begin(&walk, flame);
    while (domi_flame_walk_to_next_node(&walk, into)) {
        into = make_box_of_node(&walk).width >= WIDTH_LEAST;
        if (into && walk.depth > depth)
            depth = walk.depth;
    }
    return depth;
}

/* Write up to `length` characters of `text` with the characters escaped that have a meaning in
 * XML. */
static void write_text_escaped_for_xml(domi_flame_out *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i] != '\0'; i++) {
        if (text[i] == '&')
            domi_flame_out_add_text(out, "&amp;", 5);
        else if (text[i] == '<')
            domi_flame_out_add_text(out, "&lt;", 4);
        else if (text[i] == '>')
            domi_flame_out_add_text(out, "&gt;", 4);
        else
            domi_flame_out_add_text(out, &text[i], 1);
    }
}

/* Write the colour of a box, which depends only on its name. Behaviours are blue, functions have
 * warm colours. */
static void write_colour_of_name(domi_flame_out *out, const char *name, bool is_function)
{
    uint32_t hash = 2166136261u;

    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    hash ^= hash >> 16;
    if (is_function)
        domi_flame_out_add_formatted(out, "rgb(%u,%u,%u)", 225 + hash % 30, 120 + hash / 30 % 110,
                                     60 + hash / 3300 % 40);
    else
        domi_flame_out_add_formatted(out, "rgb(%u,%u,%u)", 120 + hash % 40, 170 + hash / 40 % 40,
                                     225 + hash / 1600 % 30);
}

static void write_box_of_node(domi_flame_out *out, const domi_flame_walk *walk, box place,
                              uint32_t deepest)
{
    const domi_flame *flame = walk->flame;
    const domi_flame_node *node = domi_flame_node_at(flame, walk->path[walk->depth]);
    const char *name = walk->depth == 0 ? "all" : domi_flame_text_of_name(flame, node->name);
    uint64_t all = domi_flame_node_at(flame, 0)->total;
    uint64_t left = place.left + MARGIN * 10;
    uint64_t letters = place.width / LETTER;
    uint32_t top = HEAD + (deepest - walk->depth) * ROW;

    domi_flame_out_add_formatted(out, "<g><title>");
    write_text_escaped_for_xml(out, name, SIZE_MAX);
    uint64_t share = node->total * 1000 / all;
    domi_flame_out_add_formatted(out, ": %" PRIu64 " samples, %" PRIu64 ".%" PRIu64 " %%</title>",
                                 node->total, share / 10, share % 10);
    domi_flame_out_add_formatted(out,
                                 "<rect x=\"%" PRIu64 ".%" PRIu64 "\" y=\"%" PRIu32
                                 "\" width=\"%" PRIu64 ".%" PRIu64 "\" height=\"%u\" fill=\"",
                                 left / 10, left % 10, top, place.width / 10, place.width % 10,
                                 ROW - 1);
    write_colour_of_name(out, name, walk->depth > 1);
    domi_flame_out_add_formatted(out, "\"/>");
    if (letters >= LETTERS) {
        domi_flame_out_add_formatted(out, "<text x=\"%" PRIu64 ".%" PRIu64 "\" y=\"%" PRIu32 "\">",
                                     (left + 30) / 10, (left + 30) % 10, top + 12);
        bool fits = strlen(name) <= letters;
        write_text_escaped_for_xml(out, name, fits ? SIZE_MAX : (size_t)letters - 2);
        domi_flame_out_add_formatted(out, "%s</text>", fits ? "" : "..");
    }
    domi_flame_out_add_formatted(out, "</g>\n");
}

static void write_head_of_svg(domi_flame_out *out, const char *title, uint32_t height)
{
    domi_flame_out_add_formatted(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%u\" "
        "height=\"%" PRIu32 "\" viewBox=\"0 0 %u %" PRIu32 "\">\n<title>",
        WIDTH, height, WIDTH, height);
    write_text_escaped_for_xml(out, title, SIZE_MAX);
    domi_flame_out_add_formatted(out,
                                 "</title>\n<style>text{font:12px monospace;fill:#000}"
                                 "rect:hover{stroke:#000}.page{fill:#fff}.head{font-size:14px}");
    domi_flame_out_add_formatted(out, "@media(prefers-color-scheme:dark){.page{fill:#1b1b1b}"
                                      ".head{fill:#ddd}}</style>\n");
    domi_flame_out_add_formatted(out,
                                 "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
                                 "<text class=\"head\" x=\"%u\" y=\"24\">",
                                 MARGIN);
    write_text_escaped_for_xml(out, title, SIZE_MAX);
    domi_flame_out_add_formatted(out, "</text>\n");
}

int domi_flame_write_svg(const domi_flame *flame, const char *title, domus_cpu_profile_write *write,
                         void *context)
{
    uint32_t deepest = find_depth_of_drawn_boxes(flame);
    domi_flame_walk walk;
    domi_flame_out out;
    bool more = domi_flame_node_at(flame, 0)->total != 0;

    domi_flame_out_begin(&out, write, context);
    write_head_of_svg(&out, title, HEAD + (deepest + 1) * ROW + MARGIN);
    domi_flame_walk_begin(&walk, flame);
    while (more && out.error == 0) {
        box place = make_box_of_node(&walk);
        bool is_drawn = place.width >= WIDTH_LEAST;
        if (is_drawn)
            write_box_of_node(&out, &walk, place, deepest);
        more = domi_flame_walk_to_next_node(&walk, is_drawn);
    }
    domi_flame_out_add_formatted(&out, "</svg>\n");
    return domi_flame_out_flush(&out);
}
