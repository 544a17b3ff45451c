/* Nkeys: Ed25519 keys as NATS writes them, by which a user says who it is (domus/nats.h). */
#ifndef DOMUS_NATS_NKEY_H
#define DOMUS_NATS_NKEY_H

#include <domus/export.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_NATS_NKEY_SIZE      57u /* bytes of a public key as text, with a zero at its end */
#define DOMUS_NATS_SIGNATURE_SIZE 87u /* bytes of a signature as text in base64url, with a zero */

/* Get the public key of a seed, and sign `size` bytes with it (Ed25519). `signature` may be NULL.
 * Returns 0; -EBADMSG when the seed is none of a user, or its checksum is wrong; -ENOMEM. */
DOMUS_API int domus_nats_sign(const char *seed, const void *data, size_t size,
                              char public_key[DOMUS_NATS_NKEY_SIZE],
                              char signature[DOMUS_NATS_SIGNATURE_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
