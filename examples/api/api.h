/* A bug tracker: what its files share. README.md says how to try it.
 *
 * A request goes this way. The channel of its connection takes it through the chain (site.c): a
 * name for the request, a line of the log, a bound on its rate, its session. The row of its path
 * calls a handler (issues.c, people.c, files.c, events.c), which asks the database and goes on when
 * the rows are there. Nothing here blocks, and nothing is locked: a handler runs on the thread of
 * its connection, and all that connections share is constant, or an actor.
 *
 * To make a service of your own of it, keep main.c and site.c, and replace what is behind. */
#ifndef API_H
#define API_H

#include <domus/domus.h>
#include <domus/http_access.h>
#include <domus/http_chain.h>
#include <domus/http_files.h>
#include <domus/json.h>
#include <domus/sql.h>

#define API_FRAME_MAX 512u /* bytes that a request keeps while it waits */
#define API_NAME_SIZE 65u  /* of a person, with a zero at its end */
#define API_TITLE_MAX 200u /* bytes */
#define API_BODY_MAX  10000u
#define API_PAGE_MAX  100u /* issues of one answer */

/* The section `api` of the configuration. */
struct api_settings {
    char database[512]; /* "sqlite:tracker.db" or "postgresql://..." */
    char keys[256];     /* the file with the keys that sign sessions; "": one for this run alone */
    char pages[256];    /* the directory of the page */
    char uploads[256];  /* the directory of uploaded files */
    char access_log[256]; /* "": none */
    uint64_t upload_max;  /* bytes of one file */
    uint32_t rate;        /* requests of one address a second */
    uint32_t connections; /* to the database: of each thread, or of the process with SQLite */
    bool https;           /* cookies are sent over https alone */
};

/* Constant once the program has started. */
extern struct api_settings api_settings;
extern domus_sql api_database;
extern domus_address api_board; /* the actor of events.c */

/* --- the parts, each by its file -------------------------------------------------------------- */

extern const domus_sql_migration api_migrations[]; /* schema.c */

/* site.c */
extern const domus_behaviour api_site;
extern domus_http_access api_access;
void api_site_begin(void); /* the settings are known */
void api_site_end(void);   /* the system has stopped */

/* people.c */
extern const domus_http_part api_session, api_wants_person;
int api_people_begin(char *words, size_t words_size);
domus_http_handler api_login, api_logout;

/* issues.c */
domus_http_handler api_list_issues, api_show_issue, api_create_issue, api_change_issue;

/* files.c */
extern domus_http_files api_pages, api_uploads;
domus_http_handler api_list_files, api_add_file, api_show_file, api_show_page;

/* events.c */
extern const domus_behaviour api_board_behaviour;
domus_http_handler api_stream_events;
void api_tell(domus_stack *stack, int64_t issue); /* all pages: it is new, or has changed */

/* --- requests and answers (answers.c) --------------------------------------------------------- */

/* The number of the issue in the path. Returns false if it is none. */
bool api_issue_number(const domus_http_match *match, int64_t *ret_id);

/* Who asks, as the session says; valid until the handler returns. */
const char *api_user(domus_stack *stack, const domus_http_request *request);

/* The time in milliseconds since 1970. */
int64_t api_now_ms(void);

/* The functions below answer, and return as a handler does. */

/* Read the body of a request, which is JSON, into a struct. Returns true; or false when the request
 * was refused, with the path of what is wrong: then the handler returns `*ret_result`. */
bool api_read(domus_stack *stack, const domus_http_request *request, const domus_json_table *table,
              void *ret_value, domus_json_memory *ret_memory, int *ret_result);

/* A struct as JSON, with a Location if it is not NULL. */
int api_answer(domus_stack *stack, uint16_t status, const domus_json_table *table,
               const void *value, const char *location);

/* A refusal, as problem details (RFC 9457). */
int api_refuse(domus_stack *stack, uint16_t status, const char *words);

/* A failure of the database: 503 when it is busy or away, else 500. Its words go to the log, and
 * not to strangers. */
int api_fail(domus_stack *stack, int error, const domus_answer *answer);

#endif
