/* A service with a pipeline in a test kit, whose requests say how they are to be answered.
 *
 * A request is a line "HOW MS TEXT". It is answered with TEXT:
 *
 *   now     in the same turn
 *   slice   in the same turn, as a slice of the request itself
 *   sleep   when the conversation has slept MS
 *   near    by asking a helper actor on the same thread, which sleeps MS
 *   far     by asking a helper actor on another thread, which sleeps MS
 *   fnear   by forwarding the request to the helper of `near`; ffar: to the helper of `far`
 *   keep    by keeping the ask and answering it MS later
 *   kfwd    by keeping the ask and forwarding it in the same turn; kffar: MS later
 *   twice   by a reply, after which a second answer is refused
 *   take    by a reply with the bytes of the request, after domus_take()
 *   both    by a reply, after a forward that is refused
 *   stash   by a reply, after a stash that is refused
 *
 * It fails: with `err` by the result -EBADMSG, with `fail` by domus_fail(-EPERM), with `none`
 * because the handler gives no answer, with `late` by the result -EBADMSG after a sleep of MS, with
 * `ferr` by the actor to which it is forwarded, with `odd` because the stage does not know the type
 * of the answer, and with `line` because the answer contains a line end. `hang` is never answered,
 * and `fhang` never by the actor to which it is forwarded. `reset`, `close` and `finish` do that to
 * the channel, and check that the request is still readable.
 *
 * A line may begin with a sign: "!" is alone (DOMUS_ALONE), "+" outlives the connection
 * (DOMUS_OUTLIVES), "?" has a type for which the channel has no row, "%" is a notice, "$" makes the
 * stage report wrong bytes, and "&" makes the stage send "&\n" while it decodes. */
#ifndef DOMT_PIPES_H
#define DOMT_PIPES_H

#include <domus/domus.h>
#include <domus/testkit_net.h>

#define DOMT_PIPE_MS     UINT64_C(1000000)
#define DOMT_PIPE_SECOND (1000 * DOMT_PIPE_MS)
#define DOMT_PIPE_AT     "127.0.0.1:80"
/* size of the answer to "huge" in bytes; its byte i is 'a' + i / 1000 % 26 */
#define DOMT_PIPE_HUGE 600000u

/* Counts of the service with a pipeline, since the last domt_pipes_new_kit(). */
typedef struct domt_pipes {
    /* helper actors that answer for the channels, on their thread and on another one */
    domus_address near, far;
    _Atomic uint32_t begun;     /* number of requests that a handler got */
    _Atomic uint32_t resumed;   /* number of conversations that slept until the sleep was over */
    _Atomic uint32_t cancelled; /* number of conversations whose sleep was cancelled */
    _Atomic uint32_t notices;   /* number of notices that the service handled */
    /* number of notices that domus_message_take() has taken and sent on */
    _Atomic uint32_t taken;
    _Atomic uint32_t kept_replies; /* number of kept asks whose reply was accepted */
    _Atomic uint32_t helped;       /* number of asks that the helper actors got */
    /* deadline of the last ask that a helper actor got; 0: it had none */
    _Atomic uint64_t deadline_ns;
    _Atomic uint32_t opened, closed; /* number of channels that were opened, and that were closed */
    bool is_kit;
    int close_error;       /* error of the last channel that was closed */
    domus_address channel; /* address of the channel that was opened last */
} domt_pipes;

extern domt_pipes domt_pipes_now;

/* Options of domt_pipe_stage. */
typedef struct domt_pipe_options {
    bool has_ids; /* each line begins with the id of its request and ":", also an answer */
    /* the stage cannot write failures as text, so a failed request ends the channel */
    bool no_fail;
    const char *hello; /* text that the stage sends when the channel opens; NULL: none */
} domt_pipe_options;

extern const domus_stage domt_pipe_stage;
extern const domus_pipeline domt_pipe_pipeline;
/* a pipeline whose lines begin with an id, as in "7:now 0 a" */
extern const domus_pipeline domt_pipe_by_id;

/* type of a notice from the peer; its payload is a domus_packet */
extern const domus_type domt_note_type;

/* Behaviours of channels with domt_pipe_stage; the conversations of domt_pipe_framed have a frame,
 * those of domt_pipe_plain have none. */
extern const domus_behaviour domt_pipe_plain, domt_pipe_framed;

/* Fill in the configuration that kits with this service have. */
void domt_pipes_make_config(domus_config *ret_config);

/* The address at which the service of the next kit listens; at first DOMT_PIPE_AT. */
extern const char *domt_pipe_at;

/* Make a test kit of three threads in which channels of `behaviour` are served at domt_pipe_at. If
 * `config` is NULL, the kit has the configuration of domt_pipes_make_config(). */
domus_testkit *domt_pipes_new_kit(const domus_config *config, const domus_behaviour *behaviour,
                                  uint64_t seed);

/* Make the two helper actors on these threads of any system, for channels that are not served in a
 * kit. Then `close_error` and `channel` of domt_pipes_now are not set. */
void domt_pipes_spawn_helpers(domus_system *system, uint32_t near, uint32_t far);

/* Connect a peer to the service at domt_pipe_at. */
domus_peer *domt_pipes_connect_peer(domus_testkit *kit);

/* Let the peer send text, or check that exactly this text comes next. */
void domt_pipes_peer_send(domus_testkit *kit, domus_peer *peer, const char *text);
void domt_pipes_peer_expect(domus_testkit *kit, domus_peer *peer, const char *text);

/* Stop the system of the kit, check that no channel, buffer or queued byte is left, and free the
 * kit. */
void domt_pipes_end_kit(domus_testkit *kit);

/* --- the same with the kit that was made last ------------------------------------------------- */

extern domus_testkit *domt_pipe_kit;
domus_system *domt_pipe_system_of_kit(void);

/* Make a test kit with the service, and connect a peer to it; domt_pipe_connect_peer() connects one
 * more peer to the same kit. */
domus_peer *domt_pipe_begin_kit(const domus_config *config, const domus_behaviour *behaviour,
                                uint64_t seed);
/* a kit whose behaviour is domt_pipe_framed with this pipeline */
domus_peer *domt_pipe_begin_kit_with_pipeline(const domus_pipeline *pipeline);
domus_peer *domt_pipe_connect_peer(void);

/* Returns a configuration as domt_pipes_make_config() fills it in. */
domus_config domt_pipe_default_config(void);

/* Let the peer send this text. */
void domt_pipe_peer_send_text(domus_peer *peer, const char *text);

/* Check that exactly this text comes next to the peer. */
void domt_pipe_peer_expect_text(domus_peer *peer, const char *text);

/* Let the peer send `said`, and check that exactly `heard` comes next. */
void domt_pipe_peer_send_and_expect(domus_peer *peer, const char *said, const char *heard);

/* Run the newest kit until nothing is left to do now. */
void domt_pipe_run_kit(void);

/* Let `ns` pass on the clock of the newest kit. */
void domt_pipe_pass_time(uint64_t ns);

/* Stop the channel that opened last. */
void domt_pipe_stop_channel(void);

/* End the newest kit, with the checks of domt_pipes_end_kit(). */
void domt_pipe_end_kit(void);

/* Let the peer close its connection, and end the newest kit. */
void domt_pipe_close_peer_and_end_kit(domus_peer *peer);

/* Let the peer send FIN, check that its connection then ends, and end the newest kit. */
void domt_pipe_finish_peer_and_end_kit(domus_peer *peer);

/* Check that the peer's connection ends, let the peer close it, and end the newest kit. */
void domt_pipe_expect_end_and_end_kit(domus_peer *peer);

/* Stop the system of the newest kit and free the kit, without the checks of domt_pipes_end_kit();
 * for kits with channels of other services. */
void domt_pipe_free_kit(void);

#endif
