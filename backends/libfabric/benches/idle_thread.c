/* Preloaded into fi_pingpong: a thread that sleeps. A rank always has threads (the watchdog's, MPI's), fi_pingpong has
 * none, and in a process with threads the C library's mutexes, which libfabric takes in every call, may cost more. */
#include <pthread.h>
#include <unistd.h>

static void *idle(void *unused) {
    for (;;) pause();
    return unused;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
}
