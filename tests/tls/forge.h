/* Seals records of TLS 1.3 directly, with the keys that a raw peer has agreed on: records that
 * OpenSSL never sends, such as empty records, many messages in one record, and bytes after
 * close_notify. The raw peer itself must not have written anything since its handshake, and must
 * not write later. The cipher is TLS_AES_128_GCM_SHA256 (domt_raw_open_client() offers only that
 * one). */
#ifndef DOMT_FORGE_H
#define DOMT_FORGE_H

#include "tests/tls/raw.h"

#define DOMT_FORGE_ALERT     21
#define DOMT_FORGE_HANDSHAKE 22
#define DOMT_FORGE_DATA      23

typedef struct domt_forge {
    unsigned char secret[32];
    unsigned char key[16];
    unsigned char iv[12];
    uint64_t number; /* sequence number of the next record that is sealed */
} domt_forge;

/* Begin with the keys that the raw peer's handshake has ended with. */
void domt_forge_begin_with_keys(domt_forge *forge, const domt_raw *raw);

/* Change to the next keys of the raw peer, as after a KeyUpdate. */
void domt_forge_update_keys(domt_forge *forge);

/* Seal a record with `size` bytes (0..16384) of this content type, and feed it to the side. */
void domt_forge_send_record(domt_forge *forge, domt_side *side, int type, const char *bytes,
                            size_t size);

/* Seal a record, and store it at `to`, which has room for `size` + 22 bytes. Returns the record's
 * size. */
size_t domt_forge_seal_record(domt_forge *forge, int type, const char *bytes, size_t size,
                              char *to);

#endif
