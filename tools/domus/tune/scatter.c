/* Draws the candidates of a search as a picture (parts.h). */
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 60
#define LINES   12
#define WIDTH   640 /* size of the SVG picture in pixels */
#define HEIGHT  400
#define MARGIN  60

/* --- the scale -------------------------------------------------------------------------------- */

static size_t count_candidates_with_rate_and_axis(const tune_spot *spots, size_t count, int axis)
{
    size_t with = 0;

    for (size_t i = 0; i < count; i++)
        with += !isnan(spots[i].values[0]) && !isnan(spots[i].values[axis]);
    return with;
}

bool tune_scale_make_for_candidates(const tune_spot *spots, size_t count, tune_scale *ret_scale)
{
    int axis = count_candidates_with_rate_and_axis(spots, count, 1) >= 2 ? 1 : 2;

    if (count_candidates_with_rate_and_axis(spots, count, axis) < 2)
        return false;
    *ret_scale = (tune_scale){axis, {INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
    for (size_t i = 0; i < count; i++) {
        const double values[2] = {spots[i].values[0], spots[i].values[axis]};
        for (int side = 0; side < 2 && !isnan(values[0]) && !isnan(values[1]); side++) {
            ret_scale->least[side] = fmin(ret_scale->least[side], values[side]);
            ret_scale->most[side] = fmax(ret_scale->most[side], values[side]);
        }
    }
    return true;
}

bool tune_scale_get_place_of_candidate(const tune_scale *scale, const tune_spot *spot,
                                       double ret_place[2])
{
    const double values[2] = {spot->values[0], spot->values[scale->axis]};

    if (isnan(values[0]) || isnan(values[1]))
        return false;
    for (int side = 0; side < 2; side++) {
        double range = scale->most[side] - scale->least[side];
        ret_place[side] = range > 0 ? (values[side] - scale->least[side]) / range : 0.5;
    }
    return true;
}

/* --- letters ---------------------------------------------------------------------------------- */

/* Returns the letter that stands for a candidate in the picture, and its rank: letters of higher
 * rank cover others. */
static char get_letter_of_candidate(const tune_records *records, const tune_spot *spot,
                                    int *ret_rank)
{
    tune_point winner = tune_records_get_winner_or_today(records);

    if (tune_point_has_only_todays_values(&spot->point)) {
        *ret_rank = 4;
        return 'T';
    }
    if (memcmp(&spot->point, &winner, sizeof winner) == 0) {
        *ret_rank = 3;
        return 'B';
    }
    *ret_rank = spot->is_front ? 2 : 1;
    return spot->is_front ? 'o' : '.';
}

void tune_scatter_print_picture_of_letters(const tune_records *records, const tune_spot *spots,
                                           size_t count, FILE *out)
{
    char cells[LINES][COLUMNS + 1], low[32], high[32];
    int ranks[LINES][COLUMNS] = {{0}};
    tune_scale scale;
    double place[2];

    if (!tune_scale_make_for_candidates(spots, count, &scale))
        return;
    memset(cells, ' ', sizeof cells);
    for (size_t i = 0; i < count; i++) {
        int rank;
        char letter = get_letter_of_candidate(records, &spots[i], &rank);
        if (!tune_scale_get_place_of_candidate(&scale, &spots[i], place))
            continue;
        int column = (int)lround(place[0] * (COLUMNS - 1));
        int line = (int)lround((1 - place[1]) * (LINES - 1));
        if (rank > ranks[line][column]) {
            ranks[line][column] = rank;
            cells[line][column] = letter;
        }
    }
    const char *name = tune_axes[scale.axis];
    (void)fprintf(out,
                  "#\n# %s upwards, rate to the right; T today's values, B chosen, o front, "
                  ". others\n",
                  name);
    for (int line = 0; line < LINES; line++) {
        low[0] = '\0';
        if (line == 0 || line == LINES - 1)
            tune_value_write_with_unit(name, line == 0 ? scale.most[1] : scale.least[1], low,
                                       sizeof low);
        int columns = COLUMNS;
        while (columns > 0 && cells[line][columns - 1] == ' ')
            columns--;
        (void)fprintf(out, "# %9s |%.*s\n", low, columns, cells[line]);
    }
    tune_value_write_with_unit("rate", scale.least[0], low, sizeof low);
    tune_value_write_with_unit("rate", scale.most[0], high, sizeof high);
    (void)fprintf(out, "# %9s  %-*s%s\n", "", COLUMNS - (int)strlen(high), low, high);
}

/* --- SVG -------------------------------------------------------------------------------------- */

static void print_text_in_svg(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            (void)fputs("&lt;", out);
        else if (*text == '&')
            (void)fputs("&amp;", out);
        else
            (void)fputc(*text, out);
    }
}

static void print_candidate_in_svg(const tune_records *records, const tune_spot *spot,
                                   const double *place, FILE *out)
{
    static const char *const colours[] = {"", "#bbb", "#47a", "#2a2", "#c33"};
    char shown[512], values[3][32];
    int rank;

    (void)get_letter_of_candidate(records, spot, &rank);
    tune_keys_describe_candidate(records->keys, &spot->point, shown, sizeof shown);
    for (int axis = 0; axis < 3; axis++)
        tune_value_write_with_unit(tune_axes[axis],
                                   isnan(spot->values[axis]) ? 0 : spot->values[axis], values[axis],
                                   sizeof values[axis]);
    (void)fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"><title>",
                  MARGIN + place[0] * (WIDTH - 2 * MARGIN),
                  HEIGHT - MARGIN - place[1] * (HEIGHT - 2 * MARGIN), colours[rank]);
    print_text_in_svg(shown, out);
    (void)fprintf(out, ": rate %s, p99 %s, cpu %s</title></circle>\n", values[0], values[1],
                  values[2]);
}

static void print_frame_of_svg(const tune_scale *scale, FILE *out)
{
    char low[2][32], high[2][32];
    const char *name = tune_axes[scale->axis];

    for (int side = 0; side < 2; side++) {
        tune_value_write_with_unit(side == 0 ? "rate" : name, scale->least[side], low[side],
                                   sizeof low[side]);
        tune_value_write_with_unit(side == 0 ? "rate" : name, scale->most[side], high[side],
                                   sizeof high[side]);
    }
    (void)fprintf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                  "font-family=\"sans-serif\" "
                  "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                  "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n",
                  WIDTH, HEIGHT, MARGIN - 15, MARGIN - 15, HEIGHT - MARGIN + 15,
                  WIDTH - MARGIN + 15);
    (void)fprintf(out,
                  "<text x=\"%d\" y=\"%d\">%s</text><text x=\"%d\" y=\"%d\">rate %s</text>\n"
                  "<text x=\"5\" y=\"%d\">%s</text><text x=\"5\" y=\"%d\">%s %s</text>\n",
                  MARGIN, HEIGHT - 20, low[0], WIDTH - 2 * MARGIN, HEIGHT - 20, high[0],
                  HEIGHT - MARGIN, low[1], MARGIN - 25, name, high[1]);
    (void)fprintf(out,
                  "<text x=\"%d\" y=\"20\"><tspan fill=\"#c33\">today's values</tspan> "
                  "<tspan fill=\"#2a2\">chosen</tspan> <tspan fill=\"#47a\">front</tspan> "
                  "<tspan fill=\"#888\">others</tspan></text>\n",
                  WIDTH / 2 - 100);
}

bool tune_report_print_scatter_as_svg(const tune_records *records, FILE *out)
{
    size_t count = 0;
    tune_spot *spots = tune_records_make_list_of_candidates(records, &count);
    tune_scale scale;
    double place[2];
    bool is_shown = spots != NULL && tune_scale_make_for_candidates(spots, count, &scale);

    if (is_shown) {
        print_frame_of_svg(&scale, out);
        for (size_t i = 0; i < count; i++) {
            if (tune_scale_get_place_of_candidate(&scale, &spots[i], place))
                print_candidate_in_svg(records, &spots[i], place, out);
        }
        (void)fputs("</svg>\n", out);
    }
    free(spots);
    return is_shown && ferror(out) == 0;
}
