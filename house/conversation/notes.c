/* Keeps the notes that a thief makes for home: one circular list of embedded nodes in the thief's
 * manager. Home carries the notes out in the order in which they were made. */
#include "house/conversation/notes.h"

#include "base/check.h"
#include "house/message/kind.h"

void domi_note_leave_for_home(domi_manager *manager, domi_node *node)
{
    domi_list_append_node(&manager->timing.notes, node);
}

void domi_note_remove_note_of_node(domi_manager *manager, const domi_node *node)
{
    domi_node *before = manager->timing.notes;

    while (before->next != node)
        before = before->next;
    domi_list_take_node_behind(&manager->timing.notes, before);
}

domi_notes domi_notes_take_those_of_thiefs_run(domi_manager *manager)
{
    const domi_notes notes = {manager->timing.notes, manager->timing.noted_timers};

    manager->timing.notes = NULL;
    manager->timing.noted_timers = 0;
    return notes;
}

void domi_notes_carry_out_all_of_thief(domi_manager *home, domi_notes notes)
{
    domi_timers_add_to_count_of_home(home, notes.timers);
    while (notes.tail != NULL) {
        domi_node *node = domi_list_take_first_node(&notes.tail);

        domi_kind_of_node(node)->carry_out_note(home, node);
    }
}
