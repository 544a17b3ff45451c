/* Handlers of the observation port for the paths of its pages; viewer.h, live.h, sets.h and site.c
 * have the others. */
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

/* The live page of the port, which the build has assembled from its parts (page/page.cmake). */

typedef struct domi_page {
    const unsigned char *plain; /* HTML of the live page, with its style and script inside */
    size_t plain_size;
    const unsigned char *packed; /* the HTML of the live page, compressed by gzip */
    size_t packed_size;
    /* the Content-Security-Policy of the live page, which forbids any script but its own */
    const char *policy;
} domi_page;

extern const domi_page domi_observe_page;

/* Handle a viewer's request for /. A viewer that accepts HTML gets the live page, and any other
 * gets a list of all paths. */
int domi_observe_serve_live_page(domus_stack *stack, void *self, const void *payload);

/* ---- level.c ----------------------------------------------------------------------------------*/

/* How much the observed system measures (profile.level), and changes of that level. */

/* Returns the word for a profile level, as in the configuration. */
const char *domi_observe_word_of_level(domus_profile_level level);

/* Raise the profile level to spans for a trace, and set it back at the trace's end. If a viewer
 * changes the level in between, its level is the one that is set at the end; a level that the
 * program itself sets in between stays. Thread-safety: the port's thread. */
void domi_observe_raise_level_for_trace(void);
void domi_observe_restore_level(void);

/* Handle a viewer's POST /profile?level=WORD. */
int domi_observe_serve_level_change(domus_stack *stack, void *self, const void *payload);

/* ---- change.c ---------------------------------------------------------------------------------*/

/* PUT /config/KEY: changes a live key of the configuration while the program runs. */

/* Answer a request to change the key `key` to the value in its body. Returns 0 or a negative
 * errno. */
int domi_observe_serve_change(domus_stack *stack, const domus_http_request *request,
                              domus_slice key);

/* The current configuration of the observed system, with its own list of listeners. */
typedef struct domi_present {
    domus_config config; /* the configuration; its `listeners` points to the member below */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
} domi_present;

/* Copy the current configuration of the observed system. */
void domi_observe_copy_current_config(domi_present *ret_present);

/* ---- config.c ---------------------------------------------------------------------------------*/

/* The configuration of the observed program as JSON: each key, its value, and the origin of the
 * value. */

/* Let /config show from now on the keys and values of `from` that `walk` visits. Any thread that
 * opens the port may call this while the port is open. Returns 0; -ENOMEM. */
int domi_observe_hand_over_shown_config(domus_config_walk *walk, const void *from);

/* Free the configuration that was handed over for /config, after the system of the port has
 * stopped. */
void domi_observe_free_shown_config(void);

/* Handle a viewer's GET /config. */
int domi_observe_serve_config(domus_stack *stack, void *self, const void *payload);

/* ---- log.c ------------------------------------------------------------------------------------*/

/* The log of the observed program for viewers: its last lines, further lines as they come, and
 * changes of its level. */

/* Handle a viewer's GET /log and POST /log?level=WORD. */
int domi_observe_serve_log(domus_stack *stack, void *self, const void *payload);
int domi_observe_serve_log_level_change(domus_stack *stack, void *self, const void *payload);

/* Returns whether a request for /log asks to follow the log, so that the answer lasts until the
 * viewer goes away. */
bool domi_observe_wants_to_follow_log(const domus_http_request *request);

/* Free the place of a viewer that follows the log, if it has one, because it is gone. */
void domi_observe_free_place_in_log(domi_follow *follow);

/* ---- stalls.c ---------------------------------------------------------------------------------*/

/* The last stalls of the observed system as JSON. */

/* Write the last stalls as {"stalls": [...]}. This reads files. Returns 0; -ENOMEM; -ECHILD.
 * Ownership: the slice is the caller's. */
int domi_observe_write_stalls_json(domus_system *system, domus_slice *ret_text);

/* Handle a viewer's GET /stalls. */
int domi_observe_serve_stalls(domus_stack *stack, void *self, const void *payload);

/* ---- visit.c ----------------------------------------------------------------------------------*/

/* /doctor: tells in sentences, after some seconds of observation, what is wrong with the
 * program. */

struct domi_visit;

/* Handle a viewer's GET /doctor. */
int domi_observe_serve_doctor(domus_stack *stack, void *self, const void *payload);

/* Free the place of a visit to the doctor, if it has one. Thread-safety: the port's thread. */
void domi_visit_free_its_place_and_look(struct domi_visit *visit);

#endif
