/* This file defines the variable that identifies a thread. The functions of manager.h are in
 * house/dispatch/turn.c. */
#include "house/message/manager.h"

_Thread_local char domi_here;
