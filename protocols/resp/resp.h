/* The state of the RESP stage for a channel, and the functions that its files call of each other.
 *
 * A message that lies whole in the window is parsed where it lies. `at` tells how much of it is
 * parsed, so bytes that come one by one are each parsed only once. A message that is too long for
 * the window is gathered: its bytes are appended as they come, and parsed. */
#ifndef DOMI_PROTOCOLS_RESP_H
#define DOMI_PROTOCOLS_RESP_H

#include <domus/resp.h>

/* A message is gathered if a part of it has not come, and more bytes than this are announced for
 * it. The bound is a quarter of the window, so a connection keeps no more than that for a message
 * that may never be whole. */
#define DOMI_RESP_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

/* Mistakes that make a peer's bytes invalid RESP. The texts that tell people of them are in
 * fail.c. */
typedef enum domi_resp_wrong {
    DOMI_RESP_RIGHT,
    DOMI_RESP_COUNT,  /* the peer's mistake: an invalid number of a command's arguments */
    DOMI_RESP_LENGTH, /* the peer's mistake: a bulk string's length, or the line end behind it */
    DOMI_RESP_MARK,   /* the peer's mistake: an argument begins with another byte than '$' */
    DOMI_RESP_LINE,   /* the peer's mistake: a command of one line is longer than `inline_max` */
    DOMI_RESP_QUOTES,
    DOMI_RESP_SIZE,            /* the peer's mistake: the message is too long */
    DOMI_RESP_STRANGERS_COUNT, /* mistake: too many arguments before the peer has authenticated */
    DOMI_RESP_STRANGERS_LENGTH,
    DOMI_RESP_WRONGS
} domi_resp_wrong;

typedef enum domi_resp_phase {
    DOMI_RESP_HEAD, /* the head of an argument is being gathered */
    DOMI_RESP_BODY,
    DOMI_RESP_TAIL,
} domi_resp_phase;

/* The answers that the peer has silenced by CLIENT REPLY. */
typedef enum domi_resp_silence {
    DOMI_RESP_HEARD,
    DOMI_RESP_SILENT, /* all answers are silenced, until CLIENT REPLY ON */
    DOMI_RESP_SKIPS,  /* only the answer to the next command is silenced */
} domi_resp_silence;

/* The id of a request whose answer is silenced. Answers are encoded in any order, so whether an
 * answer is sent is decided when its request is decoded. */
#define DOMI_RESP_UNHEARD (DOMUS_NO_ID - 1)

typedef struct domi_resp_state {
    domus_resp_options options; /* the options of the stage, with the defaults filled in */
    /* arguments of a command, at most; strangers, who have not authenticated, have a lower limit */
    uint32_t arguments_max;
    uint32_t bulk_max;
    uint32_t quick_max; /* bytes of an argument up to which a command may be decoded quickly */
    bool is_stranger;
    uint8_t silence;      /* domi_resp_silence: which answers the peer has silenced */
    uint8_t version;      /* the version of RESP in which this peer is answered */
    uint8_t wrong;        /* domi_resp_wrong: what is wrong with the peer's bytes */
    char got;             /* the byte that has come in place of '$', for the error's text */
    bool gathering;       /* the current message is gathered: its bytes up to `at` are in `bytes` */
    uint8_t phase;        /* domi_resp_phase: the part of an argument that is being gathered */
    uint8_t form;         /* domus_resp_form: the form of the reply so far */
    bool is_push;         /* the current reply is a push */
    bool tabled;          /* the arguments are noted in `table`, and not in `spans` */
    uint32_t at;          /* bytes of the window that are parsed already */
    uint32_t count;       /* number of arguments that the command has announced; 0: no head yet */
    uint32_t have;        /* number of arguments of the command that are parsed */
    uint32_t left;        /* bytes of the current bulk string that have not come */
    domus_appender bytes; /* the bytes of the current message that were gathered */
    domus_appender table; /* for each argument a pair of uint32_t: its offset and its size */
    uint64_t charged;     /* bytes by which `bytes` and `table` count for the budget */
    union {
        /* for a command: offset and size of its first arguments */
        uint16_t spans[DOMUS_RESP_SPANS][2];
        struct { /* for a reply: the values that are open */
            uint32_t depth;
            /* bit i is set if the value that is open at depth i is an attribute */
            uint32_t attributes;
            uint32_t looked; /* bytes of the current line that were searched for its end */
            /* for each depth, the number of values that have not come */
            uint64_t rest[DOMUS_RESP_NESTING_MAX];
        } open;
    } in;
} domi_resp_state;

/* Let what is gathered now count for the budget, if there is one. Returns 0; -ENOMEM when the
 * budget has no room: then the message is forgotten. */
int domi_resp_charge_gathered_bytes(domi_resp_state *state);

/* Set the limits for the commands of a peer that is a stranger, or has authenticated. */
void domi_resp_set_limits_of_peer(domi_resp_state *state, bool is_stranger);

/* Returns the id for the request that is being decoded: DOMI_RESP_UNHEARD if its answer is
 * silenced. A skip of one answer is used up by this. */
static inline uint64_t domi_resp_take_id_of_next_request(domi_resp_state *state)
{
    uint64_t id = state->silence != DOMI_RESP_HEARD ? DOMI_RESP_UNHEARD : DOMUS_NO_ID;

    if (state->silence == DOMI_RESP_SKIPS)
        state->silence = DOMI_RESP_HEARD;
    return id;
}

/* The bytes for which a command counts, and the budget on which it counts; the record stands behind
 * the spans in the command's table. */
typedef struct domi_resp_charge_note {
    domus_budget *budget;
    uint64_t bytes;
} domi_resp_charge_note;

/* Note what is wrong with the peer's bytes. Returns -EPROTO. */
int domi_resp_record_why_bytes_are_wrong(domi_resp_state *state, domi_resp_wrong wrong);

/* --- decode ----------------------------------------------------------------------------------- */

/* The function `decode` of the stage, for a server (command.c) and for a client (reply.c). */
int domi_resp_decode_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                             size_t size);
int domi_resp_decode_reply(domus_wire *wire, domi_resp_state *state, const char *bytes,
                           size_t size);

/* Decode a command that is a line, as a person types it (line.c). */
int domi_resp_decode_line(domus_wire *wire, domi_resp_state *state, const char *bytes, size_t size);

/* Forget the message that has begun to come (arguments.c). */
void domi_resp_reset_half_received_message(domi_resp_state *state);

/* Move the arguments that are noted in `spans` to the table. Returns 0; -ENOMEM. */
int domi_resp_move_arguments_to_table(domi_resp_state *state);

/* Note where the next argument of a command lies. Returns 0; -ENOMEM. */
int domi_resp_record_place_of_argument(domi_resp_state *state, uint32_t offset, uint32_t size);

/* Make the request from the arguments that were noted. They lie in the `size` bytes at `bytes`, or,
 * if `bytes` is NULL, in the gathered bytes. Returns 0; -ENOMEM. */
int domi_resp_make_request_of_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                                      size_t size);

/* Bound the gathered bytes by the announced end of the message, which is `more` bytes away, if that
 * is at least as many bytes again as were gathered. Then the page ends with the message's bytes,
 * and is not copied more often than it would be otherwise. */
static inline void domi_resp_set_bound_of_gathered_bytes(domi_resp_state *state, uint32_t more)
{
    state->bytes.size_max =
        more >= state->bytes.size ? state->bytes.size + more : state->options.message_max;
}

/* --- encode (encode.c, downgrade.c, fail.c) --------------------------------------------------- */

int domi_resp_encode_for_client(domus_wire *wire, domi_resp_state *state, uint64_t id,
                                const domus_type *type, const void *payload);
int domi_resp_encode_command(domus_wire *wire, const domus_resp_command *command);

/* Append to `to` how RESP 2 says the values in `bytes`. Returns 0; -EINVAL when these are no
 * values; -ENOMEM. */
int domi_resp_write_values_in_resp_2(domus_slice bytes, domus_appender *to);

int domi_resp_answer_failure(domus_wire *wire, domi_resp_state *state, uint64_t id,
                             const domus_type *request, int error);

#endif
