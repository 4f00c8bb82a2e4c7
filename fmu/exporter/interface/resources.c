/* Where an FMU finds its plan.
 *
 * Resource locations are as tools really pass them: file:/x, file:///x, file://localhost/x, file://server/x, with percent-encoded
 * characters, with a Windows drive, or a bare path. An FMU built from its sources has the plan within it (BL_PLAN_INSIDE,
 * see _sources.py) and needs neither a location nor a file system. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/exporter/interface/instance.h"

#if defined(BL_PLAN_INSIDE)

const unsigned char *bl_find_plan(const char *location, size_t *size, char *message, size_t message_size) {
    (void)location, (void)message, (void)message_size;
    *size = sizeof bl_plan_inside;
    return bl_plan_inside;
}

void bl_release_plan(const unsigned char *plan) { (void)plan; }

#else

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

enum { LONGEST_PATH = 4096 };

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static int is_drive(const char *text) {
    return ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z')) &&
           (text[1] == ':' || text[1] == '|');
}

static int is_file_uri(const char *text) {
    for (const char *scheme = "file:"; *scheme; scheme++, text++)
        if (*text != *scheme && (*scheme == ':' || *text != *scheme - 'a' + 'A')) return 0;
    return 1;
}

/* What follows the scheme, up to where the path starts: x, /x, //localhost/x, ///x; //server/x and ////server/x keep the two
   slashes that Windows requires before a server, and elsewhere they do no harm. */
static const char *skip_authority(const char *text) {
    const size_t slashes = strspn(text, "/");
    if (slashes >= 3) return text + slashes - (slashes == 3 ? 1 : 2);
    if (slashes < 2 || text[2] == '\0') return text;
    if (strncmp(text + 2, "localhost/", 10) == 0) return text + 11;
    return is_drive(text + 2) ? text + 2 : text;
}

/* Decodes a file URI into a path; a bare path is unchanged. */
static int decode_location(const char *location, char *path, size_t path_size) {
    size_t length = 0;
    const int is_uri = is_file_uri(location);
    if (is_uri) location = skip_authority(location + 5);
    for (; *location; location++) {
        char c = *location;
        if (is_uri && c == '%' && hex_digit(location[1]) >= 0 && hex_digit(location[2]) >= 0) {
            c = (char)(16 * hex_digit(location[1]) + hex_digit(location[2]));
            location += 2;
        }
        if (c == '\0' || length + 1 >= path_size) return 0;
        path[length++] = c;
    }
    while (length > 1 && (path[length - 1] == '/' || path[length - 1] == '\\')) length--;
    path[length] = '\0';
    if (is_uri && path[0] == '/' && is_drive(path + 1)) memmove(path, path + 1, length--);
    if (is_uri && is_drive(path)) path[1] = ':';
    return length > 0;
}

/* The folder resources/ of the FMU that this library was unpacked from: binaries/<platform>/../../resources. */
static int find_beside_binary(char *path, size_t path_size) {
    char binary[LONGEST_PATH] = "";
#if defined(_WIN32)
    HMODULE module = NULL;
    wchar_t wide[LONGEST_PATH];
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (LPCWSTR)(void *)&bl_find_plan, &module) ||
        GetModuleFileNameW(module, wide, LONGEST_PATH) == 0 ||
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, binary, sizeof binary, NULL, NULL) == 0)
        return 0;
#else
    Dl_info info;
    if (!dladdr((void *)(size_t)&bl_find_plan, &info) || !info.dli_fname) return 0;
    if (snprintf(binary, sizeof binary, "%s", info.dli_fname) >= (int)sizeof binary) return 0;
#endif
    for (int up = 0; up < 3; up++) {
        size_t k = strlen(binary);
        while (k > 0 && binary[k - 1] != '/' && binary[k - 1] != '\\') k--;
        if (k == 0) return 0;
        binary[k - 1] = '\0';
    }
    return snprintf(path, path_size, "%s/resources", binary) < (int)path_size;
}

static int resource_path(const char *location, const char *file, char *path, size_t path_size) {
    const int found =
        location && *location ? decode_location(location, path, path_size) : find_beside_binary(path, path_size);
    const size_t length = found ? strlen(path) : 0;
    if (!found || length + strlen(file) + 2 > path_size) return 0;
    snprintf(path + length, path_size - length, "/%s", file);
    return 1;
}

/* A URI is UTF-8, which Windows requires as UTF-16; a bare path may be in the code page of the system. */
static FILE *open_file(const char *path) {
#if defined(_WIN32)
    wchar_t wide[LONGEST_PATH];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, LONGEST_PATH) > 0)
        return _wfopen(wide, L"rb");
#endif
    return fopen(path, "rb");
}

static unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = open_file(path);
    if (!file) return NULL;
    unsigned char *bytes = NULL;
    long length = 0;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0) {
        bytes = malloc((size_t)length);
        if (bytes && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    *size = (size_t)length;
    return bytes;
}

const unsigned char *bl_find_plan(const char *location, size_t *size, char *message, size_t message_size) {
    char path[LONGEST_PATH];
    if (!resource_path(location, "plan.bin", path, sizeof path)) {
        snprintf(message, message_size, "unsupported resource location: '%s'", location ? location : "(null)");
        return NULL;
    }
    unsigned char *plan = read_file(path, size);
    if (!plan) snprintf(message, message_size, "cannot read '%s'", path);
    return plan;
}

void bl_release_plan(const unsigned char *plan) { free((void *)(size_t)plan); }

#endif
