/* Messages of a block: text in a buffer of fixed size that the engine owns. */
#include "blocks/core/kernel/kernel.h"

#include <stdio.h>
#include <string.h>

/* Cut where it is full, but not inside a character of UTF-8. */
static void add_message(const bl_block *b, const char *format, va_list arguments) {
    const size_t used = strlen(b->message), room = BL_MESSAGE_SIZE - used;
    const int wanted = vsnprintf(b->message + used, room, format, arguments);
    if (wanted < 0) b->message[used] = '\0';
    if (wanted < 0 || (size_t)wanted < room) return;
    char *end = b->message + BL_MESSAGE_SIZE - 1;
    while (end > b->message && (end[-1] & 0xC0) == 0x80) end--;
    if (end > b->message && (end[-1] & 0x80) != 0) end--;
    *end = '\0';
}

void bl_log(const bl_block *b, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_message(b, format, arguments);
    va_end(arguments);
}

int bl_log_error(const bl_block *b, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_message(b, format, arguments);
    va_end(arguments);
    return BL_ERROR_BLOCK;
}
