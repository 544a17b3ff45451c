/* The answers of the observation port, by their paths; viewer.h, live.h, sets.h and site.c have the
 * others. */
#ifndef DOMI_PROTOCOLS_OBSERVE_PAGES_H
#define DOMI_PROTOCOLS_OBSERVE_PAGES_H

#include "protocols/observe/viewer.h"

#include <domus/config.h>
#include <domus/config_shown.h>
#include <domus/domus.h>
#include <domus/http.h>
#include <domus/http_router.h>

#include <stdbool.h>

/* ---- page.c -----------------------------------------------------------------------------------*/

/* The live page, which the build has assembled (page/page.cmake). */

typedef struct domi_page {
    const unsigned char *plain; /* HTML that contains its style and script */
    size_t plain_size;
    const unsigned char *packed; /* the same HTML, compressed by gzip */
    size_t packed_size;
    const char *policy; /* the Content-Security-Policy, which forbids any other script */
} domi_page;

extern const domi_page domi_observe_page;

/* Handle a request for / of a viewer: one that accepts HTML gets the page, and others get a list of
 * all paths. */
int domi_observe_serve_page(domus_stack *stack, void *self, const void *payload);

/* ---- level.c ----------------------------------------------------------------------------------*/

/* How much the observed system measures (profile.level), and changes of that level. */

/* Returns the word of a level, as in the configuration. */
const char *domi_observe_level_name(domus_profile_level level);

/* Raise the level to spans for a trace, and set it back. A viewer that changes the level in between
 * changes the one that is set back, and a level that the program itself sets stays. Thread-safety:
 * the port's thread. */
void domi_observe_level_raise(void);
void domi_observe_level_put_back(void);

/* Handle POST /profile?level=WORD for a viewer. */
int domi_observe_serve_level(domus_stack *stack, void *self, const void *payload);

/* ---- change.c ---------------------------------------------------------------------------------*/

/* PUT /config/KEY: changes a live key of the configuration while the program runs. */

/* Answer a request whose body is the value; `key` has the form of an assignment. Returns 0 or a
 * negative errno. */
int domi_observe_serve_change(domus_stack *stack, const domus_http_request *request,
                              domus_slice key);

/* A configuration with its own list of listeners. */
typedef struct domi_present {
    domus_config config; /* the configuration, whose `listeners` points to the list below */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
} domi_present;

/* Copy the current configuration of the observed system. */
void domi_observe_read_present(domi_present *ret_present);

/* ---- config.c ---------------------------------------------------------------------------------*/

/* The configuration of the observed program as JSON: each key, its value, and the origin of the
 * value. */

/* Show from now on the keys of `from` that `walk` visits. Any thread that opens the port may call
 * this while it is open. Returns 0; -ENOMEM. */
int domi_observe_set_config(domus_config_walk *walk, const void *from);

/* Free the configuration that was handed over, after the system of the port has stopped. */
void domi_observe_forget_config(void);

/* Handle GET /config for a viewer. */
int domi_observe_serve_config(domus_stack *stack, void *self, const void *payload);

/* ---- log.c ------------------------------------------------------------------------------------*/

/* The log of the observed program for viewers: its last lines, further lines as they come, and
 * changes of its level. */

/* Handle GET /log and POST /log?level=WORD for a viewer. */
int domi_observe_serve_log(domus_stack *stack, void *self, const void *payload);
int domi_observe_serve_log_level(domus_stack *stack, void *self, const void *payload);

/* Returns whether a request for /log asks to follow the log, so that the answer lasts until the
 * viewer goes away. */
bool domi_observe_wants_to_follow(const domus_http_request *request);

/* Free the place of a viewer that is gone. */
void domi_observe_stop_following(domi_follow *follow);

/* ---- stalls.c ---------------------------------------------------------------------------------*/

/* The last stalls of the observed system as JSON. */

/* Write the last stalls as {"stalls": [...]}. This reads files. Returns 0; -ENOMEM; -ECHILD.
 * Ownership: the slice is the caller's. */
int domi_observe_stalls(domus_system *system, domus_slice *ret_text);

/* Handle GET /stalls for a viewer. */
int domi_observe_serve_stalls(domus_stack *stack, void *self, const void *payload);

/* ---- visit.c ----------------------------------------------------------------------------------*/

/* /doctor: tells in sentences, after some seconds of observation, what is wrong with the
 * program. */

struct domi_visit;

/* Handle GET /doctor for a viewer. */
int domi_observe_serve_doctor(domus_stack *stack, void *self, const void *payload);

/* Free the place of a visit, if it has one. Thread-safety: the port's thread. */
void domi_visit_leave(struct domi_visit *visit);

#endif
