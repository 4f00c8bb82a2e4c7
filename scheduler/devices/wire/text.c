#include "scheduler/devices/wire/text.h"

#include "scheduler/devices/drivers.h"

#if !defined(_WIN32)

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include "scheduler/devices/wire/frame.h"
#include "scheduler/devices/wire/port.h"
#include "scheduler/devices/wire/safe_line.h"

enum { TEXT_READS = 16 };

static uint8_t xor_of(const char *bytes, size_t length) {
    uint8_t sum = 0;
    for (size_t k = 0; k < length; k++) sum ^= (uint8_t)bytes[k];
    return sum;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* Removes "*HH"; returns whether the checksum of the rest matches. */
static bool take_checksum(const char *line, size_t *length, bool must) {
    const char *star = memchr(line, '*', *length);
    if (!star) return !must;
    const size_t before = (size_t)(star - line);
    if (*length - before != 3) return false;
    const int high = hex_digit(star[1]), low = hex_digit(star[2]);
    *length = before;
    return high >= 0 && low >= 0 && xor_of(line, before) == (uint8_t)(high << 4 | low);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The length of a plain decimal number, 0 if there is none: sign, digits with a point among them, exponent. No hexadecimal, no nan. */
static size_t measure_number(const char *c) {
    const char *start = c;
    size_t digits = 0;
    if (*c == '+' || *c == '-') c++;
    for (; *c >= '0' && *c <= '9'; c++) digits++;
    if (*c == '.') c++;
    for (; *c >= '0' && *c <= '9'; c++) digits++;
    if (digits == 0) return 0;
    if (*c != 'e' && *c != 'E') return (size_t)(c - start);
    c++;
    if (*c == '+' || *c == '-') c++;
    if (!(*c >= '0' && *c <= '9')) return 0;
    while (*c >= '0' && *c <= '9') c++;
    return (size_t)(c - start);
}

/* Locale for all numbers here, independent of the program's. Created once, when a device is opened. */
static locale_t plain_numbers(void) {
    static locale_t plain;
    if (!plain) plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain;
}

int bl_text_read(char *line, size_t length, int32_t count, int checksum, double *values) {
    if (memchr(line, '\0', length) || !take_checksum(line, &length, checksum)) return 0;
    line[length] = '\0';
    const char *at = line;
    for (int32_t k = 0; k < count; k++) {
        while (is_blank(*at)) at++;
        if (k > 0 && *at == ',') {
            at++;
            while (is_blank(*at)) at++;
        } else if (k > 0 && !is_blank(at[-1])) {
            return 0;
        }
        const size_t digits = measure_number(at);
        if (digits == 0) return 0;
        values[k] = strtod_l(at, NULL, plain_numbers());
        if (!isfinite(values[k])) return 0;
        at += digits;
    }
    while (is_blank(*at)) at++;
    return *at == '\0';
}

size_t bl_text_write(const double *values, int32_t count, int wide, int checksum, char *line) {
    const locale_t before = uselocale(plain_numbers());
    size_t length = 0;
    for (int32_t k = 0; k < count; k++)
        length +=
            (size_t)snprintf(line + length, BL_TEXT_ROOM - length, "%s%.*g", k ? "," : "", wide ? 17 : 9, values[k]);
    if (checksum) length += (size_t)snprintf(line + length, BL_TEXT_ROOM - length, "*%02X", xor_of(line, length));
    line[length++] = '\n';
    uselocale(before);
    return length;
}

static int end_of_line(bl_lines *s, bl_device *d, int checksum) {
    double values[BL_FRAME_VALUES];
    if (s->length > 0 && s->bytes[s->length - 1] == '\r') s->length--;
    if (s->length == 0 && !s->spoilt) return 0;
    /* The rest of a partly received line can be a valid line with wrong numbers: 3.5 of 113.5. */
    const int accepted = s->begun && !s->spoilt && bl_text_read(s->bytes, s->length, d->in_count, checksum, values);
    if (accepted) {
        memcpy(d->received, values, (size_t)d->in_count * sizeof *values);
        d->sequence++;
    } else if (s->begun) {
        bl_add_count(&d->counts.corrupt, 1);
    }
    return accepted;
}

int bl_text_feed(bl_lines *s, bl_device *d, int checksum, const uint8_t *bytes, size_t size) {
    int accepted = 0;
    while (size > 0) {
        const uint8_t *end = memchr(bytes, '\n', size);
        const size_t length = end ? (size_t)(end - bytes) : size;
        if (length > BL_TEXT_ROOM - s->length) {
            s->spoilt = true;
        } else {
            memcpy(s->bytes + s->length, bytes, length);
            s->length += length;
        }
        if (!end) break;
        accepted += end_of_line(s, d, checksum);
        s->length = 0;
        s->spoilt = false;
        s->begun = true;
        bytes = end + 1;
        size -= length + 1;
    }
    return accepted;
}

typedef struct {
    bl_port *port;
    bl_lines lines;
    int32_t flags;
} text_state;

static int text_receive(bl_device *d, int64_t now) {
    text_state *s = d->state;
    uint8_t bytes[4096];
    int accepted = 0, got = sizeof bytes;
    (void)now;
    for (int k = 0; k < TEXT_READS && got == (int)sizeof bytes; k++) {
        got = bl_port_read(s->port, bytes, sizeof bytes);
        if (got < 0) return accepted > 0 ? accepted : got;
        accepted += bl_text_feed(&s->lines, d, s->flags & BL_WIRE_CHECKSUM, bytes, (size_t)got);
    }
    return accepted;
}

static int text_send(bl_device *d, uint32_t sequence, int flags) {
    text_state *s = d->state;
    char line[BL_TEXT_ROOM];
    (void)sequence;
    if (d->out_count == 0) return 0;
    const size_t size =
        bl_text_write(d->sending, d->out_count, s->flags & BL_WIRE_DOUBLE, s->flags & BL_WIRE_CHECKSUM, line);
    return bl_port_write(s->port, (const uint8_t *)line, size, bl_is_urgent(flags));
}

static int text_wait(bl_device *d, int64_t deadline) {
    text_state *s = d->state;
    return bl_port_wait(s->port, deadline);
}

static int text_reopen(bl_device *d) {
    text_state *s = d->state;
    const int error = bl_port_reopen(s->port);
    if (error) return error;
    s->lines.length = 0;
    s->lines.spoilt = s->lines.begun = false;
    return 0;
}

static void text_close(bl_device *d) {
    text_state *s = d->state;
    bl_port_close(s->port);
    free(s);
}

static int text_share(const bl_device *d, bl_line_state *state) {
    const text_state *s = d->state;
    state->kind = BL_LINE_TEXT;
    state->flags = s->flags;
    return bl_port_descriptor(s->port);
}

static const bl_driver TEXT = {"text", text_receive, text_send, text_wait, text_reopen, text_close, text_share, NULL};

bl_device *bl_text_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count,
                        int32_t flags, char *message, size_t message_size) {
    if (in_count < 0 || in_count > BL_FRAME_VALUES || out_count < 0 || out_count > BL_FRAME_VALUES) {
        snprintf(message, message_size, "device `%s`: a line has 0 to %d values", name, BL_FRAME_VALUES);
        return NULL;
    }
    text_state *s = calloc(1, sizeof *s);
    bl_device *d = s && plain_numbers() ? bl_device_open(&TEXT, s, name, in_count, out_count) : NULL;
    if (!d) {
        snprintf(message, message_size, "device `%s`: out of memory", name);
        free(s);
        return NULL;
    }
    s->flags = flags;
    s->port = bl_port_open(port, baud, '\n', message, message_size);
    if (s->port) return d;
    bl_device_close(d);
    return NULL;
}

#endif
