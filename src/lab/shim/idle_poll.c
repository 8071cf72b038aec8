/*
 * Idle-poll shim: an LD_PRELOAD library for MPI ranks that outnumber the cores.
 *
 * MPI libraries look for work by polling with a timeout of zero, over and over. On a machine with a core per rank that
 * is right; with ten ranks on two cores every spinning rank takes the processor from the one that has work. Here a poll
 * with timeout zero that found nothing several times in a row waits up to WAIT_NS for something to happen. A poll that
 * finds something is never delayed, and a caller's own timeout is never changed.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IDLE_POLLS 8
#define WAIT_NS 200000L

static _Thread_local unsigned idle;

/* The kernel's own calls: looking up the next definition in the library could recurse while it is being loaded. */
static int kernel_ppoll(struct pollfd *fds, nfds_t count, struct timespec *limit, const sigset_t *mask)
{
    return (int)syscall(SYS_ppoll, fds, count, limit, mask, _NSIG / 8);
}

static int kernel_epoll(int epoll, struct epoll_event *events, int count, int timeout, const sigset_t *mask)
{
    return (int)syscall(SYS_epoll_pwait, epoll, events, count, timeout, mask, _NSIG / 8);
}

/* Whether a poll with this result, and with timeout zero, is one idle poll too many. */
static int too_idle(int found)
{
    if (found != 0) {
        idle = 0;
        return 0;
    }
    return ++idle > IDLE_POLLS;
}

static int poll_for(struct pollfd *fds, nfds_t count, struct timespec *limit, const sigset_t *mask)
{
    int zero = limit && limit->tv_sec == 0 && limit->tv_nsec == 0;
    int found = kernel_ppoll(fds, count, limit, mask);
    if (!zero || !too_idle(found))
        return found;
    struct timespec wait = {0, WAIT_NS};
    found = kernel_ppoll(fds, count, &wait, mask);
    if (found != 0)
        idle = 0;
    return found;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    /* The kernel writes the time that is left into its argument; the caller's is const. */
    struct timespec limit;
    if (timeout)
        limit = *timeout;
    return poll_for(fds, count, timeout ? &limit : NULL, mask);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    struct timespec limit = {timeout / 1000, (timeout % 1000) * 1000000L};
    return poll_for(fds, count, timeout < 0 ? NULL : &limit, NULL);
}

int epoll_pwait(int epoll, struct epoll_event *events, int count, int timeout, const sigset_t *mask)
{
    int found = kernel_epoll(epoll, events, count, timeout, mask);
    if (timeout != 0 || !too_idle(found))
        return found;
    /* An epoll descriptor is itself pollable, with a finer timeout than epoll's milliseconds. */
    struct pollfd self = {.fd = epoll, .events = POLLIN};
    struct timespec wait = {0, WAIT_NS};
    if (kernel_ppoll(&self, 1, &wait, mask) <= 0)
        return 0;
    idle = 0;
    return kernel_epoll(epoll, events, count, 0, mask);
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout)
{
    return epoll_pwait(epoll, events, count, timeout, NULL);
}
