/* A thread registers and forgets watchers of signals without pause, while the process forks: each child registers one, too. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/realtime/loop/realtime.h"
#include "scheduler/realtime/safety/signals.h"

static atomic_int ending;

static void *run(void *argument) {
    while (!atomic_load(&ending)) bl_signals_forget(bl_signals_watch(BL_SIGNAL_HUP));
    return argument;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0) return 2;
    int stuck = 0;
    for (int k = 0; k < 300 && !stuck; k++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            const int watcher = bl_signals_watch(BL_SIGNAL_HUP);
            bl_signals_forget(watcher);
            _exit(watcher < 0);
        }
        int status = 0;
        stuck = waitpid(child, &status, 0) != child || status != 0;
    }
    atomic_store(&ending, 1);
    pthread_join(thread, NULL);
    printf("%d\n", stuck);
    return 0;
}
