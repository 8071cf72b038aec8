/* Preloaded into fi_pingpong: a thread that sleeps. In a process with threads the C library's mutexes, which libfabric
 * takes in every call, are atomic operations; a rank always has threads (the watchdog's, MPI's), fi_pingpong has none. */
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
