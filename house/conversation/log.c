/* Writes lines of libraries that stand above this one into the log of the system (domus/log.h). */
#include "house/conversation/stack.h"

#include <domus/log.h>

#include <stdarg.h>
#include <stdio.h>

void domus_log_write(const domus_stack *stack, domus_log_level level, const char *format, ...)
{
    char text[DOMUS_LOG_TEXT_MAX + 1];
    va_list arguments;

    if (stack->manager->hooks.say == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    stack->manager->hooks.say(stack->manager, level, text);
}
