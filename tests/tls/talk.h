/* Two sides of TLS, a client and a server, in memory: the output of each is fed to the other in
 * pieces. Behind TLS is a stage of lines: the server answers each line of the client with the same
 * line. */
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
    bool over; /* whether the side has ended its output */
    int error; /* error with which the side's decoding has ended; 0: it has not ended */
    uint32_t messages;
    char last[65536]; /* the text of the side's last message */
} domt_side;

/* Make the server's or the client's side, by the role of `tls`. Returns as
 * domus_stage_kit_new(). */
int domt_side_open_by_role(domt_side *side, domus_tls *tls, const char *host);

/* Make a client's side whose connection was made to `server` and `port`. The certificate must have
 * the name `host`; NULL: the name `server`. */
int domt_side_open_client_to(domt_side *side, domus_tls *tls, const char *host, const char *server,
                             uint16_t port);
void domt_side_close_connection(domt_side *side);

/* Feed bytes to a side in pieces of `step` bytes (0: all at once), and let it decode them. After an
 * error it ends its output, as a channel does. */
void domt_side_feed_in_pieces(domt_side *side, const char *bytes, size_t size, size_t step);

/* Send a line from a side, and check that this succeeds. */
void domt_side_send_line(domt_side *side, const char *line);

/* Send a line from a side. Returns 0, or the error of the stages. */
int domt_side_try_to_send_line(domt_side *side, const char *line);

/* Carry bytes between both sides until neither has more. */
void domt_side_exchange_bytes_with_other(domt_side *one, domt_side *other, size_t step);

/* Take the output of a side: a copy, which the caller frees. */
char *domt_side_take_output(domt_side *side, size_t *ret_size);

domus_tls_info domt_side_tls_info(domt_side *side);

/* Make a context with these settings, and check that this succeeds. */
domus_tls *domt_make_tls_context(const domus_tls_settings *settings);

/* Returns the settings of a server with one certificate of the authority. */
domus_tls_settings domt_make_server_settings(const domt_pki *pki, const char *file);
domus_tls_settings domt_make_client_settings(const domt_pki *pki);

#endif
