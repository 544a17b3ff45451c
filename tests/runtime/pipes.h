/* A service with a pipeline in a test kit, whose requests say how they are answered.
 *
 * A request is a line "HOW MS TEXT". Its answer is TEXT, and comes
 *
 *   now     in the same turn
 *   slice   in the same turn, in a slice of the request itself
 *   sleep   when the conversation has slept MS
 *   near    by an ask to an actor of the thread, far of another one, which sleeps MS
 *   fnear   by a forward to it, ffar likewise
 *   keep    by a kept ask, MS later
 *   kfwd    by a kept ask that is forwarded in the same turn, kffar MS later
 *   twice   by two replies, of which the second one has nothing to answer
 *   take    by a reply after domus_take()
 *   both    by a forward that is refused, and then by a reply
 *
 * or fails: `err` by the result -EBADMSG, `fail` by domus_fail(-EPERM), `none` because it ends
 * without an answer, `late` by the result -EBADMSG when it has slept MS, `ferr` by the actor to
 * which it is forwarded, `odd` because the answer has a type that the stage does not know, `line`
 * because its answer has a line end in it. `hang` is never answered, `fhang` neither by an actor.
 * `stash` holds that it cannot be stashed. `reset`, `close` and `finish` do that to the channel,
 * and then look at the request. A line that begins with "!" is alone, with "+" it outlives the
 * connection, with "?" it has a type without a row, with "%" it is a notice, with "$" the stage
 * says that the bytes are wrong, and with "&" it appends "&\n" in `decode`. */
#ifndef DOMT_PIPES_H
#define DOMT_PIPES_H

#include <domus/domus.h>
#include <domus/testkit_net.h>

#define DOMT_PIPE_MS     UINT64_C(1000000)
#define DOMT_PIPE_SECOND (1000 * DOMT_PIPE_MS)
#define DOMT_PIPE_AT     "127.0.0.1:80"
#define DOMT_PIPE_HUGE   600000u /* bytes of the answer "huge": byte i is 'a' + i / 1000 % 26 */

/* Counts of the conversations of a kit, since domt_pipes_kit(). */
typedef struct domt_pipes {
    domus_address near, far;       /* actors that answer for the channels */
    _Atomic uint32_t begun;        /* requests that a handler got */
    _Atomic uint32_t resumed;      /* conversations that slept, and whose sleep ended in time */
    _Atomic uint32_t cancelled;    /* conversations that were cancelled */
    _Atomic uint32_t notices;      /* notices that were handled */
    _Atomic uint32_t taken;        /* notices that came back as messages (domus_message_take()) */
    _Atomic uint32_t kept_replies; /* kept asks that were answered while they were still known */
    _Atomic uint32_t helped;       /* asks that the helping actors got */
    /* deadline of the last ask that a helping actor got; 0: none */
    _Atomic uint64_t deadline_ns;
    _Atomic uint32_t opened, closed; /* channels that were opened, and that were closed */
    bool is_kit;
    int close_error;       /* error of the last close */
    domus_address channel; /* the channel that was opened last */
} domt_pipes;

extern domt_pipes domt_pipes_now;

/* Options of the stage. */
typedef struct domt_pipe_options {
    bool has_ids;      /* a line begins with its id and ":", and so does its answer */
    bool no_fail;      /* the stage has no text for failures */
    const char *hello; /* text that `open` appends */
} domt_pipe_options;

extern const domus_stage domt_pipe_stage;
extern const domus_pipeline domt_pipe_pipeline;
extern const domus_pipeline domt_pipe_by_id; /* messages begin with an id: "7:now 0 a" */

extern const domus_type domt_note_type; /* a notice; its payload is a domus_packet */

/* Behaviours of channels with this stage; the rows of the second have frames. */
extern const domus_behaviour domt_pipe_plain, domt_pipe_framed;

/* Fill in the configuration of kits with this service. */
void domt_pipes_configure(domus_config *ret_config);

/* The address at which the next kit listens; DOMT_PIPE_AT, if a test sets no other. */
extern const char *domt_pipe_at;

/* Make a kit of three threads that serves `behaviour` at domt_pipe_at. NULL: the configuration is
 * that of domt_pipes_configure(). */
domus_testkit *domt_pipes_kit(const domus_config *config, const domus_behaviour *behaviour,
                              uint64_t seed);

/* Make the actors that answer, on these threads of any system, for a behaviour that is served in no
 * kit. Then `close_error` and `channel` are not set. */
void domt_pipes_helpers(domus_system *system, uint32_t near, uint32_t far);

/* Connect a peer to the service. */
domus_peer *domt_pipes_peer(domus_testkit *kit);

/* Send text, and check that this text comes back, and no other before it. */
void domt_pipes_send(domus_testkit *kit, domus_peer *peer, const char *text);
void domt_pipes_expect(domus_testkit *kit, domus_peer *peer, const char *text);

/* Stop the system, check that nothing is left, and free the kit. */
void domt_pipes_end(domus_testkit *kit);

/* --- the same with the kit that was made last ------------------------------------------------- */

extern domus_testkit *domt_pipe_kit;
domus_system *domt_pipe_system(void);

/* Make the kit, and connect a peer; or connect another peer. */
domus_peer *domt_pipe_begin(const domus_config *config, const domus_behaviour *behaviour,
                            uint64_t seed);
/* serves a behaviour with frames and this pipeline */
domus_peer *domt_pipe_begin_with(const domus_pipeline *pipeline);
domus_peer *domt_pipe_peer(void);

/* Returns the configuration that domt_pipes_configure() fills in. */
domus_config domt_pipe_config(void);

/* Send text; check that this text comes; or do both. */
void domt_pipe_say(domus_peer *peer, const char *text);
void domt_pipe_hear(domus_peer *peer, const char *text);
void domt_pipe_talk(domus_peer *peer, const char *said, const char *heard);

/* Run until nothing is left to do now; let time pass; or stop the channel that opened last. */
void domt_pipe_run(void);
void domt_pipe_pass(uint64_t ns);
void domt_pipe_stop(void);

/* End the kit as domt_pipes_end() does: at once; when the peer has closed; when it has finished and
 * sees the end of the channel; or when it sees that end and closes. */
void domt_pipe_end(void);
void domt_pipe_close(domus_peer *peer);
void domt_pipe_finish(domus_peer *peer);
void domt_pipe_ends(domus_peer *peer);

/* Stop the system and free a kit whose actors are not those of this service. */
void domt_pipe_free(void);

#endif
