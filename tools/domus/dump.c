/* Reads the text of /actors, the dump that include/domus/dump.h describes. */
#include "tools/domus/dump.h"

#include "tools/domus/say.h"

#include <stdlib.h>
#include <string.h>

/* A part of the dump's text, without a zero at its end. */
typedef struct part {
    const char *at;
    size_t size;
} part;

static part get_line_at(const char *text)
{
    return (part){text, strcspn(text, "\n")};
}

static const char *get_text_behind_line(part line)
{
    return line.at + line.size + (line.at[line.size] == '\n');
}

static bool does_line_begin_with(part line, const char *with)
{
    size_t size = strlen(with);

    return line.size >= size && memcmp(line.at, with, size) == 0;
}

/* Find a text in a line of the dump. Returns where it begins; NULL if it is not there. */
static const char *find_text_in_line(part line, const char *text)
{
    return memmem(line.at, line.size, text, strlen(text));
}

static void copy_text_up_to_end_as_ascii(const char *from, const char *end, char *ret_text,
                                         size_t size)
{
    escape_name_to_ascii(from, end > from ? (size_t)(end - from) : 0, ret_text, size);
}

/* Read the first line of an actor in the dump, such as "actor 0/2.1 shard "main": WAITING, channels
 * actor". */
static void read_first_line_of_actor(part line, actor *to)
{
    const char *end = line.at + line.size, *colon = NULL;
    const char *id = line.at + strlen("actor ");
    const char *space = memchr(id, ' ', (size_t)(end - id));

    for (const char *p = id; (p = memmem(p, (size_t)(end - p), ": ", 2)) != NULL; p++)
        colon = p;
    if (space == NULL || colon == NULL || colon < space) {
        copy_text_up_to_end_as_ascii(id, end, to->id, sizeof to->id);
        return;
    }
    part named = {space + 1, (size_t)(colon - space - 1)};
    const char *name = find_text_in_line(named, " \"");
    if (name == NULL && find_text_in_line(named, " of the grains ") != NULL)
        name = find_text_in_line(named, " (");
    copy_text_up_to_end_as_ascii(id, space, to->id, sizeof to->id);
    copy_text_up_to_end_as_ascii(space + 1, name != NULL ? name : colon, to->behaviour,
                                 sizeof to->behaviour);
    if (name != NULL)
        copy_text_up_to_end_as_ascii(name + 1, colon, to->name, sizeof to->name);
    part rest = {colon + 2, (size_t)(end - colon - 2)};
    const char *comma = find_text_in_line(rest, ", ");
    copy_text_up_to_end_as_ascii(rest.at, comma != NULL ? comma : end, to->state, sizeof to->state);
    if (comma != NULL)
        copy_text_up_to_end_as_ascii(comma + 2, end, to->marks, sizeof to->marks);
}

/* Returns the sum of all numbers in a line of the dump. */
static uint64_t sum_numbers_in_line(part line)
{
    uint64_t all = 0, number = 0;

    for (size_t i = 0; i < line.size; i++) {
        bool is_digit = line.at[i] >= '0' && line.at[i] <= '9';
        all += is_digit ? 0 : number;
        number = is_digit && number < UINT32_MAX ? number * 10 + (uint64_t)(line.at[i] - '0') : 0;
    }
    return all + number;
}

/* Read a line of the dump that tells what the actor waits for, and since when. If several lines
 * tell that, the one with the longest wait is kept. */
static void read_line_if_it_tells_of_longer_wait(part line, actor *to)
{
    const char *since = find_text_in_line(line, ", since ");
    size_t indent = 0;

    if (since == NULL)
        return;
    uint64_t ms = strtoull(since + strlen(", since "), NULL, 10);
    if (to->waits_for[0] != '\0' && ms <= to->since_ms)
        return;
    while (indent < line.size && line.at[indent] == ' ')
        indent++;
    to->since_ms = ms;
    copy_text_up_to_end_as_ascii(line.at + indent, since, to->waits_for, sizeof to->waits_for);
}

bool dump_read_next_actor(const char **at, actor *ret_actor, const char **ret_text,
                          size_t *ret_size)
{
    part line = get_line_at(*at);

    while (*line.at != '\0' && !does_line_begin_with(line, "actor "))
        line = get_line_at(get_text_behind_line(line));
    if (*line.at == '\0') {
        *at = line.at;
        return false;
    }
    memset(ret_actor, 0, sizeof *ret_actor);
    *ret_text = line.at;
    read_first_line_of_actor(line, ret_actor);
    for (line = get_line_at(get_text_behind_line(line)); does_line_begin_with(line, "  ");
         line = get_line_at(get_text_behind_line(line))) {
        if (does_line_begin_with(line, "  mail:"))
            ret_actor->mail = sum_numbers_in_line(line);
        else if (!does_line_begin_with(line, "   ") &&
                 find_text_in_line(line, " conversations:") != NULL)
            ret_actor->conversations = strtoull(line.at, NULL, 10);
        else
            read_line_if_it_tells_of_longer_wait(line, ret_actor);
    }
    *ret_size = (size_t)(line.at - *ret_text);
    *at = line.at;
    return true;
}

const char *dump_find_next_stuck_thread(const char **at, size_t *ret_size)
{
    for (part line = get_line_at(*at); *line.at != '\0';
         line = get_line_at(get_text_behind_line(line))) {
        if (!does_line_begin_with(line, "actor ") && !does_line_begin_with(line, " ") &&
            (find_text_in_line(line, ": stuck: ") != NULL ||
             find_text_in_line(line, ": no answer: ") != NULL ||
             find_text_in_line(line, "not described") != NULL)) {
            *ret_size = line.size;
            *at = get_text_behind_line(line);
            return line.at;
        }
    }
    return NULL;
}

bool dump_does_text_say_actors_were_left_out(const char *text)
{
    for (part line = get_line_at(text); *line.at != '\0';
         line = get_line_at(get_text_behind_line(line))) {
        if (!does_line_begin_with(line, "actor ") && !does_line_begin_with(line, " ") &&
            find_text_in_line(line, "were left out") != NULL)
            return true;
    }
    return false;
}
