/* Keeping the working directory over a call into an FMU, and the floating-point control for a host in another language. */
#include "fmu/importer/host/process_state.h"

#include "scheduler/engine/biella.h"

void bl_keep_float_control(void *kept) { *(bl_float_control *)kept = bl_get_float_control(); }
void bl_restore_float_control(const void *kept) {
    const bl_float_control *wanted = kept;
    if (!bl_same_float_control(bl_get_float_control(), *wanted)) bl_set_float_control(*wanted);
}

#if defined(_WIN32)
#include <windows.h>

void bl_keep_working_directory(bl_working_directory *kept) {
    const DWORD size = sizeof kept->path / sizeof *kept->path, length = GetCurrentDirectoryW(size, kept->path);
    kept->known = length > 0 && length < size;
}
void bl_restore_working_directory(bl_working_directory *kept) {
    if (kept->known) SetCurrentDirectoryW(kept->path);
}
#else
#include <fcntl.h>
#include <unistd.h>

#if !defined(O_PATH) /* which needs no permission to read */
#define O_PATH O_RDONLY
#endif

void bl_keep_working_directory(bl_working_directory *kept) {
    kept->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}
void bl_restore_working_directory(bl_working_directory *kept) {
    if (kept->folder < 0) return;
    if (fchdir(kept->folder) != 0) { /* it was removed meanwhile: there is nowhere to go back to */
    }
    close(kept->folder);
    kept->folder = -1;
}
#endif
