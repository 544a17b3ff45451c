/* The handshake, as both sides know it (RFC 6455, 4). */
#ifndef DOMI_PROTOCOLS_HTTP_WEBSOCKET_HANDSHAKE_H
#define DOMI_PROTOCOLS_HTTP_WEBSOCKET_HANDSHAKE_H

#include <domus/websocket.h>

#define DOMI_WEBSOCKET_NONCE 16u /* bytes of a key, in base64 on the wire */
#define DOMI_WEBSOCKET_KEY64 24u /* bytes of a key on the wire */

/* Find the fields of a name, which is given in small letters. Returns how many there are;
 * `ret_value` gets the value of the first one. */
unsigned domi_websocket_fields(domus_slice fields, const char *name, domus_slice *ret_value);

/* Returns whether these bytes are the string. */
bool domi_websocket_is_text(const char *bytes, size_t size, const char *text);

/* Returns whether these are 16 bytes in base64. */
bool domi_websocket_is_key(domus_slice key);

/* Make the answer of a server to a key, DOMI_WEBSOCKET_KEY64 bytes. */
void domi_websocket_accept_of(const char *key, domus_websocket_key *ret_key);

/* Make a key of chance, DOMI_WEBSOCKET_KEY64 bytes. Returns 0, or the error of getrandom(2). */
int domi_websocket_make_key(char *key);

#endif
