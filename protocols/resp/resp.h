/* The state of the RESP stage for a channel, and the doors between its files.
 *
 * A message that lies whole in the window is parsed once, where it lies: `at` says how far, also
 * when a part of it is missing, so that bytes which come one by one are looked at once each. A
 * message that is too long for that is gathered: its bytes are appended as they come, and used. */
#ifndef DOMI_PROTOCOLS_RESP_H
#define DOMI_PROTOCOLS_RESP_H

#include <domus/resp.h>

/* A message that is not whole, and of which more bytes than this are announced, is gathered. It
 * is a quarter of the window, so a connection keeps no more than that for a message that may
 * never be whole. */
#define DOMI_RESP_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

/* Why the peer's bytes are no RESP. The texts are in fail.c. */
typedef enum domi_resp_wrong {
    DOMI_RESP_RIGHT,
    DOMI_RESP_COUNT,  /* the number of arguments */
    DOMI_RESP_LENGTH, /* the length of a bulk string, or what ends it */
    DOMI_RESP_MARK,   /* an argument begins with another byte than '$' */
    DOMI_RESP_LINE,   /* a line that is too long */
    DOMI_RESP_QUOTES,
    DOMI_RESP_SIZE,            /* a message that is too long */
    DOMI_RESP_STRANGERS_COUNT, /* too many arguments for a peer that has not authenticated */
    DOMI_RESP_STRANGERS_LENGTH,
    DOMI_RESP_WRONGS
} domi_resp_wrong;

typedef enum domi_resp_phase {
    DOMI_RESP_HEAD, /* of an argument */
    DOMI_RESP_BODY,
    DOMI_RESP_TAIL,
} domi_resp_phase;

/* Answers that CLIENT REPLY has silenced. */
typedef enum domi_resp_silence {
    DOMI_RESP_HEARD,
    DOMI_RESP_SILENT, /* all answers */
    DOMI_RESP_SKIPS,  /* the answer to the next command */
} domi_resp_silence;

/* The id of a request whose answer is not sent. Answers are encoded in any order, so whether one is
 * sent is decided when its request is decoded. */
#define DOMI_RESP_UNHEARD (DOMUS_NO_ID - 1)

typedef struct domi_resp_state {
    domus_resp_options options; /* with the defaults filled in */
    uint32_t arguments_max;     /* the bound for this peer now; strangers have smaller ones */
    uint32_t bulk_max;
    uint32_t quick_max; /* bytes of an argument that may be decoded quickly */
    bool is_stranger;
    uint8_t silence;      /* domi_resp_silence */
    uint8_t version;      /* the version of RESP in which the peer is answered */
    uint8_t wrong;        /* domi_resp_wrong */
    char got;             /* the byte that came in place of '$' */
    bool gathering;       /* the bytes up to here are in `bytes` */
    uint8_t phase;        /* the part of an argument that is being gathered: domi_resp_phase */
    uint8_t form;         /* the form of the reply so far: domus_resp_form */
    bool is_push;         /* the reply is a push */
    bool tabled;          /* the arguments are in `table`, not in `spans` */
    uint32_t at;          /* bytes of the window that are parsed */
    uint32_t count;       /* arguments that were announced; 0: the head has not come */
    uint32_t have;        /* arguments that are parsed */
    uint32_t left;        /* bytes of a bulk string that have not come */
    domus_appender bytes; /* the bytes that were gathered */
    domus_appender table; /* pairs of uint32_t: offset and size of each argument */
    uint64_t charged;     /* bytes of `bytes` and `table` that the budget counts */
    union {
        uint16_t spans[DOMUS_RESP_SPANS][2]; /* of a command */
        struct {                             /* of a reply */
            uint32_t depth;
            uint32_t attributes;                   /* bit i: the value at depth i is an attribute */
            uint32_t looked;                       /* bytes of a line that have no end in them */
            uint64_t rest[DOMUS_RESP_NESTING_MAX]; /* values that are missing at each depth */
        } open;
    } in;
} domi_resp_state;

/* Count what is gathered now on the budget, if there is one. Returns 0; -ENOMEM when that is more
 * than it has: then nothing is gathered any more. */
int domi_resp_charge(domi_resp_state *state);

/* Bound the commands of a stranger, or of a known peer. */
void domi_resp_limit(domi_resp_state *state, bool is_stranger);

/* The id of the request that is made now. */
static inline uint64_t domi_resp_next_id(domi_resp_state *state)
{
    uint64_t id = state->silence != DOMI_RESP_HEARD ? DOMI_RESP_UNHEARD : DOMUS_NO_ID;

    if (state->silence == DOMI_RESP_SKIPS)
        state->silence = DOMI_RESP_HEARD;
    return id;
}

/* A command that counts has this behind the spans of its table. */
typedef struct domi_resp_charge_note {
    domus_budget *budget;
    uint64_t bytes;
} domi_resp_charge_note;

/* Note why the bytes are wrong. Returns -EPROTO. */
int domi_resp_refuse(domi_resp_state *state, domi_resp_wrong wrong);

/* --- decode ----------------------------------------------------------------------------------- */

/* `decode` of a server (command.c) and of a client (reply.c). */
int domi_resp_decode_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                             size_t size);
int domi_resp_decode_reply(domus_wire *wire, domi_resp_state *state, const char *bytes,
                           size_t size);

/* Decode a command that is a line (line.c). */
int domi_resp_decode_line(domus_wire *wire, domi_resp_state *state, const char *bytes, size_t size);

/* Forget the message that was begun (arguments.c). */
void domi_resp_reset(domi_resp_state *state);

/* Move the arguments that are noted to the table. Returns 0; -ENOMEM. */
int domi_resp_begin_table(domi_resp_state *state);

/* Note the next argument. Returns 0; -ENOMEM. */
int domi_resp_add_span(domi_resp_state *state, uint32_t offset, uint32_t size);

/* Make the request of the arguments that were noted, which lie in `size` bytes at `bytes`, or if
 * `bytes` is NULL in those gathered. Returns 0; -ENOMEM. */
int domi_resp_make_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                           size_t size);

/* Bound what is gathered to what is announced, `more` bytes, if this at least doubles it: then the
 * page ends with the bytes, and is not copied more often than it would be otherwise. */
static inline void domi_resp_bound(domi_resp_state *state, uint32_t more)
{
    state->bytes.size_max =
        more >= state->bytes.size ? state->bytes.size + more : state->options.message_max;
}

/* --- encode (encode.c, downgrade.c, fail.c) --------------------------------------------------- */

int domi_resp_encode(domus_wire *wire, domi_resp_state *state, uint64_t id, const domus_type *type,
                     const void *payload);
int domi_resp_encode_command(domus_wire *wire, const domus_resp_command *command);

/* Append to `to` what RESP 2 says instead of the values in `bytes`. Returns 0; -EINVAL when they
 * are wrong; -ENOMEM. */
int domi_resp_downgrade(domus_slice bytes, domus_appender *to);

int domi_resp_fail(domus_wire *wire, domi_resp_state *state, uint64_t id, const domus_type *request,
                   int error);

#endif
