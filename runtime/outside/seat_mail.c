/* Lists of answers and events that wait at a seat (seat.h), and how their entries are freed. */
#include "runtime/outside/seat_mail.h"

#include "base/memory.h"
#include "house/message/owned.h"

void domi_outside_mail_add_to_list(domi_outside_mails *list, domi_outside_mail *mail)
{
    mail->next = NULL;
    mail->previous = list->last;
    if (list->last != NULL)
        list->last->next = mail;
    else
        list->first = mail;
    list->last = mail;
}

void domi_outside_mail_remove_from_list(domi_outside_mails *list, domi_outside_mail *mail)
{
    if (mail->next != NULL)
        mail->next->previous = mail->previous;
    else
        list->last = mail->previous;
    if (mail->previous != NULL)
        mail->previous->next = mail->next;
    else
        list->first = mail->next;
}

void domi_outside_mail_free(domi_manager *manager, domi_outside_mail *mail)
{
    if (mail->envelope != NULL)
        domi_answer_release_and_free(manager, mail->envelope);
    else if (mail->owned)
        mail->message.type->release(mail->payload);
    domi_memory_free(mail);
}

void domi_outside_mails_free_all(domi_manager *manager, domi_outside_mails *list)
{
    while (list->first != NULL) {
        domi_outside_mail *mail = list->first;
        domi_outside_mail_remove_from_list(list, mail);
        domi_outside_mail_free(manager, mail);
    }
}
