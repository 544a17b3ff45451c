/* Answers and events that wait at a seat (seat.h) until its owner receives them. */
#ifndef DOMI_RUNTIME_OUTSIDE_SEAT_MAIL_H
#define DOMI_RUNTIME_OUTSIDE_SEAT_MAIL_H

#include "house/message/manager.h"

#include <domus/outsider.h>

/* A mail of a seat: an answer or an event that waits to be received, or an empty place for one. */
typedef struct domi_outside_mail domi_outside_mail;

struct domi_outside_mail {
    domi_outside_mail *next;
    domi_outside_mail *previous;
    domus_outside_message message;
    domus_watch watch; /* in an empty place: the watch whose event will use it */
    /* envelope that has the payload of a reply; NULL: the payload is in this object, or there is
     * none */
    domi_envelope *envelope;
    /* true: the event counts towards the limit on events, because no watch has allocated its
     * place */
    bool counted;
    /* true: the event's payload owns something that is still to be released */
    bool owned;
    /* payload of the exception to a failed ask: its negative errno */
    int error;
    alignas(8) unsigned char payload[]; /* payload of the event */
};

/* List of a seat's answers or events, the oldest first. */
typedef struct domi_outside_mails {
    domi_outside_mail *first;
    domi_outside_mail *last;
} domi_outside_mails;

/* Add a mail to a list of a seat, remove it, free it with what it owns, or free all mails of a
 * list. */
void domi_outside_mail_add_to_list(domi_outside_mails *list, domi_outside_mail *mail);
void domi_outside_mail_remove_from_list(domi_outside_mails *list, domi_outside_mail *mail);
void domi_outside_mail_free(domi_manager *manager, domi_outside_mail *mail);
void domi_outside_mails_free_all(domi_manager *manager, domi_outside_mails *list);

#endif
