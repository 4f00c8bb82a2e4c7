/* What an FMU reports: its messages, the reason of a failure, integers that a signal cannot hold. */
#include "fmu/importer/host/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/realtime/loop/clock.h"

enum { LOCK_TRIES = 1000, LOCK_PAUSE = 20000 }; /* ns */

/* The logger of an FMU gets back the environment that it was given with, or whatever the FMU passes instead. So a pointer is used only
   if it is that of a host; if it is not, the message is of the FMU that this thread is calling. FMI's logger has no other argument to
   find its host by, which is why these are not part of an engine. */
static bl_fmu_host *hosts;
static atomic_flag hosts_lock = ATOMIC_FLAG_INIT;

static void lock_hosts(void) {
    for (int tries = 0; atomic_flag_test_and_set_explicit(&hosts_lock, memory_order_acquire); tries++)
        if (tries > LOCK_TRIES)
            bl_clock_sleep_until(bl_clock_now() + LOCK_PAUSE); /* the holder may have a lower priority */
}
static void unlock_hosts(void) { atomic_flag_clear_explicit(&hosts_lock, memory_order_release); }

void bl_fmu_list_host(bl_fmu_host *f) {
    lock_hosts();
    f->next = hosts;
    hosts = f;
    unlock_hosts();
}

void bl_fmu_unlist_host(const bl_fmu_host *f) {
    lock_hosts();
    for (bl_fmu_host **link = &hosts; *link; link = &(*link)->next)
        if (*link == f) {
            *link = f->next;
            break;
        }
    unlock_hosts();
}

static bl_fmu_host *find_host(const void *environment) {
    bl_fmu_host *found[2] = {NULL, NULL};
    lock_hosts();
    for (bl_fmu_host *f = hosts; f; f = f->next) {
        if (f == environment) found[0] = f;
        if (atomic_load_explicit(&f->caller, memory_order_relaxed) == &errno) found[1] = f;
    }
    unlock_hosts();
    return found[0] ? found[0] : found[1];
}

/* Whether a format may be handed to printf: a text that merely contains a % now and then gives conversions, and %n
   would write to memory. */
static int is_harmless(const char *format) {
    for (const char *c = format; *c; c++) {
        if (*c != '%') continue;
        c++;
        c += strspn(c, "-+ #0'");
        c += strspn(c, "0123456789*.$");
        c += strspn(c, "hlLqjzt");
        if (!*c || !strchr("diouxXeEfFgGaAcspm%", *c)) return 0;
    }
    return 1;
}

/* A status by its name in a version of FMI. */
static const char *status_name(const bl_fmu_host *f, int status, char text[32]) {
    static const char *const NAMES[] = {"OK", "Warning", "Discard", "Error", "Fatal", "Pending"};
    if (status < 0 || (size_t)status >= sizeof NAMES / sizeof *NAMES) return "an undefined status";
    snprintf(text, 32, "%s%s", f->fmi->prefix, NAMES[status]);
    return text;
}

/* FMUs log from any thread: each message has a separate buffer, which is always null-terminated. */
void bl_fmu_note_message(const void *environment, int status, const char *category, const char *message,
                         va_list *arguments) {
    bl_fmu_host *f = message ? find_host(environment) : NULL;
    if (!f) return;
    char *line = f->messages[atomic_fetch_add(&f->message_count, 1u) % MESSAGE_COUNT], name[32];
    int length = snprintf(line, MESSAGE_LENGTH, "[%s%s%.40s] ", status_name(f, status, name), category ? ", " : "",
                          category ? category : "");
    if (length < 0 || length >= MESSAGE_LENGTH) return;
    if (arguments && is_harmless(message))
        vsnprintf(line + length, (size_t)(MESSAGE_LENGTH - length), message, *arguments);
    else snprintf(line + length, (size_t)(MESSAGE_LENGTH - length), "%s", message);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    if (f->logging) fprintf(stderr, "%s (%s) %s\n", f->file, f->name, line);
}

void bl_fmu_list_messages(bl_fmu_host *f, unsigned limit, const char *separator, char *text, size_t size) {
    const unsigned count = atomic_load(&f->message_count);
    const unsigned shown = count < limit ? count : limit;
    size_t length = 0;
    text[0] = '\0';
    for (unsigned k = count - shown; k != count && length < size; k++) {
        const int added =
            snprintf(text + length, size - length, "%s%s", length ? separator : "", f->messages[k % MESSAGE_COUNT]);
        length += added > 0 ? (size_t)added : 0;
    }
}

int bl_fmu_error(bl_fmu_host *f, const char *format, ...) {
    char heard[SHOWN_MESSAGES * 200];
    int length = snprintf(f->reason, sizeof f->reason, "FMU `%.200s` (instance `%.100s`): ", f->file, f->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->reason + length, sizeof f->reason - (size_t)length, format, arguments);
    va_end(arguments);
    bl_fmu_list_messages(f, SHOWN_MESSAGES, "; ", heard, sizeof heard);
    const size_t end = strlen(f->reason);
    if (heard[0]) snprintf(f->reason + end, sizeof f->reason - end, "; its last messages: %s", heard);
    return BL_ERROR_BLOCK;
}

int bl_fmu_end_run(bl_fmu_host *f, double t) {
    bl_fmu_error(f, "it requested the end of the simulation at t = %.9g", t);
    return BL_STOP;
}

const char *bl_fmu_silence(bl_fmu_host *f) {
    return f->logging || atomic_load(&f->message_count) > 0 ? "" : " without a message; logging=True shows more";
}

int bl_host_status(bl_fmu_host *f, bl_fmi_status status, const char *function, double t) {
    char name[32];
    if (status == FMI_OK || status == FMI_WARNING) return BL_OK;
    if (status == FMI_FATAL) f->mode = HOST_DEAD;
    else if (status != FMI_DISCARD) f->mode = HOST_BROKEN;
    return bl_fmu_error(f, "%s%s returned %s at t = %.9g%s", f->fmi->prefix, function, status_name(f, status, name), t,
                        bl_fmu_silence(f));
}

const char *bl_fmu_variable(const bl_fmu_host *f, int32_t number) {
    return number >= 0 && number < f->name_count ? f->names[number] : "?";
}

/* ---- integers that are rounded */

void bl_fmu_note_inexact(bl_fmu_host *f, int32_t number, const char *text, double t) {
    const int32_t kept = f->inexact_count < INEXACT_COUNT ? f->inexact_count : INEXACT_COUNT;
    for (int32_t k = 0; k < kept; k++)
        if (f->inexact[k].number == number) return;
    if (kept < INEXACT_COUNT) {
        f->inexact[kept].number = number;
        f->inexact[kept].t = t;
        snprintf(f->inexact[kept].text, sizeof f->inexact[kept].text, "%s", text);
    }
    f->inexact_count = kept + 1;
}

const char *bl_fmu_describe_inexact(bl_fmu_host *f) {
    char *text = f->shown;
    size_t length = 0;
    text[0] = '\0';
    for (int32_t k = 0; k < f->inexact_count && k < INEXACT_COUNT; k++)
        length +=
            (size_t)snprintf(text + length, sizeof f->shown - length, "%s`%.100s` is %s at t = %.9g s", k ? "; " : "",
                             bl_fmu_variable(f, f->inexact[k].number), f->inexact[k].text, f->inexact[k].t);
    if (f->inexact_count > 0)
        snprintf(text + length, sizeof f->shown - length,
                 "%s. Signals represent integers exactly only up to 2^53: larger ones are rounded.",
                 f->inexact_count > INEXACT_COUNT ? "; and there are more" : "");
    return text;
}
