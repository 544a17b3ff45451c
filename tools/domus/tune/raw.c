/* Prints all runs of a search as JSON (tools/domus/tune/parts.h). */
#include "tools/domus/tune/parts.h"

#include <jansson.h>

static const char *const verdicts[TUNE_VERDICTS] = {
    [TUNE_OPEN] = "open",   [TUNE_BETTER] = "better", [TUNE_SAME] = "same",
    [TUNE_KEEPS] = "keeps", [TUNE_BROKEN] = "broken", [TUNE_BASE_LOST] = "ended",
    [TUNE_WORSE] = "worse", [TUNE_BREAKS] = "breaks", [TUNE_FAILS] = "fails",
};

static json_t *make_json_of_candidate_values(const tune_records *records, const tune_point *point)
{
    json_t *values = json_object();

    for (size_t i = 0; i < records->keys->count; i++) {
        const tune_key *key = &records->keys->each[i];
        if (point->choice[i] != 0)
            (void)json_object_set_new(values, key->path,
                                      json_string(key->values[point->choice[i] - 1]));
    }
    return values;
}

static json_t *make_json_of_run(const tune_records *records, const tune_record *record)
{
    const char *stage = record->is_check  ? "check"
                        : record->is_duel ? "duel"
                                          : records->keys->each[record->key].path;
    json_t *figures = json_object();
    json_t *run = json_pack(
        "{s:s, s:I, s:o, s:f}", "stage", stage, "round", (json_int_t)record->round + 1, "values",
        make_json_of_candidate_values(records, &record->point), "seconds", record->seconds);

    for (size_t i = 0; i < record->figures.count && !record->has_failed; i++)
        (void)json_object_set_new(figures, record->figures.each[i].name,
                                  json_real(record->figures.each[i].value));
    (void)json_object_set_new(run, "figures", figures);
    if (record->has_failed)
        (void)json_object_set_new(run, "failed", json_string(record->why));
    if (record->is_first_try)
        (void)json_object_set_new(run, "again", json_true());
    return run;
}

bool tune_report_print_all_runs_as_json(const tune_records *records, FILE *out)
{
    tune_point winner = tune_records_get_winner_or_today(records);
    json_t *runs = json_array();

    for (size_t i = 0; i < records->count; i++)
        (void)json_array_append_new(runs, make_json_of_run(records, &records->each[i]));
    json_t *all = json_pack("{s:s, s:s, s:o, s:s, s:o}", "goal", records->goal, "verdict",
                            verdicts[records->search->verdict], "winner",
                            make_json_of_candidate_values(records, &winner), "unit of times", "s",
                            "runs", runs);
    bool is_written = all != NULL &&
                      json_dumpf(all, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0 &&
                      fputc('\n', out) != EOF;
    json_decref(all);
    return is_written;
}
