/* The header of the PROXY protocol, versions 1 and 2, which a proxy sends before the bytes of its
 * client, to tell whose connection it passes on.
 *
 * The rules are those of doc/proxy-protocol.txt of HAProxy. A header is read byte by byte, so that
 * it may come in any pieces, and takes no more memory than this struct. The parser is strict: what
 * is not certainly a valid header is an error, because a lenient reader would read another address
 * than the proxy meant. Any thread. */
#ifndef DOMI_IO_RESOURCES_PROXY_HEADER_H
#define DOMI_IO_RESOURCES_PROXY_HEADER_H

#include <domus/endpoint.h>

#define DOMI_PROXY_V1_MAX 107u /* most bytes of a PROXY line of version 1, with its CR and LF */
/* most bytes of a PROXY header of version 2 that is accepted; the protocol would allow 65,551 */
#define DOMI_PROXY_V2_MAX 4096u

/* number of bytes of a PROXY header of version 2 that are kept: the fixed part, and the addresses
 * of Unix sockets */
#define DOMI_PROXY_KEPT (16u + 216u)

typedef struct domi_proxy_header {
    /* the client that the header names; its family is 0 if the header names none (LOCAL, UNKNOWN,
     * UNSPEC, datagrams): then the connection's own peer is the client. Valid once the header is
     * complete. */
    domus_endpoint client;
    uint32_t taken; /* number of bytes of the PROXY header that were read so far */
    uint32_t total; /* number of bytes of the whole PROXY header of version 2; 0: not known yet */
    /* offset in the header at which its TLVs begin; `total`: there are none to be checked */
    uint32_t tlvs;
    uint32_t tlv_begin; /* offset in the header at which the present TLV begins */
    /* offset in the header at which the present TLV ends; 0: its length is not known yet */
    uint32_t tlv_end;
    /* CRC-32C of the header's bytes so far, with those of the checksum counted as 0 */
    uint32_t crc;
    uint32_t crc_told;    /* checksum (CRC-32C) that the PROXY header itself contains */
    bool has_crc;         /* the PROXY header has a checksum (CRC-32C) */
    unsigned char tlv[3]; /* type and length of the TLV that is read now */
    unsigned char bytes[DOMI_PROXY_KEPT]; /* the first bytes of the header, which are kept */
} domi_proxy_header;

/* Begin to read a PROXY header. */
void domi_proxy_header_init(domi_proxy_header *header);

/* Read bytes of a connection up to the end of its PROXY header. `ret_taken` gets their number.
 * Returns 1 when the header is complete; 0 when more bytes have to come, and then all bytes were
 * read; -EPROTO when this is not a header. It must not be called again after 1 or an error. */
int domi_proxy_header_read_bytes(domi_proxy_header *header, const void *bytes, size_t size,
                                 size_t *ret_taken);

#endif
