/* This file formats numbers and describes the machine for pages, and runs gnuplot (page.h). */
#include "bench/support/page.h"

#include "bench/support/command.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GNUPLOT_SECONDS_MAX 60

const char *page_write_grouped_number(uint64_t number, char *text)
{
    char plain[PAGE_CELL_MAX];
    int length = snprintf(plain, sizeof plain, "%" PRIu64, number);
    char *to = text;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = plain[i];
    }
    *to = '\0';
    return text;
}

const char *page_write_number_of_cell(double value, double scale, const char *unit, char *text)
{
    static const char *const formats[] = {"%.2f%s", "%.1f%s", "%.0f%s"};
    double shown = value * scale;
    int digits = shown < 10 ? 0 : shown < 100 ? 1 : 2;

    if (isnan(value))
        snprintf(text, PAGE_CELL_MAX, "-");
    else if (digits == 0)
        snprintf(text, PAGE_CELL_MAX, formats[0], shown, unit);
    else if (digits == 1)
        snprintf(text, PAGE_CELL_MAX, formats[1], shown, unit);
    else
        snprintf(text, PAGE_CELL_MAX, formats[2], shown, unit);
    return text;
}

const char *page_write_rate_in_millions_or_k(double rate, char *text)
{
    return rate < 1e5 ? page_write_number_of_cell(rate, 1e-3, " k", text)
                      : page_write_number_of_cell(rate, 1e-6, "", text);
}

char *page_copy_text_from_heading_on(const char *path, const char *heading)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    char *rest = NULL;
    size_t line_room = 0, size = 0;
    FILE *to = file != NULL ? open_memstream(&rest, &size) : NULL;
    bool begun = false;

    while (to != NULL && getline(&line, &line_room, file) > 0) {
        begun = begun || strncmp(line, heading, strlen(heading)) == 0;
        if (begun)
            fputs(line, to);
    }
    free(line);
    if (to != NULL)
        fclose(to);
    if (file != NULL)
        fclose(file);
    if (begun)
        return rest;
    free(rest);
    return NULL;
}

void page_write_machine(FILE *file)
{
    FILE *info = fopen("/proc/cpuinfo", "re");
    char line[256];
    char *model = NULL;

    while (info != NULL && model == NULL && fgets(line, sizeof line, info) != NULL) {
        if (strncmp(line, "model name", strlen("model name")) == 0)
            model = strchr(line, ':');
    }
    if (info != NULL)
        fclose(info);
    if (model != NULL) {
        model[strcspn(model, "\n")] = '\0';
        fprintf(file, "%s,", model + 2);
    }
    fprintf(file, " %ld MiB of last-level cache, %ld GiB of memory.\n",
            sysconf(_SC_LEVEL3_CACHE_SIZE) >> 20,
            (sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE)) >> 20);
}

int page_plot_by_gnuplot(const char *script, const char *data, const char *plot_file)
{
    char settings[2 * PATH_MAX];
    char path[PATH_MAX];
    char *const arguments[] = {(char[]){"gnuplot"}, (char[]){"-e"}, settings, path, NULL};
    struct command command = {
        .arguments = arguments,
        .cpus = 1,
        .seconds_max = GNUPLOT_SECONDS_MAX,
    };
    struct command_result result;

    snprintf(settings, sizeof settings, "data = '%s'; plot_file = '%s'", data, plot_file);
    snprintf(path, sizeof path, "%s", script);
    return command_run_and_read_figures(&command, &result);
}
