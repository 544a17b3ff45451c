/* `domus top` on a terminal.
 *
 * The loop waits for keys and for the time of the next sample. After each of them everything is
 * drawn again, and ncurses sends only the changes. A program that does not answer is asked again at
 * each interval, while the last view stays. */
#include "tools/domus/screen.h"

#include "tools/domus/say.h"

#include <ctype.h>
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS  2000L /* most ms for an answer of the program, during which keys have to wait */
#define WIDTH_MIN  24
#define HEIGHT_MIN 4
#define BAR_MAX    256
#define CELL_WIDE  76 /* columns of a meter from which on its rates are shown, too */
#define CELL_MIN   30
#define NS_OF_MS   1000000u

/* The forms in which meters are shown; the key t switches to the next form. */
enum { METERS_ALL, METERS_NONE, METERS_WAYS };

typedef struct screen {
    view *shown;
    bool is_frozen, is_typing, is_help, is_ended;
    int meters;
    /* index of the selected row of behaviours, and of the first visible row */
    uint32_t selected, first;
    int page; /* number of rows of behaviours that fit on the screen */
} screen;

/* --- drawing ---------------------------------------------------------------------------------- */

/* Returns the number of the colour pair for a letter of a meter's bar; 0: it has no colour. */
static int get_color_of_letter(char letter)
{
    static const char letters[] = "hsecuorl";
    const char *at = strchr(letters, letter);
    /* in the bar of a runner, the letters for run and look have the colours of state and events */
    static const int pairs[] = {1, 2, 3, 4, 5, 6, 2, 3};

    return letter != '\0' && at != NULL ? pairs[at - letters] : 0;
}

static void start_colors_of_terminal(void)
{
    static const short colors[] = {COLOR_CYAN, COLOR_GREEN,   COLOR_YELLOW,
                                   COLOR_BLUE, COLOR_MAGENTA, COLOR_RED};

    if (!has_colors() || start_color() != OK)
        return;
    bool is_default = use_default_colors() == OK;
    for (short i = 0; i < 6; i++)
        (void)init_pair((short)(i + 1), colors[i], is_default ? -1 : COLOR_BLACK);
}

/* Print letters of a bar, each in its colour. */
static void print_letters_in_colors(const char *text)
{
    for (; *text != '\0'; text++)
        (void)addch((chtype)(unsigned char)*text |
                    (chtype)(has_colors() ? COLOR_PAIR(get_color_of_letter(*text)) : 0) |
                    (get_color_of_letter(*text) != 0 ? A_BOLD : 0));
}

/* Print a line of the screen, cut at the width of the window. */
static void print_line_at(int y, int x, int width, attr_t attributes, const char *text)
{
    if (width <= 0)
        return;
    (void)attr_set(attributes, 0, NULL);
    (void)mvaddnstr(y, x, text, width);
    (void)attr_set(A_NORMAL, 0, NULL);
}

/* Print the legend of the meters, in which the letter before each word has its colour. */
static void print_legend_of_meters(int y, int width)
{
    static const char text[] = VIEW_LEGEND;
    char letter[2] = "";

    (void)move(y, 0);
    for (int i = 0; text[i] != '\0' && i < width; i++) {
        letter[0] = text[i];
        if (i == 0 || (text[i - 1] == ' ' && text[i + 1] == ' '))
            print_letters_in_colors(letter);
        else
            (void)addch((chtype)(unsigned char)text[i]);
    }
}

static void draw_meter(const meter *one, int y, int x, int width)
{
    char bar[BAR_MAX + 1], rates[LINE_SIZE];
    /* columns of the meter's bar, without the label, the brackets and the percentage */
    int cells = width - 18;

    view_write_rates_of_meter(one, rates, sizeof rates);
    if (width >= CELL_WIDE)
        cells = width - 10 - (int)strlen(rates);
    else
        rates[6] = '\0'; /* cut the rates behind the percentage, which alone is shown */
    if (cells > BAR_MAX)
        cells = BAR_MAX;
    if (cells < 1)
        return;
    view_write_bar_of_meter_as_letters(one, cells, bar);
    (void)mvprintw(y, x, "%6.6s[", one->label);
    print_letters_in_colors(bar);
    (void)printw("] %s", rates);
}

/* Draw as many meters as fit into half of the window, in up to four columns. Returns the line below
 * them. */
static int draw_meters(const screen *on, int y, int height, int width)
{
    int count = (int)on->shown->meter_count, room = (height - y) / 2, columns = 1;

    if (on->meters == METERS_NONE || count == 0 || room < 1)
        return y;
    while (columns < 4 && (count + columns - 1) / columns > room &&
           width / (columns * 2) >= CELL_MIN)
        columns *= 2;
    int lines = (count + columns - 1) / columns;
    bool is_cut = lines > room;
    if (is_cut)
        lines = room > 1 ? room - 1 : 1;
    for (int i = 0; i < count && i < lines * columns; i++)
        draw_meter(&on->shown->meters[i], y + i % lines, i / lines * (width / columns),
                   width / columns - (columns > 1));
    y += lines;
    if (is_cut && room > 1)
        (void)mvprintw(y++, 0, "%6s and %d more threads and runners", "", count - lines * columns);
    return y;
}

static void draw_titles_of_columns(const view *shown, int y, int width)
{
    char text[64];
    int x = 0;

    for (int i = 0; i < COLUMNS_ && x < width; i++) {
        int wide;
        const char *name = view_get_title_of_column((column)i, &wide);
        bool is_last = i + 1 == COLUMNS_;
        snprintf(text, sizeof text, "%*s", wide, name);
        print_line_at(y, is_last ? x + 2 : x, width - x - (is_last ? 2 : 0),
                      (column)i == shown->sort ? A_REVERSE | A_BOLD : A_REVERSE, text);
        x += wide;
    }
}

static void draw_rows_of_behaviours(screen *on, int y, int height, int width)
{
    const view *shown = on->shown;
    char line[LINE_SIZE];

    on->page = height - y > 0 ? height - y : 0;
    if (shown->row_count > 0 && on->selected >= shown->row_count)
        on->selected = shown->row_count - 1;
    if (on->selected < on->first)
        on->first = on->selected;
    if (on->page > 0 && on->selected >= on->first + (uint32_t)on->page)
        on->first = on->selected - (uint32_t)on->page + 1;
    if (shown->now.behaviour_count == 0 && on->page > 0)
        print_line_at(y, 0, width, A_DIM, "this program does not count by behaviours");
    for (int i = 0; i < on->page && on->first + (uint32_t)i < shown->row_count; i++) {
        uint32_t which = on->first + (uint32_t)i;
        view_write_row(&shown->rows[which], line, sizeof line);
        print_line_at(y + i, 0, width, which == on->selected ? A_BOLD | A_UNDERLINE : A_NORMAL,
                      line);
    }
}

static void draw_help_of_keys(int height, int width)
{
    static const char *const lines[] = {
        "domus top: keys",
        "",
        "q F10          quit",
        "space          freeze the view, and let it go on",
        "F6 > <         sort by the next column, or the one before",
        "P M W F A N    sort by time, messages, wait, failures, alive or name",
        "I              turn the order round",
        "/              show only behaviours whose name has what is typed;",
        "               Enter ends typing, Esc shows all again",
        "up down PgUp PgDn Home End    move in the behaviours",
        "t              hide the bars of threads, and show them again",
        "h F1 ?         this text; any key leaves it",
        "",
        VIEW_LEGEND,
        "Runners of pools have r run, l looking for work, . park.",
    };

    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]) && i < height; i++)
        print_line_at(i, 0, width, i == 0 ? A_BOLD : A_NORMAL, lines[i]);
}

static void draw_filter_or_help_in_last_line(const screen *on, int y, int width)
{
    char line[LINE_SIZE];

    if (on->is_typing || on->shown->filter[0] != '\0')
        snprintf(line, sizeof line, "/%s%s", on->shown->filter, on->is_typing ? "_" : "");
    else
        snprintf(line, sizeof line, "h help  space freeze  F6 sort  / filter  q quit");
    print_line_at(y, 0, width, A_REVERSE, line);
}

static void draw_screen(screen *on)
{
    int height, width, y = 0;
    char line[LINE_SIZE];

    getmaxyx(stdscr, height, width);
    (void)erase();
    if (height < HEIGHT_MIN || width < WIDTH_MIN) {
        print_line_at(0, 0, width, A_NORMAL, "too small");
    } else if (on->is_help) {
        draw_help_of_keys(height, width);
    } else {
        view_write_first_line_of_top(on->shown, line, sizeof line);
        print_line_at(y++, 0, width, A_BOLD, line);
        if (on->shown->trouble[0] != '\0') {
            snprintf(line, sizeof line, "GONE: %.480s", on->shown->trouble);
            print_line_at(y++, 0, width, A_REVERSE, line);
        } else {
            view_write_totals(on->shown, line, sizeof line);
            if (on->is_frozen)
                print_line_at(y, 0, width, A_REVERSE, "FROZEN");
            print_line_at(y++, on->is_frozen ? 7 : 0, width - (on->is_frozen ? 7 : 0), A_NORMAL,
                          line);
        }
        if (height > 8 && on->meters == METERS_ALL)
            print_legend_of_meters(y++, width);
        y = draw_meters(on, y, height - 1, width);
        if (y < height - 1)
            draw_titles_of_columns(on->shown, y++, width);
        draw_rows_of_behaviours(on, y, height - 1, width);
        draw_filter_or_help_in_last_line(on, height - 1, width);
    }
    (void)refresh();
}

/* --- keys ------------------------------------------------------------------------------------- */

static void edit_filter_of_behaviours_with_key(screen *on, int key)
{
    char *filter = on->shown->filter;
    size_t length = strlen(filter);

    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        on->is_typing = false;
    } else if (key == 27) {
        on->is_typing = false;
        filter[0] = '\0';
    } else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && length > 0) {
        filter[length - 1] = '\0';
    } else if (key >= ' ' && key <= '~' && length + 1 < sizeof on->shown->filter) {
        filter[length] = (char)key;
        filter[length + 1] = '\0';
    }
    on->selected = on->first = 0;
    view_list_filtered_behaviours_sorted(on->shown);
}

static void sort_behaviours_by_column(screen *on, int which)
{
    on->shown->sort = (column)((which + COLUMNS_) % COLUMNS_);
    view_list_filtered_behaviours_sorted(on->shown);
}

/* Move the selection by some rows, within the list of behaviours. */
static void move_selection_by(screen *on, long rows)
{
    long to = (long)on->selected + rows, last = (long)on->shown->row_count - 1;

    on->selected = (uint32_t)(to < 0 || last < 0 ? 0 : to > last ? last : to);
}

static void move_selection_with_key(screen *on, int key)
{
    if (key == KEY_UP)
        move_selection_by(on, -1);
    else if (key == KEY_DOWN)
        move_selection_by(on, 1);
    else if (key == KEY_PPAGE)
        move_selection_by(on, -on->page);
    else if (key == KEY_NPAGE)
        move_selection_by(on, on->page);
    else if (key == KEY_HOME)
        on->selected = 0;
    else if (key == KEY_END)
        move_selection_by(on, (long)on->shown->row_count);
}

static void run_command_of_key(screen *on, int key)
{
    static const struct {
        int key;
        column by;
    } sorts[] = {{'P', COLUMN_TIME}, {'M', COLUMN_MESSAGES}, {'T', COLUMN_TIME},
                 {'W', COLUMN_WAIT}, {'F', COLUMN_FAILURES}, {'A', COLUMN_ALIVE},
                 {'N', COLUMN_NAME}, {'B', COLUMN_BYTES},    {'R', COLUMN_RUNS}};

    for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
        if (key == sorts[i].key)
            sort_behaviours_by_column(on, (int)sorts[i].by);
    }
    if (key == 'q' || key == KEY_F(10)) {
        on->is_ended = true;
    } else if (key == ' ') {
        on->is_frozen = !on->is_frozen;
    } else if (key == '>' || key == KEY_F(6)) {
        sort_behaviours_by_column(on, (int)on->shown->sort + 1);
    } else if (key == '<') {
        sort_behaviours_by_column(on, (int)on->shown->sort - 1);
    } else if (key == 'I') {
        on->shown->is_reversed = !on->shown->is_reversed;
        view_list_filtered_behaviours_sorted(on->shown);
    } else if (key == '/' || key == KEY_F(4)) {
        on->is_typing = true;
    } else if (key == 27) {
        edit_filter_of_behaviours_with_key(on, key);
    } else if (key == 't') {
        on->meters = (on->meters + 1) % METERS_WAYS;
    } else if (key == 'h' || key == '?' || key == KEY_F(1)) {
        on->is_help = true;
    } else {
        move_selection_with_key(on, key);
    }
}

/* Handle all keys that the user has pressed. */
static void use_all_pressed_keys(screen *on)
{
    for (int key; !on->is_ended && (key = getch()) != ERR;) {
        if (key == KEY_RESIZE)
            continue; /* after a resize ncurses knows the new size, and everything is drawn again */
        if (on->is_help)
            on->is_help = false;
        else if (on->is_typing)
            edit_filter_of_behaviours_with_key(on, key);
        else
            run_command_of_key(on, key);
    }
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Wait for a key, a resize of the terminal or a signal, until `until_ns`. Returns whether the
 * terminal still exists. */
static bool wait_for_key_or_signal_until_time(uint64_t until_ns)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t now_ns = sample_get_clock_ns();
    int ms = until_ns > now_ns ? (int)((until_ns - now_ns) / NS_OF_MS) + 1 : 0;

    if (poll(&keys, 1, ms) < 0)
        return errno == EINTR;
    return (keys.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static void take_samples_and_draw_until_end(screen *on, port *from, long interval_ms, long count)
{
    uint64_t next_ns = sample_get_clock_ns();
    long taken = 0;

    while (!on->is_ended && say_get_noted_signal() == 0) {
        uint64_t now_ns = sample_get_clock_ns();
        if (now_ns >= next_ns) {
            if (!on->is_frozen) {
                (void)view_request_next_sample_from_port(on->shown, from, ANSWER_MS);
                taken++;
            }
            /* The second sample is taken soon after the first, because rates need two samples. */
            next_ns =
                now_ns + (uint64_t)(taken == 1 && interval_ms > 250 ? 250 : interval_ms) * NS_OF_MS;
        }
        draw_screen(on);
        if (count > 0 && taken > count)
            break;
        on->is_ended = !wait_for_key_or_signal_until_time(next_ns);
        use_all_pressed_keys(on);
    }
}

int screen_show_program_until_end(view *shown, port *from, long interval_ms, long count)
{
    screen on = {.shown = shown};

    if (!view_request_next_sample_from_port(shown, from, ANSWER_MS)) {
        say_print_error("%s", shown->trouble);
        return STATUS_FAILED;
    }
    say_begin_to_note_signals();
    (void)set_escdelay(25);
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL) {
        say_print_error("this terminal is not known (TERM); -b prints plain lines");
        return STATUS_FAILED;
    }
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    start_colors_of_terminal();
    take_samples_and_draw_until_end(&on, from, interval_ms, count);
    (void)endwin();
    delscreen(terminal);
    return STATUS_OK;
}
