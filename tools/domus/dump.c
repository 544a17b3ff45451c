/* Reads the text of /actors, which include/domus/dump.h describes. */
#include "tools/domus/dump.h"

#include "tools/domus/say.h"

#include <stdlib.h>
#include <string.h>

/* A part of a text, without a zero at its end. */
typedef struct part {
    const char *at;
    size_t size;
} part;

static part line_of(const char *text)
{
    return (part){text, strcspn(text, "\n")};
}

static const char *text_behind(part line)
{
    return line.at + line.size + (line.at[line.size] == '\n');
}

static bool begins_with(part line, const char *with)
{
    size_t size = strlen(with);

    return line.size >= size && memcmp(line.at, with, size) == 0;
}

/* Find a text in a line. Returns where it begins; NULL if it is not there. */
static const char *find_text(part line, const char *text)
{
    return memmem(line.at, line.size, text, strlen(text));
}

static void copy_text(const char *from, const char *end, char *ret_text, size_t size)
{
    escape_name(from, end > from ? (size_t)(end - from) : 0, ret_text, size);
}

/* Read a line such as "actor 0/2.1 shard "main": WAITING, channels actor". */
static void read_head(part line, actor *to)
{
    const char *end = line.at + line.size, *colon = NULL;
    const char *id = line.at + strlen("actor ");
    const char *space = memchr(id, ' ', (size_t)(end - id));

    for (const char *p = id; (p = memmem(p, (size_t)(end - p), ": ", 2)) != NULL; p++)
        colon = p;
    if (space == NULL || colon == NULL || colon < space) {
        copy_text(id, end, to->id, sizeof to->id);
        return;
    }
    part named = {space + 1, (size_t)(colon - space - 1)};
    const char *name = find_text(named, " \"");
    if (name == NULL && find_text(named, " of the grains ") != NULL)
        name = find_text(named, " (");
    copy_text(id, space, to->id, sizeof to->id);
    copy_text(space + 1, name != NULL ? name : colon, to->behaviour, sizeof to->behaviour);
    if (name != NULL)
        copy_text(name + 1, colon, to->name, sizeof to->name);
    part rest = {colon + 2, (size_t)(end - colon - 2)};
    const char *comma = find_text(rest, ", ");
    copy_text(rest.at, comma != NULL ? comma : end, to->state, sizeof to->state);
    if (comma != NULL)
        copy_text(comma + 2, end, to->marks, sizeof to->marks);
}

/* Returns the sum of all numbers in a line. */
static uint64_t sum_numbers(part line)
{
    uint64_t all = 0, number = 0;

    for (size_t i = 0; i < line.size; i++) {
        bool is_digit = line.at[i] >= '0' && line.at[i] <= '9';
        all += is_digit ? 0 : number;
        number = is_digit && number < UINT32_MAX ? number * 10 + (uint64_t)(line.at[i] - '0') : 0;
    }
    return all + number;
}

/* Read a line that tells what the actor waits for, and since when. */
static void read_wait(part line, actor *to)
{
    const char *since = find_text(line, ", since ");
    size_t indent = 0;

    if (since == NULL)
        return;
    uint64_t ms = strtoull(since + strlen(", since "), NULL, 10);
    if (to->waits_for[0] != '\0' && ms <= to->since_ms)
        return;
    while (indent < line.size && line.at[indent] == ' ')
        indent++;
    to->since_ms = ms;
    copy_text(line.at + indent, since, to->waits_for, sizeof to->waits_for);
}

bool dump_next(const char **at, actor *ret_actor, const char **ret_text, size_t *ret_size)
{
    part line = line_of(*at);

    while (*line.at != '\0' && !begins_with(line, "actor "))
        line = line_of(text_behind(line));
    if (*line.at == '\0') {
        *at = line.at;
        return false;
    }
    memset(ret_actor, 0, sizeof *ret_actor);
    *ret_text = line.at;
    read_head(line, ret_actor);
    for (line = line_of(text_behind(line)); begins_with(line, "  ");
         line = line_of(text_behind(line))) {
        if (begins_with(line, "  mail:"))
            ret_actor->mail = sum_numbers(line);
        else if (!begins_with(line, "   ") && find_text(line, " conversations:") != NULL)
            ret_actor->conversations = strtoull(line.at, NULL, 10);
        else
            read_wait(line, ret_actor);
    }
    *ret_size = (size_t)(line.at - *ret_text);
    *at = line.at;
    return true;
}

const char *dump_next_stuck(const char **at, size_t *ret_size)
{
    for (part line = line_of(*at); *line.at != '\0'; line = line_of(text_behind(line))) {
        if (!begins_with(line, "actor ") && !begins_with(line, " ") &&
            (find_text(line, ": stuck: ") != NULL || find_text(line, ": no answer: ") != NULL ||
             find_text(line, "not described") != NULL)) {
            *ret_size = line.size;
            *at = text_behind(line);
            return line.at;
        }
    }
    return NULL;
}

bool dump_is_cut(const char *text)
{
    for (part line = line_of(text); *line.at != '\0'; line = line_of(text_behind(line))) {
        if (!begins_with(line, "actor ") && !begins_with(line, " ") &&
            find_text(line, "were left out") != NULL)
            return true;
    }
    return false;
}
