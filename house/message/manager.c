/* Defines the variable that identifies a thread. All other functions of manager.h are in
 * dispatch/turn.c. */
#include "house/message/manager.h"

_Thread_local char domi_here;
