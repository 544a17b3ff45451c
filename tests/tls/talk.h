/* Two sides of TLS that talk in memory: the bytes of each are fed to the other, in pieces. Behind
 * TLS stand lines: a request of the client is answered by the server with the same line. */
#ifndef DOMT_TALK_H
#define DOMT_TALK_H

#include <domus/tls.h>

#include "tests/support/stages.h"
#include "tests/tls/pki.h"

typedef struct domt_side {
    domus_tls_options options;
    domus_pipeline_stage stages[3];
    domus_pipeline pipeline;
    domus_stage_kit *kit;
    bool is_server;
    bool over; /* it has ended its output */
    int error; /* with which decoding has ended; 0: it has not */
    uint32_t messages;
    char last[65536]; /* the text of the last message */
} domt_side;

/* Make the server's or the client's side. Returns what domus_stage_kit_new() has. */
int domt_side_open(domt_side *side, domus_tls *tls, const char *host);

/* Make a client whose connection was made to this server; `host` may be NULL. */
int domt_side_open_to(domt_side *side, domus_tls *tls, const char *host, const char *server,
                      uint16_t port);
void domt_side_close(domt_side *side);

/* Give bytes to a side in pieces of `step` (0: all at once), and let it decode. When it fails it
 * ends its output, as a channel does. */
void domt_side_feed(domt_side *side, const char *bytes, size_t size, size_t step);

/* Send a line. */
void domt_side_say(domt_side *side, const char *line);

/* The same. Returns 0, or what the stages returned. */
int domt_side_try(domt_side *side, const char *line);

/* Carry bytes between both, until neither has any. */
void domt_talk(domt_side *one, domt_side *other, size_t step);

/* Take what a side has for its peer: a copy, which the caller frees. */
char *domt_side_take(domt_side *side, size_t *ret_size);

domus_tls_info domt_side_info(domt_side *side);

/* Make a context, which has to work. */
domus_tls *domt_tls(const domus_tls_settings *settings);

/* The settings of a server with one certificate of the authority. */
domus_tls_settings domt_server_settings(const domt_pki *pki, const char *file);
domus_tls_settings domt_client_settings(const domt_pki *pki);

#endif
