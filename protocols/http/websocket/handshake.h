/* The parts of the WebSocket handshake that both sides use (RFC 6455, 4). */
#ifndef DOMI_PROTOCOLS_HTTP_WEBSOCKET_HANDSHAKE_H
#define DOMI_PROTOCOLS_HTTP_WEBSOCKET_HANDSHAKE_H

#include <domus/websocket.h>

#define DOMI_WEBSOCKET_NONCE 16u /* bytes of a handshake's key before it is encoded as base64 */
#define DOMI_WEBSOCKET_KEY64 24u /* characters of a handshake's key as base64 */

/* Find the fields with a name, which is given in small letters. Returns how many there are;
 * `ret_value` gets the value of the first. */
unsigned domi_websocket_find_first_and_count(domus_slice fields, const char *name,
                                             domus_slice *ret_value);

/* Returns whether the `size` bytes are equal to the text, which ends with a zero. */
bool domi_websocket_are_bytes_text(const char *bytes, size_t size, const char *text);

/* Returns whether a text is a handshake's key: 16 bytes in base64. */
bool domi_websocket_is_valid_key(domus_slice key);

/* Make the server's answer to a handshake's key of DOMI_WEBSOCKET_KEY64 bytes. */
void domi_websocket_make_answer_to_key(const char *key, domus_websocket_key *ret_key);

/* Make a random key for a handshake, of DOMI_WEBSOCKET_KEY64 bytes. Returns 0, or the error of
 * getrandom(2). */
int domi_websocket_make_key(char *key);

#endif
