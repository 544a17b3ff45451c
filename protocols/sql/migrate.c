/* Migrations: an actor does the steps of a table that the database has not noted as done, each in a
 * transaction that holds a lock. So programs that begin at the same time wait for each other. The
 * actor is made for one table, is asked once, and stops when it has answered. */
#include "protocols/sql/sql.h"

#include <domus/await.h>
#include <domus/spawn.h>
#include <domus/system.h>

#include <stdio.h>

#define NAME_MAX_BYTES 127u

/* The ask to the migration's actor: the steps that it has to do, and the database. */
struct job {
    domus_sql sql;
    const domus_sql_migration *steps;
};

static const domus_type job_type = {.name = "sql_migrate", .size = sizeof(struct job)};

struct frame {
    struct job job;
    domus_sql transaction;
    bool is_postgresql;
    /* number of steps of the table that the database had noted as done, or that this actor has
     * done */
    uint32_t done;
    uint64_t count; /* number of steps that this actor has done now */
    int error;
};

/* State of the actor that does a migration. */
struct migrator {
    /* the error with which the database has answered; its `error` is 0 if there was none */
    domus_sql_error failure;
};

static const domus_sql_statement lock_postgresql = {.text =
                                                        "SELECT pg_advisory_xact_lock(4842013717)"};
static const domus_sql_statement note = {
    .text = "INSERT INTO domus_migrations (position, name) VALUES ($1, $2)"};
static const domus_sql_statement noted = {
    .text = "SELECT name FROM domus_migrations ORDER BY position"};
static const char table[] = "CREATE TABLE IF NOT EXISTS domus_migrations ("
                            "position BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE)";

/* Returns the text of a migration's step in the SQL of this database. */
static const char *sql_text_of_step(const domus_sql_migration *step, bool is_postgresql)
{
    const char *own = is_postgresql ? step->postgresql : step->sqlite;

    return own != NULL ? own : step->text;
}

/* Record the error with which an answer of the database fails the migration. Returns its negative
 * errno; 0 if the answer is no failure. */
static int record_failure_of_answer(struct migrator *migrator, struct frame *frame,
                                    const domus_answer *answer)
{
    const domus_sql_result *result;
    int error = domus_sql_result_of(answer, &result);

    if (answer->error == 0 && answer->type == &domus_sql_begun_type)
        error = 0;
    if (error == 0)
        return 0;
    frame->error = error;
    const domus_sql_error *failure = domus_sql_error_of(answer);
    if (failure != NULL)
        migrator->failure = *failure;
    return error;
}

/* Compare the steps that the database has noted with the table of the migration. Returns 0 and sets
 * `done`; -EINVAL if they differ. */
static int check_noted_steps_and_count_them(struct migrator *migrator, struct frame *frame,
                                            const domus_answer *answer)
{
    const domus_sql_result *result = answer->payload;

    for (uint32_t row = 0; row < result->rows; row++) {
        domus_sql_value name = domus_sql_cell(result, row, 0);
        const char *step = frame->job.steps[row].name;

        if (step == NULL || name.kind != DOMUS_SQL_TEXT || name.size != strlen(step) ||
            memcmp(name.as.bytes, step, name.size) != 0) {
            migrator->failure = domus_sql_error_make(
                -EINVAL, "", "migration %u of the database is \"%.*s\", and not \"%s\"", row + 1,
                (int)(name.kind == DOMUS_SQL_TEXT ? name.size : 0),
                name.kind == DOMUS_SQL_TEXT ? (const char *)name.as.bytes : "",
                step != NULL ? step : "(none)");
            return frame->error = -EINVAL;
        }
    }
    frame->done = result->rows;
    return 0;
}

/* Answer the ask for the migration with the recorded failure, and stop the actor. */
static int answer_with_failure_and_stop(domus_stack *stack, const struct migrator *migrator,
                                        const struct frame *frame)
{
    domus_sql_error failure = migrator->failure;
    uint32_t step = frame->done;

    (void)domus_stop(stack, domus_self(stack));
    if (failure.error == 0)
        return frame->error;
    if (frame->job.steps[step].name != NULL && failure.sqlstate[0] != '\0')
        failure =
            domus_sql_error_make(failure.error, migrator->failure.sqlstate, "migration \"%s\": %s",
                                 frame->job.steps[step].name, migrator->failure.message);
    return domus_reply(stack, &domus_sql_error_type, &failure);
}

DOMUS_SEQUENCE(migrate, struct frame)
{
    struct migrator *migrator = self;

    DOMUS_BEGIN;
    frame->job = *(const struct job *)message;
    DOMUS_AWAIT(domus_ask(stack, frame->job.sql.at, &domus_sql_who_type, NULL, then));
    if (answer->error != 0 || answer->type != &domus_sql_driver_type) {
        frame->error = answer->error != 0 ? answer->error : -EPROTO;
        return answer_with_failure_and_stop(stack, migrator, frame);
    }
    frame->is_postgresql =
        strcmp((*(const domus_sql_driver *const *)answer->payload)->name, "postgresql") == 0;
    do {
        DOMUS_AWAIT(domus_sql_begin(stack, frame->job.sql, NULL, then));
        if (record_failure_of_answer(migrator, frame, answer) != 0)
            return answer_with_failure_and_stop(stack, migrator, frame);
        (void)domus_sql_transaction_of(answer, &frame->transaction);
        if (frame->is_postgresql) {
            DOMUS_AWAIT(
                domus_sql_query(stack, frame->transaction, &lock_postgresql, NULL, 0, then));
            if (record_failure_of_answer(migrator, frame, answer) != 0)
                break;
        }
        DOMUS_AWAIT(domus_sql_script(stack, frame->transaction, table, then));
        if (record_failure_of_answer(migrator, frame, answer) != 0)
            break;
        DOMUS_AWAIT(domus_sql_query(stack, frame->transaction, &noted, NULL, 0, then));
        if (record_failure_of_answer(migrator, frame, answer) != 0 ||
            check_noted_steps_and_count_them(migrator, frame, answer) != 0)
            break;
        if (frame->job.steps[frame->done].name != NULL) {
            DOMUS_AWAIT(domus_sql_script(
                stack, frame->transaction,
                sql_text_of_step(&frame->job.steps[frame->done], frame->is_postgresql), then));
            if (record_failure_of_answer(migrator, frame, answer) != 0)
                break;
            DOMUS_AWAIT(domus_sql_query(
                stack, frame->transaction, &note,
                DOMUS_SQL_VALUES(domus_sql_int(frame->done),
                                 domus_sql_text(frame->job.steps[frame->done].name)),
                then));
            if (record_failure_of_answer(migrator, frame, answer) != 0)
                break;
        }
        DOMUS_AWAIT(domus_sql_commit(stack, frame->transaction, then));
        if (record_failure_of_answer(migrator, frame, answer) != 0)
            return answer_with_failure_and_stop(stack, migrator, frame);
        if (frame->job.steps[frame->done].name == NULL)
            break;
        frame->count++;
        frame->done++;
    } while (true);
    if (frame->error != 0) {
        DOMUS_AWAIT(domus_sql_rollback(stack, frame->transaction, then));
        return answer_with_failure_and_stop(stack, migrator, frame);
    }
    (void)domus_stop(stack, domus_self(stack));
    return domus_reply(stack, &domus_sql_result_type,
                       &(domus_sql_result){.affected = frame->count});
    DOMUS_END;
}

static const domus_behaviour migrator_behaviour = {
    .name = "sql_migrate",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct migrator),
    .on = (const domus_on[]){DOMUS_ON(&job_type, migrate), {0}},
};

/* Returns whether the table of a migration's steps is valid, and `sql` names a database. */
static bool is_valid_migration(domus_sql sql, const domus_sql_migration *steps)
{
    uint32_t count = 0;

    for (; steps[count].name != NULL; count++) {
        const domus_sql_migration *step = &steps[count];

        if (count >= DOMUS_SQL_MIGRATIONS_MAX || strlen(step->name) > NAME_MAX_BYTES ||
            (step->text == NULL && (step->sqlite == NULL || step->postgresql == NULL)))
            return false;
    }
    return sql.transaction == 0;
}

int domus_sql_migrate(domus_stack *stack, domus_sql sql, const domus_sql_migration *migrations,
                      domus_resumed *then)
{
    struct job job = {sql, migrations};
    domus_address address;

    if (!is_valid_migration(sql, migrations))
        return -EINVAL;
    int error = domus_spawn(stack, &migrator_behaviour, NULL, &address);
    if (error != 0)
        return error;
    error = domus_ask(stack, address, &job_type, &job, then);
    if (error < 0)
        (void)domus_stop(stack, address);
    return error;
}

int domus_outside_sql_migrate(struct domus_system *system, domus_sql sql,
                              const domus_sql_migration *migrations, uint64_t timeout_ns,
                              char *words, size_t words_size)
{
    struct job job = {sql, migrations};
    union {
        domus_sql_result result; /* the result of a migration has no rows, so it owns no memory */
        domus_sql_error failure;
    } answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};
    domus_address address;

    if (words_size > 0)
        words[0] = '\0';
    if (!is_valid_migration(sql, migrations))
        return -EINVAL;
    int error = domus_outside_spawn(system, &migrator_behaviour, NULL, &address);
    if (error != 0)
        return error;
    error = domus_outside_ask(system, address, &job_type, &job, timeout_ns, &reply);
    if (error != 0)
        (void)domus_outside_stop(system, address);
    else if (reply.type == &domus_sql_error_type) {
        snprintf(words, words_size, "%s", answer.failure.message);
        error = answer.failure.error;
    }
    return error;
}
